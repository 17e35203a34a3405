//! What a type says, without its words: the common ground of a TypeScript type and a JSON Schema.

use std::collections::BTreeMap;

use haft::{Value, json};

/// A text that can only be this one.
pub(crate) fn literal(text: &str) -> Value {
    json!({"enum": [text]})
}

/// A list of so many.
pub(crate) fn array(items: &Value, least: Option<u64>, most: Option<u64>) -> Value {
    json!({"items": items, "least": least, "most": most})
}

/// An object; `rest` is the shape of further members, null where there may be none.
pub(crate) fn object(fields: &BTreeMap<String, Value>, mut required: Vec<String>, rest: &Value) -> Value {
    required.sort();
    json!({"fields": fields, "required": required, "rest": rest})
}

/// One of several: texts become one choice, lists of one type become one list, in an order that does not matter.
pub(crate) fn union(options: Vec<Value>) -> Value {
    let mut choices: Vec<Value> = Vec::new();
    let mut lists: Option<(Value, Option<u64>, Option<u64>)> = None;
    let mut others: Vec<Value> = Vec::new();
    for option in options {
        if let Some(texts) = option["enum"].as_array() {
            choices.extend(texts.clone());
        } else if !option["items"].is_null() {
            let (least, most) = (option["least"].as_u64(), option["most"].as_u64());
            let next = match lists.take() {
                Some((items, a, b)) if items == option["items"] => (items, a.min(least), b.max(most)),
                Some((items, a, b)) => {
                    others.push(array(&items, a, b));
                    (option["items"].clone(), least, most)
                }
                None => (option["items"].clone(), least, most),
            };
            lists = Some(next);
        } else {
            others.push(option);
        }
    }
    if !choices.is_empty() {
        choices.sort_by_key(Value::to_string);
        others.push(json!({"enum": choices}));
    }
    others.extend(lists.map(|(items, least, most)| array(&items, least, most)));
    others.sort_by_key(Value::to_string);
    if let [only] = others.as_slice() { only.clone() } else { json!({"any": others}) }
}

/// The shape of what a schema lets through; bounds of numbers are not part of it.
pub(crate) fn of_schema(schema: &Value) -> Value {
    if let Some(texts) = schema["enum"].as_array() {
        return union(texts.iter().map(|text| json!({"enum": [text]})).collect());
    }
    if !schema["const"].is_null() {
        return json!({"enum": [schema["const"]]});
    }
    if let Some(options) = schema["anyOf"].as_array() {
        return union(options.iter().map(of_schema).collect());
    }
    match &schema["type"] {
        Value::Array(types) => {
            union(types.iter().map(|kind| of_type(kind.as_str().unwrap(), schema)).collect())
        }
        Value::String(kind) => of_type(kind, schema),
        _ => json!("unknown"),
    }
}

fn of_type(kind: &str, schema: &Value) -> Value {
    match kind {
        "integer" => json!("number"),
        "array" => {
            array(&of_schema(&schema["items"]), schema["minItems"].as_u64(), schema["maxItems"].as_u64())
        }
        "object" => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let required = schema["required"].as_array().into_iter().flatten();
            let rest = match &schema["additionalProperties"] {
                Value::Bool(false) => Value::Null,
                Value::Object(rest) if !rest.is_empty() => of_schema(&schema["additionalProperties"]),
                _ => json!("unknown"),
            };
            object(
                &fields.map(|(name, field)| (name.clone(), of_schema(field))).collect(),
                required.map(|name| name.as_str().unwrap().to_owned()).collect(),
                &rest,
            )
        }
        other => json!(other),
    }
}
