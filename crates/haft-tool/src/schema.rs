//! The JSON Schema of a type, in the plain form that every provider accepts.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The schema of `T`: doc comments as descriptions, no references, no nulls for what is optional.
pub fn schema_of<T: JsonSchema>() -> Value {
    made::<T>(SchemaSettings::draft2020_12(), without_nulls)
}

/// The schema of the result `T` as it is written: with nulls, and with lists that may end with what `bound` puts in place of
/// the rest.
pub fn result_schema_of<T: JsonSchema>() -> Value {
    made::<T>(SchemaSettings::draft2020_12().for_serialize(), with_cut_lists)
}

/// The top-level fields of `T` whose schema has a `format`, with that format. A tool marks its paths with
/// `#[schemars(extend("format" = "path"))]` and its durations with `milliseconds` or `seconds`, for a person who types
/// `file_path=src/a.rs timeout=30s`. [`schema_of`] leaves formats out, because providers refuse unknown ones.
pub fn formats_of<T: JsonSchema>() -> Vec<(String, String)> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties
        .filter_map(|(name, field)| Some((name.clone(), field.get("format")?.as_str()?.to_owned())))
        .collect()
}

fn made<T: JsonSchema>(settings: SchemaSettings, change: SchemaEdit) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut schema, change);
    if let Value::Object(object) = &mut schema {
        object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// A change to each schema inside a schema.
type SchemaEdit = fn(&mut Map<String, Value>);

fn without_nulls(object: &mut Map<String, Value>) {
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
}

fn with_cut_lists(object: &mut Map<String, Value>) {
    if let Some(items @ Value::Object(_)) = object.get_mut("items") {
        *items = json!({"anyOf": [items.take(), {
            "description": "In the place of the rest, if the list was cut.",
            "type": "object",
            "properties": {"_truncated": {"const": true}, "original_count": {"type": "integer"}},
            "required": ["_truncated", "original_count"],
        }]});
    }
}

/// Drops what providers refuse or what only costs tokens, and applies `change` to every schema.
fn plain(schema: &mut Value, change: SchemaEdit) {
    match schema {
        Value::Bool(true) => *schema = Value::Object(Map::new()),
        Value::Object(object) => {
            object.remove("title");
            object.remove("format");
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            change(object);
            for (key, value) in object.iter_mut() {
                match (key.as_str(), &mut *value) {
                    ("properties" | "patternProperties" | "$defs", Value::Object(members)) => {
                        for member in members.values_mut() {
                            plain(member, change);
                        }
                    }
                    ("items" | "additionalProperties", Value::Object(_) | Value::Bool(true)) => {
                        plain(value, change);
                    }
                    ("anyOf" | "oneOf" | "allOf", Value::Array(options)) => {
                        for option in options {
                            plain(option, change);
                        }
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
    use serde::{Deserialize, Serialize};

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
        #[schemars(extend("format" = "path"))]
        place: Option<String>,
    }

    #[test]
    fn formats_are_known_but_not_part_of_the_schema() {
        let formats = formats_of::<Input>();
        assert!(formats.contains(&("place".to_owned(), "path".to_owned())), "{formats:?}");
        assert_eq!(schema_of::<Input>()["properties"]["place"], json!({"type": "string"}));
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
                    "tags": {"type": "array", "items": {"type": "string"}, "default": []},
                    "place": {"type": "string"}
                },
                "additionalProperties": false,
                "required": ["pattern"]
            })
        );
    }

    /// What was found.
    #[derive(Serialize, JsonSchema)]
    struct Given {
        /// How it ended.
        code: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        more: Option<bool>,
        names: Vec<String>,
        any: Vec<Value>,
    }

    #[test]
    fn the_schema_of_a_result_tells_nulls_and_cut_lists() {
        let schema = result_schema_of::<Given>();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], json!(["code", "names", "any"]));
        let properties = &schema["properties"];
        let code = json!({"description": "How it ended.", "type": ["integer", "null"]});
        assert_eq!(properties["code"], code);
        let item = &properties["names"]["items"]["anyOf"];
        assert_eq!(item[0], json!({"type": "string"}));
        assert_eq!(item[1]["required"], json!(["_truncated", "original_count"]));
        assert_eq!(properties["any"], json!({"type": "array", "items": {}}));
    }
}
