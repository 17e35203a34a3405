//! decode: turns raw arguments into arguments that fit the schema, or into an error that says where they do not.

use haft_tool::{Arguments, Definition, ToolError, Value, clip_chars, close_names};
use serde_json::Map;

/// More problems are not reported, because the first ones usually explain the rest.
const MAX_REPORTED_COUNT: usize = 5;

/// Arguments that fit the schema, and which of them were converted.
#[derive(Debug)]
pub(crate) struct CheckedArguments {
    pub(crate) arguments: Value,
    pub(crate) coerced: Vec<String>,
}

/// Parses arguments that came as text. Invalid JSON is an error, never `{}`.
pub(crate) fn parse(arguments: Arguments) -> Result<Value, ToolError> {
    let value = match arguments {
        Arguments::Json(value) => value,
        Arguments::Raw(text) => serde_json::from_str(&text)
            .map_err(|error| ToolError::invalid_arguments(format!("The arguments are not JSON: {error}")))?,
    };
    match value {
        Value::Object(_) => Ok(value),
        other => Err(ToolError::invalid_arguments(format!(
            "The arguments must be a JSON object, for example {{\"name\": \"value\"}}; got {}",
            described(&other)
        ))),
    }
}

/// Accepts the arguments unchecked, for a tool whose server checks them.
pub(crate) fn unchecked(name: &str, arguments: Value) -> Result<CheckedArguments, ToolError> {
    if arguments.is_object() {
        return Ok(CheckedArguments { arguments, coerced: Vec::new() });
    }
    Err(ToolError::invalid_arguments(format!("{name}: expected an object")))
}

/// Checks the arguments against the schema; numbers out of range are clamped if the tool `clamps`.
pub(crate) fn check(
    definition: &Definition,
    mut arguments: Value,
    clamps: bool,
) -> Result<CheckedArguments, ToolError> {
    let mut check = ArgumentCheck { problems: Vec::new(), coerced: Vec::new(), clamps };
    check.value(&definition.input_schema, &mut arguments, "");
    if check.problems.is_empty() {
        return Ok(CheckedArguments { arguments, coerced: check.coerced });
    }
    check.problems.truncate(MAX_REPORTED_COUNT);
    Err(ToolError::invalid_arguments(format!("{}: {}", definition.name, check.problems.join("; ")))
        .with_details(serde_json::json!({"problems": check.problems})))
}

/// The keywords of a schema, collected in one pass because looking up each of them is slower.
#[derive(Default)]
struct SchemaRules<'a> {
    any: Option<&'a [Value]>,
    kind: Option<&'a str>,
    options: Option<&'a [Value]>,
    minimum: Option<&'a Value>,
    maximum: Option<&'a Value>,
    /// The minimum and maximum number of characters or items.
    size: (Option<u64>, Option<u64>),
    items: Option<&'a Value>,
    properties: Option<&'a Map<String, Value>>,
    required: &'a [Value],
    others: Option<&'a Value>,
}

impl<'a> SchemaRules<'a> {
    fn of(schema: &'a Map<String, Value>) -> Self {
        let list = |value: &'a Value| value.as_array().map(Vec::as_slice);
        let mut rules = Self::default();
        for (word, value) in schema {
            match word.as_str() {
                "anyOf" | "oneOf" => rules.any = rules.any.or(list(value)),
                "type" => rules.kind = value.as_str(),
                "enum" => rules.options = list(value),
                "minimum" => rules.minimum = Some(value),
                "maximum" => rules.maximum = Some(value),
                "minLength" | "minItems" => rules.size.0 = value.as_u64(),
                "maxLength" | "maxItems" => rules.size.1 = value.as_u64(),
                "items" => rules.items = Some(value),
                "properties" => rules.properties = value.as_object(),
                "required" => rules.required = list(value).unwrap_or_default(),
                "additionalProperties" => rules.others = Some(value),
                _ => {}
            }
        }
        rules
    }
}

struct ArgumentCheck {
    problems: Vec<String>,
    coerced: Vec<String>,
    clamps: bool,
}

impl ArgumentCheck {
    fn problem(&mut self, field: &str, what: &str) {
        if self.problems.len() < MAX_REPORTED_COUNT {
            self.problems.push(if field.is_empty() { what.to_owned() } else { format!("{field}: {what}") });
        }
    }

