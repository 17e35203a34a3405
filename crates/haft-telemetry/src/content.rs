//! Prompts, answers, arguments and results, which are sent only if the user wants that.

use haft_model::{AssistantPart, CallArguments, ContentPart};
use haft_tool::{Secret, Value, clip_chars, json};

/// Longer attributes are cut.
const MAX_ATTRIBUTE_CHARS: usize = 16_000;
/// A shorter value may be an ordinary word and is not covered.
const MIN_SECRET_BYTES: usize = 8;

/// Prepares contents for spans, with this process's secrets covered.
#[derive(Clone)]
pub struct ContentCapture {
    secrets: Vec<Secret>,
}

impl ContentCapture {
    /// A capture that covers these values wherever they occur.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let long = secrets.into_iter().filter(|secret| secret.len() >= MIN_SECRET_BYTES);
        // Each also as it is written in JSON.
        let in_json = |secret: String| {
            let quoted = Value::from(secret.as_str()).to_string();
            let escaped = quoted.trim_matches('"').to_owned();
            [secret, escaped]
        };
        let mut secrets: Vec<String> = long.flat_map(in_json).collect();
        secrets.dedup();
        // Longest first, so that a secret that contains another one is covered as a whole.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets: secrets.into_iter().map(Secret::new).collect() }
    }

    /// The text with secrets covered, cut to the limit.
    pub(crate) fn text(&self, text: &str) -> String {
        let covered = self.secrets.iter().fold(text.to_owned(), |text, secret| secret.cover(&text));
        clip_chars(&covered, MAX_ATTRIBUTE_CHARS, 0).into_owned()
    }

    pub(crate) fn json(&self, value: &Value) -> String {
        self.text(&value.to_string())
    }

    /// A user message in the form of the semantic conventions.
    pub(crate) fn user_message(&self, content: &[ContentPart]) -> String {
        let parts: Vec<Value> = content.iter().map(part_of_user).collect();
        self.json(&json!([{"role": "user", "parts": parts}]))
    }

    pub(crate) fn answer(&self, parts: &[AssistantPart], finish_reason: &str) -> String {
        let parts: Vec<Value> = parts.iter().filter_map(part_of_answer).collect();
        self.json(&json!([{"role": "assistant", "parts": parts, "finish_reason": finish_reason}]))
    }

    pub(crate) fn system(&self, sections: &[String]) -> String {
        let parts: Vec<Value> =
            sections.iter().map(|text| json!({"type": "text", "content": text})).collect();
        self.json(&Value::Array(parts))
    }
}

fn part_of_user(part: &ContentPart) -> Value {
    match part {
        ContentPart::Text { text } => json!({"type": "text", "content": text}),
        ContentPart::Image { media_type, .. } => {
            json!({"type": "blob", "mime_type": media_type, "modality": "image"})
        }
    }
}

fn part_of_answer(part: &AssistantPart) -> Option<Value> {
    match part {
        AssistantPart::Text { text, .. } => Some(json!({"type": "text", "content": text})),
        AssistantPart::Reasoning { text, .. } => Some(json!({"type": "reasoning", "content": text})),
        AssistantPart::ToolCall(call) => {
            let arguments = match &call.arguments {
                CallArguments::Object(object) => Value::Object(object.clone()),
                CallArguments::Invalid(text) => Value::String(text.clone()),
            };
            Some(json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments}))
        }
        AssistantPart::Opaque { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_covered_and_ordinary_words_stay() {
        let capture = ContentCapture::new(["s3cr3t-value".to_owned(), "tea".to_owned()]);
        assert_eq!(capture.text("tea with s3cr3t-value"), "tea with ***");
        let long = "é".repeat(MAX_ATTRIBUTE_CHARS + 10);
        assert!(capture.text(&long).chars().count() < MAX_ATTRIBUTE_CHARS + 100);
    }
}
