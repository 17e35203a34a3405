//! Schemas in the plain form that every provider takes.
//!
//! An object at the top, references put where they point, choices at the top put together, and no keyword that one of the
//! providers refuses. What gets lost this way (patterns, formats, conditions) the server still checks.

use serde_json::{Map, Value, json};

use super::super::listing::weigh;
use super::choice::{add_choices, join, merge};
use super::reference::find;
use super::text::clean;

/// How deep a schema may go; below, anything is allowed.
const DEEPEST: usize = 24;
/// How many parts a schema may have when its references are put in.
const MOST_PARTS: usize = 4000;
/// How large it may be then: every request to a model pays for it.
const MOST_BYTES: usize = 64 << 10;
/// How long a description in it may be.
const MOST_DESCRIPTION: usize = 1000;
/// How many values one choice may have.
const MOST_VALUES: usize = 500;
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// A plain schema that takes what `schema` takes, about, and what had to be left out of it; or why there is none.
pub fn plain_schema(schema: &Value) -> Result<(Value, Vec<String>), String> {
    let top = match schema {
        Value::Null => Map::new(),
        Value::Object(_) => {
            let mut walk = Walk { root: schema, parts: 0, following: Vec::new(), left_out: Vec::new() };
            let plain = walk.schema(schema, 0)?;
            return finish(plain).map(|plain| (plain, walk.left_out));
        }
        _ => return Err("its schema is no object".to_owned()),
    };
    finish(top).map(|plain| (plain, Vec::new()))
}

/// Makes an object of what stands at the top.
fn finish(mut top: Map<String, Value>) -> Result<Value, String> {
    let is_object = |schema: &Value| match schema.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    };
    if let Some(Value::Array(choices)) = top.remove("anyOf") {
        let choices: Vec<Value> = choices.into_iter().filter(is_object).collect();
        if choices.is_empty() {
            return Err("its arguments are no object".to_owned());
        }
        join(&mut top, choices);
    }
    let all = Value::Object(top);
    if !is_object(&all) {
        return Err("its arguments are no object".to_owned());
    }
    let Value::Object(mut top) = all else { return Err("its schema is no object".to_owned()) };
    for keyword in ["enum", "items", "default"] {
        top.remove(keyword);
    }
    top.insert("type".to_owned(), json!("object"));
    top.entry("properties").or_insert_with(|| json!({}));
    keep_known(&mut top);
    let plain = Value::Object(top);
    match weigh(&plain) {
        weight if weight > MOST_BYTES => {
            Err(format!("its schema has {weight} bytes; at most {MOST_BYTES} are sent"))
        }
        _ => Ok(plain),
    }
}

/// Only properties that there are can be required.
fn keep_known(schema: &mut Map<String, Value>) {
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name.as_str().is_some_and(|name| properties.contains_key(name)));
        if required.is_empty() {
            schema.remove("required");
        }
    }
}

struct Walk<'a> {
    root: &'a Value,
    parts: usize,
    /// The references on the way here, so that none is followed into itself.
    following: Vec<String>,
    left_out: Vec<String>,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Result<Map<String, Value>, String> {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return Err(format!("its schema has more than {MOST_PARTS} parts"));
        }
        let mut plain = Map::new();
        let Value::Object(given) = schema else { return Ok(plain) };
        if depth > DEEPEST {
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
        keep_known(&mut plain);
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
            ("description", Value::String(words)) => set(Value::from(clean(words, MOST_DESCRIPTION))),
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
                if (1..=MOST_VALUES).contains(&values.len()) {
                    set(Value::Array(values));
                }
            }
            ("const", value) if is_scalar(value) => drop(plain.insert("enum".to_owned(), json!([value]))),
            ("default", value) if weigh(value) <= MOST_DESCRIPTION => set(value.clone()),
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

    /// The properties whose names every provider takes.
    fn properties(
        &mut self,
        members: &'a Map<String, Value>,
        given: &Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, String> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let mut kept = Map::new();
        for (name, member) in members {
            if (1..=64).contains(&name.len()) && name.bytes().all(fits) {
                // What must never be there need not be told of.
                if member != &Value::Bool(false) {
                    kept.insert(name.clone(), Value::Object(self.schema(member, depth + 1)?));
                }
                continue;
            }
            let shown = clean(name, 70).escape_debug().to_string();
            let required = given.get("required").and_then(Value::as_array);
            if required.is_some_and(|required| required.iter().any(|one| one == name)) {
                return Err(format!(
                    "it needs an argument \"{shown}\", a name that not every provider takes"
                ));
            }
            self.left_out.push(format!("its argument \"{shown}\", whose name not every provider takes"));
        }
        Ok(kept)
    }

    /// What a reference points to, if that is in the same schema.
    fn follow(&mut self, reference: &'a Value, depth: usize) -> Result<Map<String, Value>, String> {
        let Some(text) = reference.as_str() else { return Ok(Map::new()) };
        let Some(local) = text.strip_prefix('#') else {
            let shown = super::text::clean_line(text, 100);
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

/// The types that a schema allows.
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