    fn value(&mut self, schema: &Value, value: &mut Value, field: &str) {
        let Value::Object(schema) = schema else { return };
        let rules = SchemaRules::of(schema);
        if let Some(options) = rules.any {
            return self.any(options, value, field);
        }
        if let Some(kind) = rules.kind
            && !is_a(kind, value)
        {
            match coerced(kind, value) {
                Some(better) => {
                    self.coerced.push(format!("{field}: {} was taken as {better}", described(value)));
                    *value = better;
                }
                None => {
                    return self
                        .problem(field, &format!("expected {}, got {}", article(kind), described(value)));
                }
            }
        }
        if let Some(options) = rules.options
            && !options.contains(value)
        {
            let all: Vec<String> = options.iter().map(ToString::to_string).collect();
            return self
                .problem(field, &format!("expected one of {}, got {}", all.join(", "), described(value)));
        }
        match value {
            Value::Number(_) => self.range(&rules, value, field),
            Value::String(text) if rules.size != (None, None) => {
                self.size(&rules, text.chars().count() as u64, "characters", field);
            }
            Value::Array(items) => {
                self.size(&rules, items.len() as u64, "items", field);
                if let Some(schema) = rules.items {
                    for (at, item) in items.iter_mut().enumerate() {
                        self.value(schema, item, &format!("{field}[{at}]"));
                    }
                }
            }
            Value::Object(members) => self.members(&rules, members, field),
            _ => {}
        }
    }

    fn members(&mut self, rules: &SchemaRules<'_>, members: &mut Map<String, Value>, field: &str) {
        let none = Map::new();
        let (known, required) = (rules.properties.unwrap_or(&none), rules.required);
        let place = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
        // Models send null for what they leave out.
        members.retain(|name, value| {
            !(value.is_null() && known.contains_key(name) && !required.iter().any(|r| r == name))
        });
        for (name, value) in members.iter_mut() {
            match (known.get(name), rules.others) {
                (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                    self.value(schema, value, &place(name));
                }
                (None, Some(Value::Bool(false))) => {
                    let near = close_names(name, known.keys().map(String::as_str));
                    let hint = match near.as_slice() {
                        [] => format!(
                            "; there are: {}",
                            known.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
                        ),
                        near => format!("; did you mean {}?", near.join(" or ")),
                    };
                    let shown = clip_chars(name, 80, 0);
                    self.problem(&place(&shown), &format!("unknown field{hint}"));
                }
                (None, _) => {}
            }
        }
        for name in required.iter().filter_map(Value::as_str).filter(|name| !members.contains_key(*name)) {
            let kind = known.get(name).and_then(|schema| schema.get("type")).and_then(Value::as_str);
            self.problem(
                &place(name),
                &format!("required but missing{}", kind.map(|kind| format!(" ({kind})")).unwrap_or_default()),
            );
        }
    }

    fn any(&mut self, options: &[Value], value: &mut Value, field: &str) {
        for option in options {
            let mut attempt = Self { problems: Vec::new(), coerced: Vec::new(), clamps: false };
            let mut candidate = value.clone();
            attempt.value(option, &mut candidate, field);
            if attempt.problems.is_empty() && attempt.coerced.is_empty() {
                return;
            }
        }
        let kinds: Vec<&str> = options
            .iter()
            .filter_map(|option| option.get("type").and_then(Value::as_str))
            .map(article)
            .collect();
        self.problem(field, &format!("expected {}, got {}", kinds.join(" or "), described(value)));
    }

    fn range(&mut self, rules: &SchemaRules<'_>, value: &mut Value, field: &str) {
        let Some(number) = value.as_f64() else { return };
        for (limit, least) in [(rules.minimum, true), (rules.maximum, false)] {
            let Some(limit) = limit else { continue };
            let Some(edge) = limit.as_f64() else { continue };
            if (least && number >= edge) || (!least && number <= edge) {
                continue;
            }
            if self.clamps {
                *value = limit.clone();
            } else {
                let side = if least { "least" } else { "most" };
                self.problem(field, &format!("expected at {side} {edge}, got {value}"));
            }
        }
    }

    fn size(&mut self, rules: &SchemaRules<'_>, size: u64, what: &str, field: &str) {
        let (least, most) = rules.size;
        if let Some(least) = least.filter(|least| size < *least) {
            self.problem(field, &format!("expected at least {least} {what}, got {size}"));
        }
        if let Some(most) = most.filter(|most| size > *most) {
            self.problem(field, &format!("expected at most {most} {what}, got {size}"));
        }
    }
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// The value that was unambiguously meant: a number or boolean sent as a string, a whole number sent with a decimal point.
fn coerced(kind: &str, value: &Value) -> Option<Value> {
    match (kind, value) {
        ("integer" | "number", Value::String(text)) => {
            let number: Value = serde_json::from_str(text.trim()).ok()?;
            if is_a(kind, &number) {
                Some(number)
            } else {
                coerced(kind, &number).filter(|_| number.is_number())
            }
        }
        ("integer", Value::Number(number)) => {
            let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15)?;
            serde_json::from_str(&format!("{float:.0}")).ok()
        }
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        _ => None,
    }
}

