//! A second opinion: one question to another model, through a Loom server.

use std::time::Duration;

use haft_tool::{HttpRequest, Redirects, Retry, ToolError, Value, World, json};

use crate::ops::api::{Api, MOST_BYTES, json_of, unexpected};
use crate::settings::LoomServer;

const NAME: &str = "The Loom server's oracle";

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

/// Asks; gives `{message, tool_calls, usage, finish_reason}`.
pub(crate) fn ask(
    world: &dyn World,
    server: &LoomServer,
    question: &Question<'_>,
) -> Result<Value, ToolError> {
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
fn shaped(answer: &Value) -> Result<Value, ToolError> {
    let message =
        answer.get("message").and_then(Value::as_object).ok_or_else(|| unexpected(NAME, "message"))?;
    let mut message = message.clone();
    message.entry("role").or_insert_with(|| "assistant".into());
    let count = |names: [&str; 2]| names.iter().find_map(|name| answer["usage"].get(*name)).cloned();
    let (input, output) =
        (count(["input_tokens", "prompt_tokens"]), count(["output_tokens", "completion_tokens"]));
    let usage = (input.is_some() || output.is_some()).then(
        || json!({"input_tokens": input.unwrap_or(0.into()), "output_tokens": output.unwrap_or(0.into())}),
    );
    Ok(json!({
        "message": message,
        "tool_calls": answer.get("tool_calls").filter(|calls| calls.is_array()).cloned().unwrap_or_else(|| json!([])),
        "usage": usage,
        "finish_reason": answer.get("finish_reason"),
    }))
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
                shaped.to_string(),
                r#"{"message":{"role":"assistant","content":"yes"},"tool_calls":[],"usage":{"input_tokens":3,"output_tokens":4},"finish_reason":"stop"}"#
            );
        }
        let bare = shaped(&json!({"message": {"content": "yes"}})).unwrap();
        assert_eq!(bare["message"]["role"], "assistant");
        assert!(bare["usage"].is_null() && bare["finish_reason"].is_null());
        assert_eq!(shaped(&json!({"error": "x"})).unwrap_err().kind, haft_tool::ErrorKind::Serialization);
    }
}
