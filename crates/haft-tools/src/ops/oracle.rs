//! A second opinion: one question to another model, through a Loom server.

use std::time::Duration;

use haft_tool::{HttpRequest, JsonSchema, Redirects, Retry, ToolError, Value, World, json};
use serde::Serialize;
use serde_json::Map;

use crate::ops::api::{Api, MOST_BYTES, json_of, unexpected};
use crate::settings::LoomServer;

const NAME: &str = "The Loom server's oracle";

/// What it answered.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Its words as a message: `role` and `content`.
    pub(crate) message: Map<String, Value>,
    /// The tools it wants called.
    pub(crate) tool_calls: Vec<Value>,
    /// What it cost, if that is known.
    pub(crate) usage: Option<Usage>,
    /// Why it stopped, if that is known.
    pub(crate) finish_reason: Option<Value>,
}

impl Answer {
    /// The answer of a model that gives only words.
    pub(crate) fn said(words: String) -> Self {
        let message = [("role", "assistant".into()), ("content", words.into())];
        let message = message.map(|(name, value): (&str, Value)| (name.to_owned(), value));
        Self {
            message: message.into_iter().collect(),
            tool_calls: Vec::new(),
            usage: None,
            finish_reason: Some("stop".into()),
        }
    }
}

/// What an answer cost, as the server counts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Usage {
    /// Tokens read.
    input_tokens: Value,
    /// Tokens written.
    output_tokens: Value,
}

/// How the oracle answers if nobody says otherwise.
pub(crate) const SYSTEM: &str = "Another agent is doing the work and asks you for advice. Answer as its expert: \
    short, concrete and technically exact. Say what you are unsure of. Do not ask back; name your assumptions.";

/// One question.
pub(crate) struct Question<'a> {
    pub(crate) query: &'a str,
    pub(crate) model: Option<&'a str>,
    pub(crate) max_tokens: i64,
    pub(crate) temperature: f64,
    pub(crate) system: &'a str,
}

/// Asks.
pub(crate) fn ask(
    world: &dyn World,
    server: &LoomServer,
    question: &Question<'_>,
) -> Result<Answer, ToolError> {
    let url = server.at("/proxy/openai/complete")?;
    let body = json!({
        "model": question.model.unwrap_or(server.oracle_model()),
        "messages": [
            {"role": "system", "content": question.system},
            {"role": "user", "content": question.query},
        ],
        "tools": [],
        "max_tokens": question.max_tokens,
        "temperature": question.temperature,
    });
    let request = HttpRequest {
        method: "POST".to_owned(),
        headers: vec![
            ("Accept".to_owned(), "application/json".to_owned()),
            ("Content-Type".to_owned(), "application/json".to_owned()),
        ],
        body: Some(body.to_string().into_bytes()),
        timeout: Duration::from_mins(1),
        keep_bytes: MOST_BYTES,
        redirects: Redirects::SameHost,
        ..HttpRequest::get(url)
    };
    let api = Api {
        retry: Retry {
            statuses: LoomServer::RETRIED,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(10),
            ..Retry::default()
        },
        advice: &|status| match status {
            404 => Some("LOOM_SERVER_URL (tools.loom.server_url) does not lead to a Loom server"),
            503 => Some("OpenAI may not be set up on that server"),
            _ => None,
        },
        ..Api::plain(NAME)
    };
    let answer = api.send(world, &request)?;
    shaped(&json_of(NAME, &answer)?)
}

/// The documented shape. Servers name the counts of tokens in two ways.
fn shaped(answer: &Value) -> Result<Answer, ToolError> {
    let message =
        answer.get("message").and_then(Value::as_object).ok_or_else(|| unexpected(NAME, "message"))?;
    let mut message = message.clone();
    message.entry("role").or_insert_with(|| "assistant".into());
    let count = |names: [&str; 2]| names.iter().find_map(|name| answer["usage"].get(*name)).cloned();
    let (input, output) =
        (count(["input_tokens", "prompt_tokens"]), count(["output_tokens", "completion_tokens"]));
    let usage = (input.is_some() || output.is_some()).then(|| Usage {
        input_tokens: input.unwrap_or(0.into()),
        output_tokens: output.unwrap_or(0.into()),
    });
    let tool_calls = answer.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(Answer { message, tool_calls, usage, finish_reason: answer.get("finish_reason").cloned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_count_tokens_come_out_as_documented() {
        let message = json!({"role": "assistant", "content": "yes"});
        for usage in [
            json!({"input_tokens": 3, "output_tokens": 4}),
            json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}),
        ] {
            let shaped =
                shaped(&json!({"message": message, "usage": usage, "finish_reason": "stop"})).unwrap();
            assert_eq!(
                json!(shaped).to_string(),
                r#"{"message":{"role":"assistant","content":"yes"},"tool_calls":[],"usage":{"input_tokens":3,"output_tokens":4},"finish_reason":"stop"}"#
            );
        }
        let bare = json!(shaped(&json!({"message": {"content": "yes"}})).unwrap());
        assert_eq!(bare["message"]["role"], "assistant");
        assert!(bare["usage"].is_null() && bare["finish_reason"].is_null());
        assert_eq!(shaped(&json!({"error": "x"})).err().unwrap().kind, haft_tool::ErrorKind::Serialization);
    }
}
