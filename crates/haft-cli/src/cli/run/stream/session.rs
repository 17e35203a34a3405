//! What the threads of a driven session share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use haft_tool::{Cancel, Value, clip_chars, json, lock};
use serde_json::Map;

use super::host_link::HostLink;
use super::ids::new_uuid;
use super::inbox::HostInbox;
use super::session_state::StateReports;
use super::writer::StreamWriter;

/// How much of the name of an unknown request is repeated.
const MAX_SUBTYPE_CHARS: usize = 100;

/// The session of a run whose messages a program reads, and which it may drive.
pub(super) struct HostSession {
    pub(super) writer: Arc<StreamWriter>,
    pub(super) state: Arc<StateReports>,
    pub(super) link: Arc<HostLink>,
    pub(super) inbox: HostInbox,
    /// The name of the session in messages.
    id: OnceLock<String>,
    /// How each question about a call was answered.
    answers: Mutex<HashMap<String, CallAnswer>>,
    /// The call of a tool that asks the user itself, by the tool's name.
    asking_calls: Mutex<HashMap<String, String>>,
}

/// How a question about a call was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallAnswer {
    Accepted,
    Rejected,
}

impl HostSession {
    pub(super) fn new(writer: StreamWriter, has_host: bool) -> Arc<Self> {
        let writer = Arc::new(writer);
        let state = Arc::new(StateReports::new(Arc::clone(&writer), has_host));
        let link = Arc::new(HostLink::new(Arc::clone(&writer), Arc::clone(&state)));
        Arc::new(Self {
            writer,
            state,
            link,
            inbox: HostInbox::default(),
            id: OnceLock::new(),
            answers: Mutex::default(),
            asking_calls: Mutex::default(),
        })
    }

    pub(super) fn id(&self) -> &str {
        self.id.get().map(String::as_str).unwrap_or_default()
    }

    pub(super) fn set_id(&self, id: &str) {
        self.state.set_session(self.id.get_or_init(|| id.to_owned()));
    }

    /// Sends a message of this session.
    pub(super) fn send(&self, mut message: Value) {
        message["session_id"] = self.id().into();
        message["uuid"] = new_uuid().into();
        self.writer.send(message);
    }

    /// Sends a `system` message.
    pub(super) fn send_system(&self, subtype: &str, members: Value) {
        let mut message = json!({"type": "system", "subtype": subtype});
        if let (Value::Object(message), Value::Object(members)) = (&mut message, members) {
            message.extend(members);
        }
        self.send(message);
    }

    /// Answers a request.
    pub(super) fn answer(&self, id: &str, answer: Result<Value, String>) {
        let response = match answer {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
        };
        self.writer.send(json!({"type": "control_response", "response": response}));
    }

    /// Answers a request that is not known.
    pub(super) fn refuse_unknown(&self, id: &str, request: &Map<String, Value>) {
        let subtype = request.get("subtype").and_then(Value::as_str).unwrap_or_default();
        let subtype = clip_chars(subtype, MAX_SUBTYPE_CHARS, 0);
        self.writer.send(json!({"type": "control_response", "response": {
            "subtype": "error", "request_id": id, "error_code": "unsupported_request",
            "error": format!("Unsupported control request subtype: {subtype}"),
        }}));
    }

    /// A turn begins, which the result stops.
    pub(super) fn begin_turn(&self) -> Cancel {
        let cancel = self.inbox.begin_turn();
        self.state.begin_turn();
        cancel
    }

    /// Stops the turn that is under way.
    pub(super) fn interrupt_turn(&self) {
        if let Some(turn) = self.inbox.turn() {
            turn.cancel();
        }
    }

    /// The program that drives the session sends nothing more. A turn that waits for its answer ends.
    pub(super) fn host_is_gone(&self) {
        if self.link.close() {
            self.interrupt_turn();
        }
        self.inbox.close();
    }

    /// Keeps how a question about a call was answered.
    pub(super) fn note_answer(&self, call_id: &str, answer: CallAnswer) {
        lock(&self.answers).insert(call_id.to_owned(), answer);
    }

    /// Takes how a question about a call was answered.
    pub(super) fn take_answer(&self, call_id: &str) -> Option<CallAnswer> {
        lock(&self.answers).remove(call_id)
    }

    /// Keeps which call of a tool runs.
    pub(super) fn note_call(&self, tool: &str, call_id: &str) {
        lock(&self.asking_calls).insert(tool.to_owned(), call_id.to_owned());
    }

    /// The call of a tool that runs.
    pub(super) fn call_of(&self, tool: &str) -> Option<String> {
        lock(&self.asking_calls).get(tool).cloned()
    }
}
