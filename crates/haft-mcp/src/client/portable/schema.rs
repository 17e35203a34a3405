//! Schemas in a plain form that every model provider accepts.
//!
//! The top level is an object, references are inlined, alternatives at the top level are merged, and keywords that some
//! provider rejects are dropped. What is lost (patterns, formats, conditions) the server still checks.

use serde_json::{Map, Value, json};

use super::super::list::approximate_bytes;
use super::choice::{add_choices, join, merge};
use super::reference::find;
use super::text::{clean, clean_line};

/// Below this depth a schema allows anything.
const MAX_DEPTH: usize = 24;
/// Subschemas, with references inlined.
const MAX_SUBSCHEMAS: usize = 4000;
/// The size of the result, which is part of every request to a model.
const MAX_SCHEMA_BYTES: usize = 64 << 10;
/// Characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 1000;
/// The size of a default value.
const MAX_DEFAULT_BYTES: usize = 1000;
/// Values of one `enum`.
const MAX_ENUM_VALUES: usize = 500;
/// The longest name of a property that every provider accepts.
const MAX_PROPERTY_NAME_BYTES: usize = 64;
/// Characters of a name or a reference that an error repeats.
const MAX_SHOWN_CHARS: usize = 100;
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// Converts a schema; also returns what was left out. An error says why the schema cannot be converted.
pub fn plain_schema(schema: &Value) -> Result<(Value, Vec<String>), String> {
    let top = match schema {
        Value::Null => Map::new(),
        Value::Object(_) => {
            let mut converter =
                SchemaConverter { root: schema, count: 0, following: Vec::new(), left_out: Vec::new() };
            let plain = converter.schema(schema, 0)?;
            return finish(plain).map(|plain| (plain, converter.left_out));
        }
        _ => return Err("its schema is not an object".to_owned()),
    };
    finish(top).map(|plain| (plain, Vec::new()))
}

/// Makes the top level an object.
fn finish(mut top: Map<String, Value>) -> Result<Value, String> {
    let is_object = |schema: &Value| match schema.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    };
    if let Some(Value::Array(choices)) = top.remove("anyOf") {
        let choices: Vec<Value> = choices.into_iter().filter(is_object).collect();
        if choices.is_empty() {
            return Err("its arguments are not an object".to_owned());
        }
        join(&mut top, choices);
    }
    let all = Value::Object(top);
    if !is_object(&all) {
        return Err("its arguments are not an object".to_owned());
    }
    let Value::Object(mut top) = all else { return Err("its schema is not an object".to_owned()) };
    for keyword in ["enum", "items", "default"] {
        top.remove(keyword);
    }
    top.insert("type".to_owned(), json!("object"));
    top.entry("properties").or_insert_with(|| json!({}));
    drop_unknown_required(&mut top);
    let plain = Value::Object(top);
    match approximate_bytes(&plain) {
        bytes if bytes > MAX_SCHEMA_BYTES => {
            Err(format!("its schema has {bytes} bytes, more than {MAX_SCHEMA_BYTES}"))
        }
        _ => Ok(plain),
    }
}

/// Removes required names that are not properties.
fn drop_unknown_required(schema: &mut Map<String, Value>) {
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name.as_str().is_some_and(|name| properties.contains_key(name)));
        if required.is_empty() {
            schema.remove("required");
        }
    }
}

struct SchemaConverter<'a> {
    root: &'a Value,
    /// Subschemas so far.
    count: usize,
    /// The references on the current path, to detect cycles.
    following: Vec<String>,
    left_out: Vec<String>,
}

