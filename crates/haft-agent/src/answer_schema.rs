//! The form of the final answer: a JSON value that fits a schema.

use std::fmt;
use std::sync::Arc;

use haft_model::OutputSchema;
use haft_tool::{ToolError, Value, is_checked_within};
use jsonschema::{PatternOptions, Validator};

/// Problems that one error names.
const MAX_PROBLEMS: usize = 5;
/// Bytes of a schema; it is a part of every request.
const MAX_SCHEMA_BYTES: usize = 256 << 10;
/// The size of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;
/// The work of checking an answer: a schema can make it exponential.
const MAX_STEPS: u64 = 1_000_000;
/// The name by which providers know the schema.
const SCHEMA_NAME: &str = "final_answer";

/// The JSON Schema that the final answer of each turn must fit.
#[derive(Clone)]
pub struct AnswerSchema {
    schema: OutputSchema,
    validator: Arc<Validator>,
}

impl AnswerSchema {
    /// Takes a schema. Fails if it is none, is too large, or refers to other documents.
    pub fn new(schema: Value) -> Result<Self, ToolError> {
        let refuse =
            |why: &str| ToolError::invalid_arguments(format!("The output schema cannot be used: {why}."));
        if !schema.is_object() {
            return Err(refuse("it is not a JSON object"));
        }
        if schema.to_string().len() > MAX_SCHEMA_BYTES {
            return Err(refuse(&format!("it has more than {MAX_SCHEMA_BYTES} bytes, which is the limit")));
        }
        let patterns =
            PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
        let options = jsonschema::options().with_pattern_options(patterns).offline();
        let validator = options.build(&schema).map_err(|error| refuse(&error.to_string()))?;
        let schema = OutputSchema { name: SCHEMA_NAME.to_owned(), schema };
        Ok(Self { schema, validator: Arc::new(validator) })
    }

    /// The schema, as a request has it.
    pub fn as_output(&self) -> &OutputSchema {
        &self.schema
    }

    /// The value of an answer: its text, or the one fenced block that its text is. Says what is wrong if it does not fit.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(without_fence(text.trim()))
            .map_err(|error| format!("the answer is not one JSON value ({error})"))?;
        if !is_checked_within(&self.schema.schema, &value, MAX_STEPS) {
            return Err("the schema takes too long to check".to_owned());
        }
        let problem = |error: jsonschema::ValidationError<'_>| match error.instance_path().to_string() {
            place if place.is_empty() => error.to_string(),
            place => format!("{place}: {error}"),
        };
        let problems: Vec<String> =
            self.validator.iter_errors(&value).take(MAX_PROBLEMS).map(problem).collect();
        if problems.is_empty() { Ok(value) } else { Err(problems.join("; ")) }
    }

    /// What a model is told that no provider holds to the schema.
    pub(crate) fn instruction(&self) -> String {
        format!(
            "When you are done, your final answer must be one JSON value that fits this JSON Schema, and nothing else: no other text and no \
             code fence.\n{}",
            self.schema.schema
        )
    }
}

impl fmt::Debug for AnswerSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnswerSchema").field(&self.schema.schema).finish()
    }
}

/// What is inside of a text that is one fenced block.
fn without_fence(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inside = inside.and_then(|inside| inside.split_once('\n')).filter(|(info, _)| !info.contains('{'));
    inside.map_or(text, |(_, inside)| inside.trim())
}

#[cfg(test)]
mod tests {
    use haft_tool::json;

    use super::*;

    #[test]
    fn an_answer_is_read_or_named_what_is_wrong() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let schema = AnswerSchema::new(schema).unwrap();
        for text in ["{\"n\": 1}", " {\"n\": 1}\n", "```json\n{\"n\": 1}\n```", "```\n{\"n\": 1}```"] {
            assert_eq!(schema.read(text), Ok(json!({"n": 1})), "{text}");
        }
        for (text, words) in [
            ("The number is 1.", "not one JSON value"),
            ("{\"n\": 1} or {\"n\": 2}", "not one JSON value"),
            ("{\"n\": \"1\"}", "/n: "),
            ("{}", "required"),
            ("```json", "not one JSON value"),
            ("", "not one JSON value"),
        ] {
            let problem = schema.read(text).unwrap_err();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_refused() {
        let huge = "x".repeat(MAX_SCHEMA_BYTES);
        for schema in [
            json!(true),
            json!({"type": "nonsense"}),
            json!({"$ref": "https://example.org/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"properties": {"a": {"pattern": "(a{1000}){1000}"}}}),
            json!({ "description": huge }),
        ] {
            assert!(AnswerSchema::new(schema).is_err());
        }
    }
}
