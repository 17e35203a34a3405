//! One line of the program that drives the agent.

use serde_json::{Map, Value};

/// Longest id that is kept.
const MAX_ID_CHARS: usize = 256;

/// A line of the program that drives the agent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum HostLine {
    /// The program wants something.
    Request {
        /// The id that the answer has to name.
        id: String,
        /// What it wants; `subtype` is its kind.
        request: Map<String, Value>,
    },
    /// The program answers a request.
    Reply(HostReply),
    /// The user says something.
    User(UserLine),
    /// A line that needs no answer.
    Ignored,
}

/// The program's answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct HostReply {
    /// The id of the request.
    pub request_id: String,
    /// What it answered, or its error.
    pub result: Result<Value, String>,
}

/// What the user says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserLine {
    /// The content: text, or a list of blocks.
    pub content: Value,
    /// The id that the program gave the message.
    pub uuid: Option<String>,
}

impl HostLine {
    /// Reads one line; the error says what is wrong with it.
    pub fn read(line: &[u8]) -> Result<Self, String> {
        let value: Value =
            serde_json::from_slice(line).map_err(|error| format!("it is not JSON: {error}"))?;
        let Value::Object(mut members) = value else { return Err("it is not an object".to_owned()) };
        match members.get("type").and_then(Value::as_str) {
            Some("control_request") => {
                let id = members.get("request_id").and_then(id).ok_or("the request has no request_id")?;
                match members.remove("request") {
                    Some(Value::Object(request)) => Ok(Self::Request { id, request }),
                    _ => Err("the request has no request object".to_owned()),
                }
            }
            Some("control_response") => {
                let Some(Value::Object(mut response)) = members.remove("response") else {
                    return Err("the response is not an object".to_owned());
                };
                let request_id =
                    response.get("request_id").and_then(id).ok_or("the response names no request")?;
                let is_error = response.get("subtype").and_then(Value::as_str) == Some("error");
                let result = if is_error {
                    let error = response.get("error").and_then(Value::as_str);
                    Err(error.unwrap_or("the program gave no reason").to_owned())
                } else {
                    Ok(response.remove("response").unwrap_or_default())
                };
                Ok(Self::Reply(HostReply { request_id, result }))
            }
            Some("user") => {
                let uuid = members.get("uuid").and_then(id);
                match members.remove("message") {
                    Some(Value::Object(mut message)) => {
                        let content = message.remove("content").unwrap_or_default();
                        Ok(Self::User(UserLine { content, uuid }))
                    }
                    _ => Err("the user's message is not an object".to_owned()),
                }
            }
            Some(_) => Ok(Self::Ignored),
            None => Err("it has no type".to_owned()),
        }
    }
}

fn id(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty() && text.chars().count() <= MAX_ID_CHARS)?;
    Some(text.to_owned())
}
