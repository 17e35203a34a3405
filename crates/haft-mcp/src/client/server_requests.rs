//! Requests that a server may send to its client: questions to the user, sampling, roots.

use haft_tool::Cancel;
use serde_json::{Map, Value, json};

use super::portable::clean;
use crate::wire::{INVALID_PARAMS, RpcError};

/// Characters of a server's question.
const MAX_MESSAGE_CHARS: usize = 4000;

/// The capabilities that the client declares to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol has as many switches")]
pub struct ClientCapabilities {
    /// Questions to the user as forms.
    pub forms: bool,
    /// URLs that the user is asked to visit.
    pub urls: bool,
    /// Completions of a model.
    pub sampling: bool,
    /// The folders of the workspace.
    pub roots: bool,
}

impl ClientCapabilities {
    /// The protocol's form.
    pub(super) fn to_value(self) -> Value {
        let mut declared = Map::new();
        if self.forms || self.urls {
            let mut modes = Map::new();
            if self.forms {
                modes.insert("form".to_owned(), json!({}));
            }
            if self.urls {
                modes.insert("url".to_owned(), json!({}));
            }
            declared.insert("elicitation".to_owned(), Value::Object(modes));
        }
        if self.sampling {
            declared.insert("sampling".to_owned(), json!({}));
        }
        if self.roots {
            declared.insert("roots".to_owned(), json!({}));
        }
        Value::Object(declared)
    }

    /// Whether they include this request.
    pub(super) fn covers(self, method: &str, params: &Value) -> bool {
        match method {
            "elicitation/create" if params.get("mode").and_then(Value::as_str) == Some("url") => self.urls,
            "elicitation/create" => self.forms,
            "sampling/createMessage" => self.sampling,
            "roots/list" => self.roots,
            _ => false,
        }
    }
}

/// A server's question to the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// The server's text, cleaned. It is not trusted.
    pub message: String,
    /// What is asked for.
    pub kind: ElicitationKind,
}

/// What a question asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationKind {
    /// Fields that match this schema, an object of plain values.
    Form(Value),
    /// A visit to this URL.
    Url(String),
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// Accepted, with these fields; missing ones get their defaults.
    Accept(Map<String, Value>),
    /// Declined.
    Decline,
    /// Dismissed without an answer.
    Cancel,
}

/// Answers a server's requests. Methods may block; each call has its own thread.
pub trait ServerRequestHandler: Send + Sync {
    /// What is offered to the server; everything else is refused.
    fn capabilities(&self) -> ClientCapabilities;

    /// Asks the user.
    fn elicit(&self, question: &Elicitation, cancel: &Cancel) -> Result<ElicitationAnswer, RpcError> {
        let _ = (question, cancel);
        Err(RpcError::method_not_found("elicitation/create"))
    }

    /// Asks a model; parameters and result are in the protocol's form.
    fn sample(&self, params: &Value, cancel: &Cancel) -> Result<Value, RpcError> {
        let _ = (params, cancel);
        Err(RpcError::method_not_found("sampling/createMessage"))
    }

    /// The folders of the workspace: `file://` URIs and names.
    fn roots(&self) -> Result<Vec<(String, Option<String>)>, RpcError> {
        Err(RpcError::method_not_found("roots/list"))
    }
}

/// Answers one request.
pub(super) fn answer(
    handler: &dyn ServerRequestHandler,
    method: &str,
    params: &Value,
    cancel: &Cancel,
) -> Result<Value, RpcError> {
    match method {
        "elicitation/create" => {
            let question = Elicitation::read(params)?;
            let answer = handler.elicit(&question, cancel)?;
            Ok(match (answer, &question.kind) {
                (ElicitationAnswer::Accept(fields), ElicitationKind::Form(schema)) => {
                    json!({"action": "accept", "content": with_defaults(fields, schema)})
                }
                (ElicitationAnswer::Accept(_), ElicitationKind::Url(_)) => json!({"action": "accept"}),
                (ElicitationAnswer::Decline, _) => json!({"action": "decline"}),
                (ElicitationAnswer::Cancel, _) => json!({"action": "cancel"}),
            })
        }
        "sampling/createMessage" => {
            if params.get("tools").is_some() || params.get("toolChoice").is_some() {
                return Err(RpcError::new(INVALID_PARAMS, "Tools for sampling are not supported"));
            }
            handler.sample(params, cancel)
        }
        "roots/list" => {
            let roots = handler.roots()?.into_iter().map(|(uri, name)| match name {
                Some(name) => json!({"uri": uri, "name": name}),
                None => json!({"uri": uri}),
            });
            Ok(json!({"roots": roots.collect::<Vec<_>>()}))
        }
        other => Err(RpcError::method_not_found(other)),
    }
}

