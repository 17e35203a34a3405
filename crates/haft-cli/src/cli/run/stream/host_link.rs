//! Requests to the program that drives the run, and its answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_compat::stream::{HostReply, PermissionReply};
use haft_tool::{Cancel, Value, json, lock};

use super::session_state::StateReports;
use super::writer::StreamWriter;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoReply {
    /// The program has closed the stream, or is gone.
    Gone,
    /// The call was cancelled while the program was asked.
    Cancelled,
    /// It took too long.
    TimedOut,
    /// The program answered with an error, or the question was too long for it.
    Failed(String),
}

impl NoReply {
    /// What happened.
    pub(super) fn message(&self) -> String {
        match self {
            Self::Gone => "the program that drives Haft has closed the stream".to_owned(),
            Self::Cancelled => "the call was cancelled while the host was asked".to_owned(),
            Self::TimedOut => "the host did not answer in time".to_owned(),
            Self::Failed(why) => why.clone(),
        }
    }
}

/// Asks the program that drives the run.
pub(super) struct HostLink {
    writer: Arc<StreamWriter>,
    state: Arc<StateReports>,
    pending: Mutex<PendingQuestions>,
    last_id: AtomicU64,
}

#[derive(Default)]
struct PendingQuestions {
    is_closed: bool,
    waiting: HashMap<String, PendingQuestion>,
}

struct PendingQuestion {
    reply: SyncSender<Result<Value, String>>,
    /// The call that the question is about.
    call_id: Option<String>,
}

/// How a question is asked.
#[derive(Debug, Default)]
pub(super) struct QuestionLimits<'a> {
    /// The call that it is about: an answer for another one does not count.
    pub(super) call_id: Option<&'a str>,
    /// How long it may take; as long as the program lives if there is no limit.
    pub(super) timeout: Option<Duration>,
}

impl HostLink {
    pub(super) fn new(writer: Arc<StreamWriter>, state: Arc<StateReports>) -> Self {
        Self { writer, state, pending: Mutex::default(), last_id: AtomicU64::new(0) }
    }

    /// Sends a request and waits for its answer. Blocks, but returns soon after `cancel` fires or the program is gone.
    pub(super) fn ask(
        self: &Arc<Self>,
        request: &Value,
        limits: &QuestionLimits<'_>,
        cancel: &Cancel,
    ) -> Result<Value, NoReply> {
        let id = format!("haft-{}", self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        let (reply, replied) = sync_channel(1);
        {
            let mut pending = lock(&self.pending);
            if pending.is_closed {
                return Err(NoReply::Gone);
            }
            let call_id = limits.call_id.map(str::to_owned);
            pending.waiting.insert(id.clone(), PendingQuestion { reply, call_id });
        }
        let _open = self.state.open_question();
        let message = json!({"type": "control_request", "request_id": id, "request": request});
        if let Err(error) = self.writer.send_whole(&message) {
            self.withdraw(&id);
            return Err(NoReply::Failed(error.message));
        }
        let (link, withdrawn) = (Arc::clone(self), id.clone());
        let _link = cancel.on_cancel(move || link.withdraw(&withdrawn));
        let reply = match limits.timeout {
            Some(limit) => replied.recv_timeout(limit),
            None => replied.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let failure = match reply {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(why)) => return Err(NoReply::Failed(why)),
            Err(RecvTimeoutError::Timeout) => NoReply::TimedOut,
            Err(RecvTimeoutError::Disconnected) if lock(&self.pending).is_closed => NoReply::Gone,
            Err(RecvTimeoutError::Disconnected) => NoReply::Cancelled,
        };
        self.withdraw(&id);
        if failure != NoReply::Gone {
            self.writer.send(json!({"type": "control_cancel_request", "request_id": id}));
        }
        Err(failure)
    }

    /// Takes an answer. One to no open request, or for another call, is ignored.
    pub(super) fn take_reply(&self, reply: HostReply) {
        let mut pending = lock(&self.pending);
        let Some(request) = pending.waiting.get(&reply.request_id) else { return };
        let named = reply.result.as_ref().ok().and_then(PermissionReply::call_of);
        if request.call_id.is_some() && named.is_some() && request.call_id.as_deref() != named {
            return;
        }
        if let Some(request) = pending.waiting.remove(&reply.request_id) {
            // The caller may have stopped waiting.
            let _ = request.reply.send(reply.result);
        }
    }

    /// The program is gone: every open question ends without an answer. Returns whether there was one.
    pub(super) fn close(&self) -> bool {
        let mut pending = lock(&self.pending);
        pending.is_closed = true;
        let had_questions = !pending.waiting.is_empty();
        pending.waiting.clear();
        had_questions
    }

    fn withdraw(&self, id: &str) {
        lock(&self.pending).waiting.remove(id);
    }
}
