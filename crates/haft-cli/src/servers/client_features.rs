//! The client features that a server may use if the user allows it: roots, elicitation, sampling.

use std::sync::Arc;

use haft_tool::{AnswerOption, Cancel, ModelRequest, ModelRole, UserQuestion};
use serde_json::{Map, Value, json};
use url::Url;

use super::context::ServerContext;
use haft_mcp::client::{
    ClientCapabilities, Elicitation, ElicitationAnswer, ElicitationKind, ServerRequestHandler,
};
use haft_mcp::wire::{INTERNAL_ERROR, RpcError};

/// The largest number of tokens a server may request from the model.
const MAX_SAMPLE_TOKENS: u32 = 4_096;

/// Handles the requests of one server.
pub(super) struct ClientFeatures {
    offered: ClientCapabilities,
    context: std::sync::Weak<ServerContext>,
}

impl ClientFeatures {
    /// The handlers for the named features; `None` if none is named.
    pub(super) fn of(
        words: &[String],
        context: &Arc<ServerContext>,
    ) -> Option<Arc<dyn ServerRequestHandler>> {
        let has = |word: &str| words.iter().any(|offered| offered == word);
        let samples = has("sampling") && context.host.has_model(ModelRole::Small);
        let offered = ClientCapabilities {
            forms: has("elicitation"),
            urls: false,
            sampling: samples,
            roots: has("roots"),
        };
        let anything = offered != ClientCapabilities::default();
        anything.then(|| {
            Arc::new(Self { offered, context: Arc::downgrade(context) }) as Arc<dyn ServerRequestHandler>
        })
    }

    fn context(&self) -> Result<Arc<ServerContext>, RpcError> {
        self.context.upgrade().ok_or_else(|| RpcError::new(INTERNAL_ERROR, "the session has ended"))
    }
}

impl ServerRequestHandler for ClientFeatures {
    fn capabilities(&self) -> ClientCapabilities {
        self.offered
    }

    fn elicit(&self, question: &Elicitation, cancel: &Cancel) -> Result<ElicitationAnswer, RpcError> {
        let ElicitationKind::Form(schema) = &question.kind else { return Ok(ElicitationAnswer::Decline) };
        let fields = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let questions: Vec<UserQuestion> = fields
            .iter()
            .map(|(name, field)| {
                let about = field.get("description").and_then(Value::as_str).unwrap_or(name);
                let question = format!("A server asks: {}\n{name}: {about}", question.message);
                UserQuestion { question, header: name.clone(), choices: choices(field), several: false }
            })
            .collect();
        let context = self.context()?;
        match context.host.ask(&questions, cancel) {
            Ok(answers) => Ok(ElicitationAnswer::Accept(filled(&fields, &answers))),
            Err(_) => Ok(ElicitationAnswer::Decline),
        }
    }

    fn sample(&self, params: &Value, cancel: &Cancel) -> Result<Value, RpcError> {
        let context = self.context()?;
        let said = |message: &Value| {
            let content = message.get("content")?;
            let pieces = match content {
                Value::Array(pieces) => pieces.clone(),
                one => vec![one.clone()],
            };
            let words = pieces.iter().filter_map(|piece| piece.get("text").and_then(Value::as_str));
            Some(words.collect::<Vec<_>>().join("\n"))
        };
        let messages = params.get("messages").and_then(Value::as_array).into_iter().flatten();
        let most = params.get("maxTokens").and_then(Value::as_u64).and_then(|most| u32::try_from(most).ok());
        let completion = ModelRequest {
            role: ModelRole::Small,
            model: None,
            system: params.get("systemPrompt").and_then(Value::as_str).map(str::to_owned),
            prompt: messages.filter_map(said).collect::<Vec<_>>().join("\n\n"),
            max_tokens: most.unwrap_or(MAX_SAMPLE_TOKENS).min(MAX_SAMPLE_TOKENS),
        };
        let text = context
            .host
            .complete(&completion, cancel)
            .map_err(|error| RpcError::new(INTERNAL_ERROR, error.message))?;
        Ok(
            json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": "small", "stopReason": "endTurn"}),
        )
    }

    fn roots(&self) -> Result<Vec<(String, Option<String>)>, RpcError> {
        let runtime =
            self.context()?.runtime().map_err(|error| RpcError::new(INTERNAL_ERROR, error.message))?;
        let workspace = runtime.workspace();
        let address = Url::from_directory_path(workspace).map(String::from).unwrap_or_default();
        Ok(vec![(address, workspace.file_name().map(|name| name.to_string_lossy().into_owned()))])
    }
}

/// The choices of a field; empty for free text.
fn choices(field: &Value) -> Vec<AnswerOption> {
    let choice = |label: &str| AnswerOption { label: label.to_owned(), description: String::new() };
    if field.get("type").and_then(Value::as_str) == Some("boolean") {
        return vec![choice("yes"), choice("no")];
    }
    let values = field.get("enum").and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).map(choice).collect()
}

/// Converts the answers to the types of the fields; an answer that does not fit is left out.
fn filled(fields: &Map<String, Value>, answers: &[Vec<String>]) -> Map<String, Value> {
    let mut content = Map::new();
    for ((name, field), answer) in fields.iter().zip(answers) {
        let Some(word) = answer.first() else { continue };
        let value = match field.get("type").and_then(Value::as_str) {
            Some("boolean") => Some(json!(word == "yes")),
            Some("integer") => word.trim().parse::<i64>().ok().map(|number| json!(number)),
            Some("number") => word.trim().parse::<f64>().ok().map(|number| json!(number)),
            _ => Some(json!(word)),
        };
        if let Some(value) = value {
            content.insert(name.clone(), value);
        }
    }
    content
}
