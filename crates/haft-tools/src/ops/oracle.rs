//! One question to another model, through a Loom server.

use std::time::Duration;

use haft_tool::{HttpRequest, JsonSchema, Redirects, RetryPolicy, ToolError, Value, World, json};
use serde::Serialize;
use serde_json::Map;

use crate::ops::api::{JsonApi, MAX_RESPONSE_BYTES, missing_field, parse_json, with_client};
use crate::settings::LoomSettings;

const NAME: &str = "The Loom server's oracle";
const TIMEOUT: Duration = Duration::from_mins(1);
const RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);

/// The oracle's answer, as it is shown.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OracleAnswer {
    /// Its words as a message: `role` and `content`.
    pub(crate) message: Map<String, Value>,
    /// The tools it wants called.
    pub(crate) tool_calls: Vec<Value>,
    /// What it cost, if that is known.
    pub(crate) usage: Option<OracleUsage>,
    /// Why it stopped, if that is known.
    pub(crate) finish_reason: Option<Value>,
}

impl OracleAnswer {
    /// The answer of a model that returns only text.
    pub(crate) fn from_text(text: String) -> Self {
        let message = [("role", "assistant".into()), ("content", text.into())];
        let message = message.map(|(name, value): (&str, Value)| (name.to_owned(), value));
        Self {
            message: message.into_iter().collect(),
            tool_calls: Vec::new(),
            usage: None,
            finish_reason: Some("stop".into()),
        }
    }
}

/// Token counts as the server reports them.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OracleUsage {
    /// Tokens read.
    input_tokens: Value,
    /// Tokens written.
    output_tokens: Value,
}

/// The default system prompt.
pub(crate) const SYSTEM_PROMPT: &str = "Another agent is doing the work and asks you for advice. Answer as its expert: \
    short, concrete and technically exact. Say what you are unsure of. Do not ask back; name your assumptions.";

/// One question.
pub(crate) struct OracleQuestion<'a> {
    pub(crate) query: &'a str,
    pub(crate) model: Option<&'a str>,
    pub(crate) max_tokens: u32,
    pub(crate) temperature: f64,
    pub(crate) system_prompt: &'a str,
}

/// Sends the question to the server and returns its answer.
pub(crate) fn ask(
    world: &dyn World,
    server: &LoomSettings,
    question: &OracleQuestion<'_>,
) -> Result<OracleAnswer, ToolError> {
    let url = server.url("/proxy/openai/complete")?;
    let body = json!({
        "model": question.model.unwrap_or(server.oracle_model()),
        "messages": [
            {"role": "system", "content": question.system_prompt},
            {"role": "user", "content": question.query},
        ],
        "tools": [],
        "max_tokens": question.max_tokens,
        "temperature": question.temperature,
    });
    let mut headers = vec![
        ("Accept".to_owned(), "application/json".to_owned()),
        ("Content-Type".to_owned(), "application/json".to_owned()),
    ];
    headers.extend(server.authorization());
    let request = HttpRequest {
        method: "POST".to_owned(),
        headers,
        body: Some(body.to_string().into_bytes()),
        timeout: TIMEOUT,
        keep_bytes: MAX_RESPONSE_BYTES,
        redirects: Redirects::SameHost,
        ..HttpRequest::get(url)
    };
    let api = JsonApi {
        retry: RetryPolicy {
            statuses: LoomSettings::RETRIED_STATUSES,
            base: RETRY_DELAY,
            cap: MAX_RETRY_DELAY,
            ..RetryPolicy::default()
        },
        secret: server.token.as_ref(),
        advice: &|status| match status {
            503 => Some("OpenAI may not be set up on that server"),
            status => LoomSettings::advice(status),
        },
        ..JsonApi::plain(NAME)
    };
    let response = with_client(world, |client| api.send(client, &request))?;
    parse_answer(&parse_json(NAME, &response)?)
}

/// Reads an answer in the documented shape. Servers use either of two names for the token counts.
fn parse_answer(response: &Value) -> Result<OracleAnswer, ToolError> {
    let message =
        response.get("message").and_then(Value::as_object).ok_or_else(|| missing_field(NAME, "message"))?;
    let mut message = message.clone();
    message.entry("role").or_insert_with(|| "assistant".into());
    let count = |names: [&str; 2]| names.iter().find_map(|name| response["usage"].get(*name)).cloned();
    let (input, output) =
        (count(["input_tokens", "prompt_tokens"]), count(["output_tokens", "completion_tokens"]));
    let usage = (input.is_some() || output.is_some()).then(|| OracleUsage {
        input_tokens: input.unwrap_or(0.into()),
        output_tokens: output.unwrap_or(0.into()),
    });
    let tool_calls = response.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(OracleAnswer { message, tool_calls, usage, finish_reason: response.get("finish_reason").cloned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_of_token_counts_are_read() {
        let message = json!({"role": "assistant", "content": "yes"});
        for usage in [
            json!({"input_tokens": 3, "output_tokens": 4}),
            json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}),
        ] {
            let answer =
                parse_answer(&json!({"message": message, "usage": usage, "finish_reason": "stop"})).unwrap();
            assert_eq!(
                json!(answer).to_string(),
                r#"{"message":{"role":"assistant","content":"yes"},"tool_calls":[],"usage":{"input_tokens":3,"output_tokens":4},"finish_reason":"stop"}"#
            );
        }
        let bare = json!(parse_answer(&json!({"message": {"content": "yes"}})).unwrap());
        assert_eq!(bare["message"]["role"], "assistant");
        assert!(bare["usage"].is_null() && bare["finish_reason"].is_null());
        assert_eq!(
            parse_answer(&json!({"error": "x"})).err().unwrap().kind,
            haft_tool::ErrorKind::Serialization
        );
    }
}
