//! Conversations, codecs and a scripted HTTP client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_model::wire::{Codec, WireError, WireOptions};
use haft_model::{
    AssistantMessage, ChatMessage, ContentPart, Conversation, HttpModel, Model, ModelError, ModelEvent,
    ModelResponse, ModelTimeouts, ProviderSettings, ToolResult, TurnOptions, TurnRequest, Wire,
};
use haft_tool::{
    Cancel, Definition, ErrorKind, HttpBody, HttpStream, HttpStreams, RetryPolicy, StreamRequest, ToolError,
    Value, json,
};

pub(crate) fn codec(wire: Wire) -> Codec {
    Codec { wire, provider: "test".to_owned(), options: WireOptions::default() }
}

pub(crate) fn tool(name: &str) -> Definition {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    Definition::new(name, "Reads a file.", schema, &[])
}

pub(crate) fn asked(text: &str) -> Conversation {
    let mut conversation = Conversation::new("Be brief.");
    conversation.say(text);
    conversation
}

/// The conversation with an answer, and a result for each of its calls.
pub(crate) fn answered(mut conversation: Conversation, answer: AssistantMessage) -> Conversation {
    let results: Vec<ToolResult> = answer
        .calls()
        .map(|call| ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: vec![ContentPart::text("done")],
            is_error: false,
        })
        .collect();
    conversation.messages.push(ChatMessage::Assistant(answer));
    if !results.is_empty() {
        conversation.messages.push(ChatMessage::ToolResults { results, content: Vec::new() });
    }
    conversation
}

pub(crate) fn encode(codec: &Codec, conversation: &Conversation, tools: &[Definition]) -> Value {
    let options = TurnOptions::default();
    codec.encode(&TurnRequest { conversation, tools, options: &options }, "m")
}

/// Decodes a response that arrives in these pieces.
pub(crate) fn decode(
    codec: &Codec,
    conversation: &Conversation,
    pieces: &[&[u8]],
) -> (Result<ModelResponse, WireError>, Vec<ModelEvent>) {
    let (options, tools) = (TurnOptions::default(), [tool("Read")]);
    let mut decoder = codec.decoder(&TurnRequest { conversation, tools: &tools, options: &options }, "m");
    let mut events = Vec::new();
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut events) {
            return (Err(error), events);
        }
    }
    let result = decoder.finish(&mut events);
    (result, events)
}

pub(crate) fn decode_whole(
    codec: &Codec,
    conversation: &Conversation,
    body: &Value,
) -> Result<ModelResponse, WireError> {
    let (options, tools) = (TurnOptions::default(), [tool("Read")]);
    let mut decoder = codec.decoder(&TurnRequest { conversation, tools: &tools, options: &options }, "m");
    let mut events = Vec::new();
    decoder.whole(body.to_string().as_bytes(), &mut events)?;
    decoder.finish(&mut events)
}

/// Events in the form of `data: …` lines.
pub(crate) fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

