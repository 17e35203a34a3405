//! Checks arguments against the schema of a server's tool, so that the model learns what is wrong in the same words for every
//! server, before anything is sent.

use haft_mcp::client::portable::clean_line;
use haft_tool::{ToolError, Value, is_checked_within};
use jsonschema::PatternOptions;

/// Problems that one error names.
const MAX_PROBLEMS: usize = 5;
/// Characters of the description of one problem.
const MAX_PROBLEM_CHARS: usize = 300;
/// The size of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// More work is left to the server, which has the schema: a schema can make it exponential.
const MAX_STEPS: u64 = 1_000_000;

/// Checks the arguments. A schema that is invalid or refers to other documents is left to the server.
pub(crate) fn check_arguments(schema: &Value, arguments: &Value) -> Result<(), ToolError> {
    // Patterns are the server's, so they run on an engine that takes linear time.
    let patterns = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
    let options = jsonschema::options().with_pattern_options(patterns).offline();
    let Ok(validator) = options.build(schema) else { return Ok(()) };
    if !is_checked_within(schema, arguments, MAX_STEPS) {
        return Ok(());
    }
    let problems: Vec<String> = validator
        .iter_errors(arguments)
        .take(MAX_PROBLEMS)
        .map(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
            clean_line(&format!("{place}{error}"), MAX_PROBLEM_CHARS)
        })
        .collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(ToolError::invalid_arguments(problems.join("; ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_that_do_not_fit_are_named() {
        let schema = json!({
            "type": "object",
            "$defs": {"level": {"type": "integer", "minimum": 1}},
            "properties": {"name": {"type": "string", "pattern": "^a+$"}, "level": {"$ref": "#/$defs/level"}},
            "required": ["name"],
            "additionalProperties": false,
        });
        assert!(check_arguments(&schema, &json!({"name": "aa", "level": 2})).is_ok());
        for (arguments, words) in [
            (json!({}), "\"name\" is a required property"),
            (json!({"name": 7}), "/name: 7 is not of type \"string\""),
            (json!({"name": "b"}), "/name: "),
            (json!({"name": "a", "level": 0}), "/level: "),
            (json!({"name": "a", "more": 1}), "more"),
        ] {
            let error = check_arguments(&schema, &arguments).unwrap_err();
            assert!(error.message.contains(words), "{}", error.message);
        }
    }

    #[test]
    fn schemas_that_cannot_be_used_are_left_to_the_server() {
        for schema in [
            json!({"type": "nonsense"}),
            json!({"$ref": "https://example.org/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"properties": {"a": {"pattern": "("}}}),
            json!({"properties": {"a": {"pattern": "(a{1000}){1000}"}}}),
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        ] {
            assert!(check_arguments(&schema, &json!({"a": "b"})).is_ok(), "{schema}");
        }
    }
}