impl Elicitation {
    fn read(params: &Value) -> Result<Self, RpcError> {
        let invalid = |why: &str| RpcError::new(INVALID_PARAMS, format!("Invalid params: {why}"));
        let text = |field: &str| {
            let value = params.get(field).and_then(Value::as_str);
            value.ok_or_else(|| invalid(&format!("{field} is missing")))
        };
        let message = clean(text("message")?, MAX_MESSAGE_CHARS);
        let kind = match params.get("mode").and_then(Value::as_str).unwrap_or("form") {
            "form" => {
                let schema = params.get("requestedSchema").filter(|schema| schema.is_object()).cloned();
                ElicitationKind::Form(schema.ok_or_else(|| invalid("requestedSchema must be an object"))?)
            }
            "url" => {
                let url = url::Url::parse(text("url")?).map_err(|error| invalid(&format!("url: {error}")))?;
                if !matches!(url.scheme(), "https" | "http") {
                    return Err(invalid("url must be http or https"));
                }
                ElicitationKind::Url(url.into())
            }
            _ => return Err(invalid("mode must be \"form\" or \"url\"")),
        };
        Ok(Self { message, kind })
    }
}

/// The given fields, and the schema's defaults for missing ones.
fn with_defaults(mut fields: Map<String, Value>, schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default").filter(|default| is_plain(default))
            && !fields.contains_key(name)
        {
            fields.insert(name.clone(), default.clone());
        }
    }
    fields
}

/// Whether a form can contain this value.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::Array(all) => all.iter().all(Value::is_string),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct AcceptAll;

    impl ServerRequestHandler for AcceptAll {
        fn capabilities(&self) -> ClientCapabilities {
            ClientCapabilities { forms: true, ..ClientCapabilities::default() }
        }

        fn elicit(&self, _: &Elicitation, _: &Cancel) -> Result<ElicitationAnswer, RpcError> {
            Ok(ElicitationAnswer::Accept(Map::from_iter([("a".to_owned(), json!("given"))])))
        }
    }

    fn ask(method: &str, params: &Value) -> Result<Value, RpcError> {
        answer(&AcceptAll, method, params, &Cancel::new())
    }

    #[test]
    fn missing_fields_get_their_defaults() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "default": "other"}, "b": {"type": "integer", "default": 30},
            "c": {"type": "array", "default": ["x"]}, "d": {"type": "string"}, "e": {"default": {"no": 1}}, "f": 7,
        }});
        let given = ask("elicitation/create", &json!({"message": "?", "requestedSchema": schema})).unwrap();
        assert_eq!(given, json!({"action": "accept", "content": {"a": "given", "b": 30, "c": ["x"]}}));
    }

    #[test]
    fn invalid_questions_are_refused() {
        for params in [
            json!({}),
            json!({"message": "?"}),
            json!({"message": "?", "requestedSchema": []}),
            json!({"message": "?", "mode": "url", "url": "javascript:alert(1)"}),
            json!({"message": "?", "mode": "url", "url": "file:///etc/passwd"}),
            json!({"message": "?", "mode": "other"}),
        ] {
            assert_eq!(ask("elicitation/create", &params).unwrap_err().code, INVALID_PARAMS, "{params}");
        }
        let tools = json!({"messages": [], "maxTokens": 1, "tools": []});
        assert_eq!(ask("sampling/createMessage", &tools).unwrap_err().code, INVALID_PARAMS);
    }

    #[test]
    fn only_offered_capabilities_are_declared_and_covered() {
        let offered = ClientCapabilities { urls: true, roots: true, ..ClientCapabilities::default() };
        assert_eq!(offered.to_value(), json!({"elicitation": {"url": {}}, "roots": {}}));
        assert!(!offered.covers("elicitation/create", &json!({})));
        assert!(offered.covers("elicitation/create", &json!({"mode": "url"})));
        assert!(
            !offered.covers("sampling/createMessage", &json!({}))
                && !offered.covers("tools/call", &json!({}))
        );
        assert_eq!(ClientCapabilities::default().to_value(), json!({}));
    }
}