pub(crate) fn texts(events: &[ModelEvent]) -> String {
    let text = |event: &ModelEvent| match event {
        ModelEvent::Text { delta } => Some(delta.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// The names of calls that were reported as complete.
pub(crate) fn completed(events: &[ModelEvent]) -> Vec<&str> {
    let mut names = Vec::new();
    for event in events {
        if let ModelEvent::CallComplete(call) = event {
            names.push(call.name.as_str());
        }
    }
    names
}

/// A piece of a scripted response.
#[derive(Clone)]
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    Drop,
    Cancel,
}

/// A scripted response, or a connection that fails.
#[derive(Clone)]
pub(crate) enum Reply {
    Response { status: u16, headers: Vec<(String, String)>, pieces: Vec<Piece> },
    Refused,
    Silent,
}

impl Reply {
    pub(crate) fn new(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::Response { status, headers, pieces: vec![Piece::Bytes(body.as_ref().to_vec())] }
    }

    pub(crate) fn stream(body: impl AsRef<[u8]>) -> Self {
        Self::new(200, &[("content-type", "text/event-stream")], body)
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::new(200, &[("content-type", "application/json")], body.to_string())
    }

    pub(crate) fn then(mut self, piece: Piece) -> Self {
        if let Self::Response { pieces, .. } = &mut self {
            pieces.push(piece);
        }
        self
    }
}

/// An HTTP client that plays responses and keeps the requests.
#[derive(Default)]
pub(crate) struct ScriptedStreams {
    pub(crate) replies: Mutex<VecDeque<Reply>>,
    pub(crate) requests: Mutex<Vec<StreamRequest>>,
}

impl HttpStreams for ScriptedStreams {
    fn open(&self, request: StreamRequest, _: Duration, _: &Cancel) -> Result<HttpStream, ToolError> {
        self.requests.lock().unwrap().push(request);
        match self.replies.lock().unwrap().pop_front() {
            Some(Reply::Response { status, headers, pieces }) => {
                Ok(HttpStream { status, headers, body: Box::new(ScriptedBody(pieces.into())) })
            }
            Some(Reply::Silent) => Err(ToolError::new(ErrorKind::Timeout, "nothing for 300 s")),
            _ => Err(ToolError::new(ErrorKind::Io, "connection refused")),
        }
    }
}

struct ScriptedBody(VecDeque<Piece>);

impl HttpBody for ScriptedBody {
    fn next(&mut self, _: Duration, cancel: &Cancel) -> Result<Option<Vec<u8>>, ToolError> {
        match self.0.pop_front() {
            None => Ok(None),
            Some(Piece::Bytes(bytes)) => Ok(Some(bytes)),
            Some(Piece::Drop) => Err(ToolError::new(ErrorKind::Io, "connection reset")),
            Some(Piece::Cancel) => {
                cancel.cancel();
                Err(ToolError::new(ErrorKind::Interrupted, "cancelled"))
            }
        }
    }
}

/// What came of one request.
pub(crate) struct Played {
    pub(crate) result: Result<ModelResponse, ModelError>,
    pub(crate) events: Vec<ModelEvent>,
    pub(crate) requests: Vec<StreamRequest>,
}

impl Played {
    /// The body of a request.
    pub(crate) fn body(&self, at: usize) -> Value {
        serde_json::from_slice(self.requests[at].body.as_deref().unwrap()).unwrap()
    }

    pub(crate) fn error(&self) -> &ModelError {
        self.result.as_ref().unwrap_err()
    }

    pub(crate) fn retries(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, ModelEvent::Retrying(_))).count()
    }
}

/// Settings with a key that must not show up in messages.
pub(crate) fn settings(provider: &str) -> ProviderSettings {
    ProviderSettings { api_key: Some(haft_tool::Secret::new("sk-secret")), ..ProviderSettings::new(provider) }
}

/// Makes one request to a provider that replies as scripted.
pub(crate) fn play(settings: &ProviderSettings, options: &TurnOptions, replies: Vec<Reply>) -> Played {
    play_within(ModelTimeouts::default(), settings, options, replies)
}

/// The same with these time limits.
pub(crate) fn play_within(
    timeouts: ModelTimeouts,
    settings: &ProviderSettings,
    options: &TurnOptions,
    replies: Vec<Reply>,
) -> Played {
    let http = Arc::new(ScriptedStreams { replies: Mutex::new(replies.into()), ..Default::default() });
    let endpoint = settings.resolve(&|_| None).unwrap();
    // The longest wait remains as it is; own waits take no time.
    let retry = RetryPolicy { base: Duration::ZERO, ..haft_model::MODEL_RETRY };
    let streams: Arc<dyn HttpStreams> = Arc::clone(&http) as _;
    let model = HttpModel::new(endpoint, "m", streams).with_retry(retry).with_timeouts(timeouts);
    let (conversation, tools, mut events) = (asked("hello"), [tool("Read")], Vec::new());
    let request = TurnRequest { conversation: &conversation, tools: &tools, options };
    let result = model.respond(&request, &mut |event| events.push(event), &Cancel::new());
    let requests = http.requests.lock().unwrap().clone();
    if let Err(error) = &result {
        assert!(!error.to_string().contains("sk-secret"), "{error}");
    }
    Played { result, events, requests }
}
