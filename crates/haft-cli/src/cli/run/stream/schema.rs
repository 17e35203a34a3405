//! Answers that must fit a JSON Schema.

use haft_tool::Value;

use crate::servers::check_arguments;

/// How often the model is told what is wrong with its answer.
pub(super) const MAX_SCHEMA_RETRIES: u32 = 4;

/// What came of an answer that must fit a schema.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SchemaOutcome {
    /// The answer as JSON.
    Fits(Value),
    /// What is wrong with it.
    Invalid(String),
}

impl SchemaOutcome {
    /// Reads the answer, which may stand in a block of code.
    pub(super) fn of(text: &str, schema: &Value) -> Self {
        let value: Value = match serde_json::from_str(without_fence(text)) {
            Ok(value) => value,
            Err(error) => return Self::Invalid(format!("it is not JSON: {error}")),
        };
        match check_arguments(schema, &value) {
            Ok(()) => Self::Fits(value),
            Err(error) => Self::Invalid(error.message),
        }
    }
}

/// What the model is told about an answer that does not fit.
pub(super) fn retry_prompt(why: &str) -> String {
    format!(
        "Your answer does not fit the JSON schema that was asked for: {why}. Answer again with nothing but one JSON value that fits."
    )
}

/// The section of the system prompt that names the schema, for models that cannot be held to it.
pub(super) fn section(schema: &Value) -> String {
    format!("Your last answer must be nothing but one JSON value that fits this JSON Schema:\n\n{schema}")
}

/// The text without the lines that mark it as a block of code.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.and_then(|inner| inner.split_once('\n')).map_or(text, |(_, body)| body.trim())
}
