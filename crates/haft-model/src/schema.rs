//! Tool definitions in the form that each provider accepts.

use std::borrow::Cow;

use haft_tool::Value;
use serde_json::{Map, json};

/// The longest name that all providers accept.
const MAX_NAME_BYTES: usize = 64;
/// Hexadecimal digits of the hash in a name that had to be changed.
const HASH_CHARS: usize = 8;
/// Deeper schemas are sent without what is below.
const MAX_DEPTH: usize = 40;

/// The name of a tool as all providers accept it: letters, digits, `_` and `-`. A name that has to be changed ends with a hash of
/// the original, so it is the same in every request.
pub fn wire_name(name: &str) -> Cow<'_, str> {
    let is_accepted = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let begins_well = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    if begins_well && name.len() <= MAX_NAME_BYTES && name.chars().all(is_accepted) {
        return Cow::Borrowed(name);
    }
    let mut changed = String::new();
    if !begins_well {
        changed.push('_');
    }
    changed.extend(name.chars().map(|letter| if is_accepted(letter) { letter } else { '_' }));
    changed.truncate(MAX_NAME_BYTES - 1 - HASH_CHARS);
    let hash = blake3::hash(name.as_bytes()).to_hex();
    changed.push('_');
    changed.push_str(hash.get(..HASH_CHARS).unwrap_or_default());
    Cow::Owned(changed)
}

/// The schema for OpenAI's strict mode, or `None` if it cannot be one: strict mode wants every property to be required, and
/// making optional ones nullable would change what the tool receives.
pub fn strict_schema(schema: &Value) -> Option<Value> {
    strict(schema, MAX_DEPTH)
}

fn strict(schema: &Value, depth: usize) -> Option<Value> {
    const KEYWORDS: &[&str] = &[
        "type",
        "description",
        "enum",
        "const",
        "items",
        "properties",
        "required",
        "additionalProperties",
        "anyOf",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "pattern",
        "title",
    ];
    let object = schema.as_object()?;
    let depth = depth.checked_sub(1)?;
    let mut strict_object = Map::new();
    for (keyword, value) in object {
        let changed = match keyword.as_str() {
            "properties" => Value::Object(
                value
                    .as_object()?
                    .iter()
                    .map(|(name, inner)| Some((name.clone(), strict(inner, depth)?)))
                    .collect::<Option<_>>()?,
            ),
            "items" => strict(value, depth)?,
            "anyOf" => Value::Array(
                value.as_array()?.iter().map(|inner| strict(inner, depth)).collect::<Option<_>>()?,
            ),
            "additionalProperties" if value != &json!(false) => return None,
            keyword if KEYWORDS.contains(&keyword) => value.clone(),
            _ => return None,
        };
        strict_object.insert(keyword.clone(), changed);
    }
    if object.get("type") == Some(&json!("object")) {
        let names = object.get("properties").and_then(Value::as_object).map_or(0, Map::len);
        let required = object.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        if names != required {
            return None;
        }
        strict_object.insert("additionalProperties".to_owned(), json!(false));
        strict_object.entry("required").or_insert_with(|| json!([]));
        strict_object.entry("properties").or_insert_with(|| json!({}));
    }
    Some(Value::Object(strict_object))
}

/// The schema with the keywords that Ollama passes on; it drops all others.
pub fn ollama_schema(schema: &Value) -> Value {
    const KEYWORDS: &[&str] = &["type", "description", "enum", "items", "properties", "required", "anyOf"];
    reduce(schema, KEYWORDS, &common_keywords, MAX_DEPTH)
}

/// Replaces keywords that neither server knows by those that say the same.
fn common_keywords(object: &mut Map<String, Value>) {
    if let Some(value) = object.remove("const") {
        object.insert("enum".to_owned(), json!([value]));
    }
    if let Some(choices) = object.remove("oneOf") {
        object.entry("anyOf").or_insert(choices);
    }
}

/// The schema in Gemini's subset of OpenAPI.
pub fn openapi_schema(schema: &Value) -> Value {
    const KEYWORDS: &[&str] = &[
        "type",
        "description",
        "enum",
        "format",
        "items",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "anyOf",
        "properties",
        "required",
        "nullable",
        "title",
        "default",
    ];
    reduce(schema, KEYWORDS, &openapi_keywords, MAX_DEPTH)
}

fn openapi_keywords(object: &mut Map<String, Value>) {
    common_keywords(object);
    for (from, to) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(value) = object.remove(from) {
            object.entry(to).or_insert(value);
        }
    }
    // One type each: null is a flag, and further types are alternatives.
    if let Some(Value::Array(types)) = object.get("type").cloned() {
        let others: Vec<Value> = types.iter().filter(|kind| *kind != "null").cloned().collect();
        if others.len() < types.len() {
            object.insert("nullable".to_owned(), json!(true));
        }
        match others.as_slice() {
            [only] => drop(object.insert("type".to_owned(), only.clone())),
            several => {
                object.remove("type");
                let choices = several.iter().map(|kind| json!({"type": kind})).collect();
                object.entry("anyOf").or_insert(Value::Array(choices));
            }
        }
    }
    // Values of enumerations are strings there.
    if let Some(Value::Array(values)) = object.get_mut("enum")
        && !values.iter().all(Value::is_string)
    {
        object.remove("enum");
    }
}

/// The schema with these keywords alone, at every level, after `change`.
fn reduce(
    schema: &Value,
    keywords: &[&str],
    change: &dyn Fn(&mut Map<String, Value>),
    depth: usize,
) -> Value {
    let (Value::Object(object), Some(depth)) = (schema, depth.checked_sub(1)) else { return json!({}) };
    let inner = |value: &Value| reduce(value, keywords, change, depth);
    let mut object = object.clone();
    change(&mut object);
    let mut reduced = Map::new();
    for (keyword, value) in object {
        let value = match (keyword.as_str(), value) {
            (keyword, _) if !keywords.contains(&keyword) => continue,
            ("properties", Value::Object(members)) => {
                Value::Object(members.iter().map(|(name, member)| (name.clone(), inner(member))).collect())
            }
            ("items", items) => inner(&items),
            ("anyOf", Value::Array(choices)) => Value::Array(choices.iter().map(inner).collect()),
            (_, value) => value,
        };
        reduced.insert(keyword, value);
    }
    Value::Object(reduced)
}
