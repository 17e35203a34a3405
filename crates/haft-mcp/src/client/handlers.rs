//! What a server may ask of whoever holds it.

use haft_tool::Cancel;
use serde_json::{Map, Value, json};

use crate::wire::{INVALID_PARAMS, RpcError};

/// What is offered to a server. Nothing, unless it is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientCapabilities {
    /// Questions to the user, as a form.
    pub forms: bool,
    /// Addresses that the user is asked to visit.
    pub urls: bool,
    /// Answers of a model.
    pub sampling: bool,
    /// The folders that the work is about.
    pub roots: bool,
}

impl ClientCapabilities {
    /// What is declared to the server.
    pub(super) fn capabilities(self) -> Value {
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

    /// Whether this question may be asked.
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

/// A question of a server's to the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// What it says; a stranger's words, cleaned.
    pub message: String,
    /// What it wants.
    pub kind: ElicitationKind,
}

/// What a question wants.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationKind {
    /// Fields that fit this schema: an object of plain values.
    Form(Value),
    /// A visit to this address.
    Url(String),
}

/// What the user answered.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// Yes, with these fields; those left out get their defaults.
    Accept(Map<String, Value>),
    /// No.
    Decline,
    /// Neither.
    Cancel,
}

/// Answers a server's questions. Each may take its time, and is called on a thread of its own.
pub trait ServerRequestHandler: Send + Sync {
    /// What of this is offered. What is not is refused without asking anybody.
    fn capabilities(&self) -> ClientCapabilities;

    /// Asks the user.
    fn elicit(&self, question: &Elicitation, cancel: &Cancel) -> Result<ElicitationAnswer, RpcError> {
        let _ = (question, cancel);
        Err(RpcError::method_not_found("elicitation/create"))
    }

    /// Asks a model; takes and gives what the wire has.
    fn sample(&self, params: &Value, cancel: &Cancel) -> Result<Value, RpcError> {
        let _ = (params, cancel);
        Err(RpcError::method_not_found("sampling/createMessage"))
    }

    /// Tells the folders: addresses beginning with `file://`, and names.
    fn roots(&self) -> Result<Vec<(String, Option<String>)>, RpcError> {
        Err(RpcError::method_not_found("roots/list"))
    }
}

/// Has one question answered, as the wire has it.
pub(super) fn answer(
    handlers: &dyn ServerRequestHandler,
    method: &str,
    params: &Value,
    cancel: &Cancel,
) -> Result<Value, RpcError> {
    match method {
        "elicitation/create" => {
            let question = Elicitation::read(params)?;
            let elicited = handlers.elicit(&question, cancel)?;
            Ok(match (elicited, &question.kind) {
                (ElicitationAnswer::Accept(given), ElicitationKind::Form(schema)) => {
                    json!({"action": "accept", "content": with_defaults(given, schema)})
                }
                (ElicitationAnswer::Accept(_), ElicitationKind::Url(_)) => json!({"action": "accept"}),
                (ElicitationAnswer::Decline, _) => json!({"action": "decline"}),
                (ElicitationAnswer::Cancel, _) => json!({"action": "cancel"}),
            })
        }
        "sampling/createMessage" => {
            if params.get("tools").is_some() || params.get("toolChoice").is_some() {
                return Err(RpcError::new(INVALID_PARAMS, "Tools for sampling are not supported here"));
            }
            handlers.sample(params, cancel)
        }
        "roots/list" => {
            let roots = handlers.roots()?.into_iter().map(|(uri, name)| match name {
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
        let wrong = |why: &str| RpcError::new(INVALID_PARAMS, format!("Invalid params: {why}"));
        let message =
            params.get("message").and_then(Value::as_str).ok_or_else(|| wrong("there is no message"))?;
        let message = super::portable::clean(message, 4000);
        let mode = params.get("mode").and_then(Value::as_str).unwrap_or("form");
        let wanted = match mode {
            "form" => {
                let schema = params.get("requestedSchema").filter(|schema| schema.is_object());
                ElicitationKind::Form(
                    schema.cloned().ok_or_else(|| wrong("requestedSchema must be an object"))?,
                )
            }
            "url" => {
                let url =
                    params.get("url").and_then(Value::as_str).ok_or_else(|| wrong("there is no url"))?;
                let url = url::Url::parse(url).map_err(|error| wrong(&format!("url: {error}")))?;
                if !matches!(url.scheme(), "https" | "http") {
                    return Err(wrong("only http and https addresses can be visited"));
                }
                ElicitationKind::Url(url.into())
            }
            _ => return Err(wrong("mode must be \"form\" or \"url\"")),
        };
        Ok(Self { message, kind: wanted })
    }
}

/// What was given, and the schema's defaults for what was not.
fn with_defaults(mut given: Map<String, Value>, schema: &Value) -> Map<String, Value> {
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        if let Some(default) = field.get("default").filter(|default| is_plain(default))
            && !given.contains_key(name)
        {
            given.insert(name.clone(), default.clone());
        }
    }
    given
}

/// Whether a form can hold this value.
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

    struct Yes;

    impl ServerRequestHandler for Yes {
        fn capabilities(&self) -> ClientCapabilities {
            ClientCapabilities { forms: true, ..ClientCapabilities::default() }
        }

        fn elicit(&self, _: &Elicitation, _: &Cancel) -> Result<ElicitationAnswer, RpcError> {
            Ok(ElicitationAnswer::Accept(Map::from_iter([("a".to_owned(), json!("given"))])))
        }
    }

    fn ask(method: &str, params: &Value) -> Result<Value, RpcError> {
        answer(&Yes, method, params, &Cancel::new())
    }

    #[test]
    fn what_was_left_out_of_a_form_gets_its_default() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "default": "other"}, "b": {"type": "integer", "default": 30},
            "c": {"type": "array", "default": ["x"]}, "d": {"type": "string"}, "e": {"default": {"no": 1}}, "f": 7,
        }});
        let given = ask("elicitation/create", &json!({"message": "?", "requestedSchema": schema})).unwrap();
        assert_eq!(given, json!({"action": "accept", "content": {"a": "given", "b": 30, "c": ["x"]}}));
    }

    #[test]
    fn questions_that_make_no_sense_are_refused() {
        for params in [
            json!({}),
            json!({"message": "?"}),
            json!({"message": "?", "requestedSchema": []}),
            json!({"message": "?", "mode": "url", "url": "javascript:alert(1)"}),
            json!({"message": "?", "mode": "url", "url": "file:///etc/passwd"}),
            json!({"message": "?", "mode": "smoke"}),
        ] {
            assert_eq!(ask("elicitation/create", &params).unwrap_err().code, INVALID_PARAMS, "{params}");
        }
        let tools = json!({"messages": [], "maxTokens": 1, "tools": []});
        assert_eq!(ask("sampling/createMessage", &tools).unwrap_err().code, INVALID_PARAMS);
    }

    #[test]
    fn only_what_is_offered_is_declared_and_covered() {
        let offered = ClientCapabilities { urls: true, roots: true, ..ClientCapabilities::default() };
        assert_eq!(offered.capabilities(), json!({"elicitation": {"url": {}}, "roots": {}}));
        assert!(!offered.covers("elicitation/create", &json!({})));
        assert!(offered.covers("elicitation/create", &json!({"mode": "url"})));
        assert!(
            !offered.covers("sampling/createMessage", &json!({}))
                && !offered.covers("tools/call", &json!({}))
        );
        assert_eq!(ClientCapabilities::default().capabilities(), json!({}));
    }
}
