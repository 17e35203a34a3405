//! What each provider refuses in a tool definition, checked on the envelopes as they are sent.

use haft::formats::{ProviderFormat, definitions};
use haft::{Value, dialects};

use crate::schemas::defined;

/// Visits a schema and all schemas in it, with their place.
fn each(place: &str, schema: &Value, look: &mut dyn FnMut(&str, &Value)) {
    look(place, schema);
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        each(&format!("{place}.{name}"), inner, look);
    }
    for (key, name) in [("items", "[]"), ("additionalProperties", ".*")] {
        if schema[key].is_object() {
            each(&format!("{place}{name}"), &schema[key], look);
        }
    }
    for option in schema["anyOf"].as_array().into_iter().flatten() {
        each(&format!("{place}|"), option, look);
    }
}

/// Runs a check on each definition of each dialect: its place, its envelope, its schema.
fn each_sent(
    format: ProviderFormat,
    at: fn(&Value) -> &Value,
    schema: &str,
    check: &dyn Fn(&str, &Value, &Value),
) {
    for dialect in dialects::NAMES {
        let sent = definitions(format, &defined(dialect));
        let list = at(&sent).as_array().unwrap_or_else(|| panic!("{dialect}: no list in {sent}"));
        assert!(!list.is_empty(), "{dialect}");
        for tool in list {
            let tool = if tool["function"].is_object() { &tool["function"] } else { tool };
            let place = format!("{dialect} {}", tool["name"].as_str().unwrap());
            check(&place, tool, &tool[schema]);
        }
    }
}

fn is_plain(text: &str, most: usize, more: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || more.contains(letter);
    (1..=most).contains(&text.len()) && text.chars().all(fits)
}

#[test]
fn openai_takes_every_definition() {
    each_sent(ProviderFormat::Openai, |sent| sent, "parameters", &|place, tool, schema| {
        assert!(is_plain(tool["name"].as_str().unwrap(), 64, "_-"), "{place}");
        assert!((1..=1_024).contains(&tool["description"].as_str().unwrap().chars().count()), "{place}");
        assert_eq!(schema["type"], "object", "{place}");
        for refused in ["anyOf", "oneOf", "allOf", "not", "enum"] {
            assert!(schema.get(refused).is_none(), "{place} has {refused} at the top");
        }
        each(place, schema, &mut |place, schema| {
            assert!(
                schema["type"] != "array" || schema["items"].is_object(),
                "{place}: a list without items"
            );
            assert!(
                schema["type"] != "object"
                    || schema.get("additionalProperties").is_some()
                    || schema["properties"].is_object(),
                "{place}"
            );
        });
    });
}

#[test]
fn strict_mode_is_not_claimed_where_a_parameter_is_optional() {
    each_sent(ProviderFormat::Openai, |sent| sent, "parameters", &|place, tool, schema| {
        let fields = schema["properties"].as_object().map_or(0, serde_json::Map::len);
        let required = schema["required"].as_array().map_or(0, Vec::len);
        assert!(fields == required || tool["strict"] != true, "{place}");
    });
}

#[test]
fn anthropic_takes_every_definition() {
    each_sent(ProviderFormat::Anthropic, |sent| sent, "input_schema", &|place, tool, schema| {
        assert!(is_plain(tool["name"].as_str().unwrap(), 64, "_-"), "{place}");
        assert_eq!(schema["type"], "object", "{place}");
        for refused in ["anyOf", "oneOf", "allOf"] {
            assert!(schema.get(refused).is_none(), "{place} has {refused} at the top");
        }
        each(place, schema, &mut |place, schema| {
            for name in schema["properties"].as_object().into_iter().flat_map(serde_json::Map::keys) {
                assert!(is_plain(name, 64, "_.-"), "{place}.{name}");
            }
        });
    });
}

/// The keywords that Gemini's schemas know.
const GEMINI: &[&str] = &[
    "type",
    "description",
    "enum",
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
    "additionalProperties",
    "required",
    "default",
];

#[test]
fn gemini_takes_every_definition() {
    each_sent(
        ProviderFormat::Gemini,
        |sent| &sent[0]["functionDeclarations"],
        "parametersJsonSchema",
        &|place, tool, schema| {
            let name = tool["name"].as_str().unwrap();
            assert!(
                is_plain(name, 64, "_-") && !name.starts_with(|c: char| c.is_ascii_digit() || c == '-'),
                "{place}"
            );
            assert!(tool.get("parameters").is_none(), "{place}: one of the two, not both");
            each(place, schema, &mut |place, schema| {
                for (keyword, value) in schema.as_object().into_iter().flatten() {
                    assert!(GEMINI.contains(&keyword.as_str()), "{place}: {keyword}");
                    if keyword == "enum" {
                        assert!(
                            value
                                .as_array()
                                .unwrap()
                                .iter()
                                .all(|one| one.as_str().is_some_and(|text| !text.is_empty())),
                            "{place}: {value}"
                        );
                    }
                }
            });
        },
    );
}

#[test]
fn ollama_loses_nothing_that_a_call_needs() {
    each_sent(ProviderFormat::Ollama, |sent| sent, "parameters", &|place, _, schema| {
        // What it does not know it drops without a word: a schema must not say by such a keyword what kind of value it wants.
        each(place, schema, &mut |place, schema| {
            for refused in ["oneOf", "allOf", "$ref", "const", "not", "if"] {
                assert!(schema.get(refused).is_none(), "{place}: {refused}");
            }
        });
    });
}

#[test]
fn mcp_takes_every_definition() {
    each_sent(ProviderFormat::Mcp, |sent| &sent["tools"], "inputSchema", &|place, tool, schema| {
        assert!(is_plain(tool["name"].as_str().unwrap(), 128, "_-."), "{place}");
        assert_eq!(schema["type"], "object", "{place}");
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{place}");
    });
}