impl<'a> SchemaConverter<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Result<Map<String, Value>, String> {
        self.count += 1;
        if self.count > MAX_SUBSCHEMAS {
            return Err(format!("its schema has more than {MAX_SUBSCHEMAS} subschemas"));
        }
        let mut plain = Map::new();
        let Value::Object(given) = schema else { return Ok(plain) };
        if depth > MAX_DEPTH {
            return Ok(plain);
        }
        if let Some(reference) = given.get("$ref").or_else(|| given.get("$dynamicRef")) {
            plain = self.follow(reference, depth)?;
        }
        for (keyword, value) in given {
            self.keyword(&mut plain, given, keyword, value, depth)?;
        }
        if plain.get("type").is_some_and(|kind| kind == "array") {
            plain.entry("items").or_insert_with(|| json!({}));
        }
        drop_unknown_required(&mut plain);
        Ok(plain)
    }

    fn keyword(
        &mut self,
        plain: &mut Map<String, Value>,
        given: &'a Map<String, Value>,
        keyword: &str,
        value: &'a Value,
        depth: usize,
    ) -> Result<(), String> {
        let mut set = |value: Value| drop(plain.insert(keyword.to_owned(), value));
        match (keyword, value) {
            ("description", Value::String(text)) => set(Value::from(clean(text, MAX_DESCRIPTION_CHARS))),
            ("type", kind) => match types(kind).as_slice() {
                [] => {}
                [only] => set(json!(only)),
                [one, two] if [one, two].contains(&&"null") => set(json!([one, two])),
                several => add_choices(plain, several.iter().map(|kind| json!({"type": kind})).collect()),
            },
            ("properties", Value::Object(members)) => {
                let members = self.properties(members, given, depth)?;
                merge(plain, Map::from_iter([("properties".to_owned(), Value::Object(members))]));
            }
            ("required", Value::Array(names)) => {
                merge(plain, Map::from_iter([("required".to_owned(), Value::Array(names.clone()))]));
            }
            ("items", Value::Object(_)) => set(Value::Object(self.schema(value, depth + 1)?)),
            ("additionalProperties", Value::Object(_)) => set(Value::Object(self.schema(value, depth + 1)?)),
            ("additionalProperties", Value::Bool(_)) if !given.contains_key("patternProperties") => {
                set(value.clone());
            }
            ("enum", Value::Array(values)) => {
                let values: Vec<Value> = values.iter().filter(|value| is_scalar(value)).cloned().collect();
                if (1..=MAX_ENUM_VALUES).contains(&values.len()) {
                    set(Value::Array(values));
                }
            }
            ("const", value) if is_scalar(value) => drop(plain.insert("enum".to_owned(), json!([value]))),
            ("default", value) if approximate_bytes(value) <= MAX_DEFAULT_BYTES => set(value.clone()),
            (
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf",
                Value::Number(_),
            ) => {
                set(value.clone());
            }
            ("minLength" | "maxLength" | "minItems" | "maxItems", value) if value.is_u64() => {
                set(value.clone());
            }
            ("allOf", Value::Array(all)) => {
                for one in all {
                    let one = self.schema(one, depth + 1)?;
                    merge(plain, one);
                }
            }
            ("anyOf" | "oneOf", Value::Array(all)) => {
                let choices: Result<Vec<_>, _> =
                    all.iter().map(|one| Ok(Value::Object(self.schema(one, depth + 1)?))).collect();
                add_choices(plain, choices.map_err(|why: String| why)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// The properties whose names every provider accepts.
    fn properties(
        &mut self,
        members: &'a Map<String, Value>,
        given: &Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, String> {
        let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let mut kept = Map::new();
        for (name, member) in members {
            if (1..=MAX_PROPERTY_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_accepted) {
                // A property that is never allowed is not mentioned.
                if member != &Value::Bool(false) {
                    kept.insert(name.clone(), Value::Object(self.schema(member, depth + 1)?));
                }
                continue;
            }
            let shown = clean(name, MAX_SHOWN_CHARS).escape_debug().to_string();
            let required = given.get("required").and_then(Value::as_array);
            if required.is_some_and(|required| required.iter().any(|one| one == name)) {
                return Err(format!(
                    "it requires the argument \"{shown}\", a name that not every provider accepts"
                ));
            }
            self.left_out.push(format!("its argument \"{shown}\", whose name not every provider accepts"));
        }
        Ok(kept)
    }

    /// Inlines a reference within the schema.
    fn follow(&mut self, reference: &'a Value, depth: usize) -> Result<Map<String, Value>, String> {
        let Some(text) = reference.as_str() else { return Ok(Map::new()) };
        let Some(local) = text.strip_prefix('#') else {
            let shown = clean_line(text, MAX_SHOWN_CHARS);
            return Err(format!("its schema refers to {shown:?}, which is not fetched"));
        };
        if self.following.iter().any(|before| before == local) {
            return Ok(Map::new());
        }
        let Some(target) = find(self.root, local) else { return Ok(Map::new()) };
        self.following.push(local.to_owned());
        let found = self.schema(target, depth + 1);
        self.following.pop();
        found
    }
}

/// The valid types of a `type` keyword.
fn types(kind: &Value) -> Vec<&'static str> {
    let known = |kind: &Value| TYPES.into_iter().find(|known| kind == known);
    match kind {
        Value::Array(all) => {
            let mut found: Vec<_> = all.iter().filter_map(known).collect();
            found.dedup();
            found
        }
        one => known(one).into_iter().collect(),
    }
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}