fn article(kind: &str) -> &str {
    match kind {
        "string" => "a string",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "an object",
        other => other,
    }
}

/// A value in a few words.
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("the string {:?}", clip_chars(text, 60, 0)),
        Value::Array(items) => format!("a list of {} items", items.len()),
        Value::Object(members) => format!("an object of {} fields", members.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object", "additionalProperties": false, "required": ["file_path"],
            "properties": {
                "file_path": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 10},
                "all": {"type": "boolean"},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "tags": {"type": "array", "items": {"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}}},
                "any": {"anyOf": [{"type": "string"}, {"type": "number"}]},
            },
        })
    }

    fn said(arguments: Value) -> String {
        let definition = Definition::new("T", "", schema(), &[]);
        match check(&definition, arguments, false) {
            Ok(decoded) => format!("{} {:?}", decoded.arguments, decoded.coerced),
            Err(error) => error.message,
        }
    }

    #[test]
    fn each_problem_names_the_field_what_was_expected_and_what_came() {
        assert_eq!(said(json!({})), "T: file_path: required but missing (string)");
        assert_eq!(said(json!({"file_path": 5})), "T: file_path: expected a string, got 5");
        assert_eq!(
            said(json!({"filepath": "x"})),
            "T: filepath: unknown field; did you mean file_path?; file_path: required but missing (string)"
        );
        assert_eq!(said(json!({"file_path": "x", "limit": 99})), "T: limit: expected at most 10, got 99");
        assert_eq!(
            said(json!({"file_path": "x", "mode": "c"})),
            "T: mode: expected one of \"a\", \"b\", got the string \"c\""
        );
        assert_eq!(
            said(json!({"file_path": "x", "tags": [{"n": 1}, {"n": []}]})),
            "T: tags[1].n: expected a number, got a list of 0 items"
        );
        assert_eq!(
            said(json!({"file_path": "x", "any": []})),
            "T: any: expected a string or a number, got a list of 0 items"
        );
    }

    #[test]
    fn what_was_unambiguously_meant_is_taken_and_said() {
        assert_eq!(
            said(json!({"file_path": "x", "limit": "5", "all": "True"})),
            "{\"file_path\":\"x\",\"limit\":5,\"all\":true} [\"limit: the string \\\"5\\\" was taken as 5\", \"all: the string \\\"True\\\" was taken as true\"]"
        );
        assert_eq!(
            said(json!({"file_path": "x", "limit": 5.0})),
            "{\"file_path\":\"x\",\"limit\":5} [\"limit: 5.0 was taken as 5\"]"
        );
        assert_eq!(said(json!({"file_path": "x", "limit": null})), "{\"file_path\":\"x\"} []");
        assert_eq!(
            said(json!({"file_path": "x", "limit": "five"})),
            "T: limit: expected a whole number, got the string \"five\""
        );
        assert_eq!(
            said(json!({"file_path": "x", "limit": "5.5"})),
            "T: limit: expected a whole number, got the string \"5.5\""
        );
        assert_eq!(
            said(json!({"file_path": "x", "all": "yes"})),
            "T: all: expected true or false, got the string \"yes\""
        );
        assert_eq!(said(json!({"file_path": "x", "all": 1})), "T: all: expected true or false, got 1");
    }

    #[test]
    fn a_tool_that_clamps_gets_the_nearest_number_in_range() {
        let definition = Definition::new("T", "", schema(), &[]);
        for (sent, taken) in [("-7", 1), ("0", 1), ("1", 1), ("10", 10), ("11", 10), ("1e15", 10)] {
            let limit: Value = serde_json::from_str(sent).unwrap();
            let decoded = check(&definition, json!({"file_path": "x", "limit": limit}), true).unwrap();
            assert_eq!(decoded.arguments["limit"], taken, "{sent}");
        }
        assert!(check(&definition, json!({"file_path": "x", "limit": "many"}), true).is_err());
    }

    #[test]
    fn what_is_no_json_object_is_never_taken_for_an_empty_one() {
        for text in ["", "{", "null", "[]", "\"{}\"", "{\"a\": \"\\ud800\"}", "{\"a\": \"\u{0}\"}"] {
            let error = parse(Arguments::from(text)).unwrap_err();
            assert_eq!(error.kind, haft_tool::ErrorKind::InvalidArguments, "{text}");
        }
        let deep = format!("{{\"a\": {}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(parse(Arguments::from(deep)).unwrap_err().message.contains("recursion limit"));
    }
}
