//! The JSON Schema of an input type, in the plain form every provider takes.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema of `T`: doc comments as descriptions, no references, no nulls for what is optional.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut schema);
    if let Value::Object(object) = &mut schema {
        object.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    schema
}

/// Drops what providers refuse or the model need not pay for.
fn plain(schema: &mut Value) {
    match schema {
        Value::Bool(true) => *schema = Value::Object(serde_json::Map::new()),
        Value::Object(object) => {
            object.remove("title");
            object.remove("format");
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(values)) = object.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            if let Some(Value::Array(options)) = object.get_mut("anyOf") {
                options.retain(|option| option.get("type").is_none_or(|kind| kind != "null"));
                if let [Value::Object(only)] = options.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    for (key, value) in only {
                        object.entry(key).or_insert(value);
                    }
                }
            }
            for (key, value) in object.iter_mut() {
                match (key.as_str(), &mut *value) {
                    ("properties" | "patternProperties" | "$defs", Value::Object(members)) => {
                        members.values_mut().for_each(plain);
                    }
                    ("items" | "additionalProperties", Value::Object(_) | Value::Bool(true)) => plain(value),
                    ("anyOf" | "oneOf" | "allOf", Value::Array(options)) => {
                        options.iter_mut().for_each(plain);
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    /// Says how.
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Content,
        Count,
    }

    /// Find text.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    struct Input {
        /// What to find.
        pattern: String,
        /// How many.
        #[serde(rename = "-C")]
        context: Option<u64>,
        mode: Option<Mode>,
        any: Option<Value>,
        #[serde(default)]
        tags: Vec<String>,
    }

    #[test]
    fn a_schema_is_plain_and_carries_the_doc_comments() {
        assert_eq!(
            schema_of::<Input>(),
            json!({
                "description": "Find text.",
                "type": "object",
                "properties": {
                    "pattern": {"description": "What to find.", "type": "string"},
                    "-C": {"description": "How many.", "type": "integer", "minimum": 0},
                    "mode": {"description": "Says how.", "type": "string", "enum": ["content", "count"]},
                    "any": {},
                    "tags": {"type": "array", "items": {"type": "string"}, "default": []}
                },
                "additionalProperties": false,
                "required": ["pattern"]
            })
        );
    }
}
