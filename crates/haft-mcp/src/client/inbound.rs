//! Messages from the server that are no responses: notifications and requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use haft_tool::Cancel;
use serde_json::{Value, json};

use super::changes::ChangeFeed;
use super::deadline::OpenQuestions;
use super::lock;
use super::send_queue::SendQueue;
use super::server_requests::{ClientCapabilities, ServerRequestHandler, answer};
use crate::wire::{INTERNAL_ERROR, RequestId, RpcError, RpcMessage};

/// Requests of the server that are handled at once.
const MAX_CONCURRENT_REQUESTS: usize = 4;

/// Handles messages from the server.
#[derive(Default)]
pub(super) struct Inbound {
    handler: Option<Arc<dyn ServerRequestHandler>>,
    pub(super) changes: ChangeFeed,
    pub(super) outgoing: SendQueue,
    pub(super) questions: OpenQuestions,
    /// Whether the server may send requests; stateless servers may not.
    accepts_requests: AtomicBool,
    /// Questions that the server may still ask during the calls in progress.
    questions_left: AtomicUsize,
    calls: AtomicUsize,
    in_progress: Mutex<HashMap<RequestId, Cancel>>,
}

impl Inbound {
    pub(super) fn new(handler: Option<Arc<dyn ServerRequestHandler>>) -> Self {
        Self { handler, ..Self::default() }
    }

    pub(super) fn capabilities(&self) -> ClientCapabilities {
        self.handler.as_ref().map(|handler| handler.capabilities()).unwrap_or_default()
    }

    pub(super) fn set_accepts_requests(&self, accepts: bool) {
        self.accepts_requests.store(accepts, Ordering::SeqCst);
    }

    pub(super) fn accepts_requests(&self) -> bool {
        self.accepts_requests.load(Ordering::SeqCst)
    }

    /// Allows the server to ask `max_questions` until the guard is dropped.
    pub(super) fn begin_call(&self, max_questions: usize) -> CallGuard<'_> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.questions_left.store(max_questions, Ordering::SeqCst);
        CallGuard(self)
    }

    /// Handles a message; responses are ignored.
    pub(super) fn receive(self: &Arc<Self>, message: RpcMessage) {
        match message {
            RpcMessage::Notification { method, params } => self.notification(&method, &params),
            RpcMessage::Request { id, method, params } => self.request(id, method, params),
            RpcMessage::Response { .. } => {}
        }
    }

    fn notification(&self, method: &str, params: &Value) {
        if self.changes.notification(method, params) {
            return;
        }
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId").and_then(RequestId::read)
        {
            let found = lock(&self.in_progress).remove(&id);
            found.iter().for_each(Cancel::cancel);
        }
    }

    /// Starts to handle a request. Never blocks.
    fn request(self: &Arc<Self>, id: RequestId, method: String, params: Value) {
        if !self.accepts_requests() {
            return;
        }
        if method == "ping" {
            return self.respond(id, Ok(json!({})));
        }
        let handler = match self.handler_for(&method, &params) {
            Ok(handler) => handler,
            Err(error) => return self.respond(id, Err(error)),
        };
        let cancel = Cancel::new();
        {
            let mut in_progress = lock(&self.in_progress);
            if in_progress.len() >= MAX_CONCURRENT_REQUESTS || in_progress.contains_key(&id) {
                let error = RpcError::new(INTERNAL_ERROR, "Too many requests at once. Try again later.");
                return self.respond(id, Err(error));
            }
            in_progress.insert(id.clone(), cancel.clone());
        }
        self.questions.begin();
        let (inbound, request_id) = (Arc::clone(self), id.clone());
        let work = move || {
            let outcome = answer(handler.as_ref(), &method, &params, &cancel);
            inbound.finish(&request_id);
            if !cancel.is_cancelled() {
                inbound.respond(request_id, outcome);
            }
        };
        if std::thread::Builder::new().name("mcp-question".to_owned()).spawn(work).is_err() {
            self.finish(&id);
            self.respond(id, Err(RpcError::internal("no thread could be started for the request")));
        }
    }

    fn respond(&self, id: RequestId, outcome: Result<Value, RpcError>) {
        self.outgoing.push(RpcMessage::response(id, outcome));
    }

    fn finish(&self, id: &RequestId) {
        lock(&self.in_progress).remove(id);
        self.questions.end();
    }

    /// Answers a question that came in a result.
    pub(super) fn answer(&self, method: &str, params: &Value, cancel: &Cancel) -> Result<Value, RpcError> {
        let handler = self.handler_for(method, params)?;
        answer(handler.as_ref(), method, params, cancel)
    }

    /// The handler, if it offers this method and the server may ask another question.
    fn handler_for(&self, method: &str, params: &Value) -> Result<Arc<dyn ServerRequestHandler>, RpcError> {
        let handler = self.handler.as_ref().filter(|handler| handler.capabilities().covers(method, params));
        let handler = handler.ok_or_else(|| RpcError::method_not_found(method))?;
        // The roots involve neither the user nor a model, so they are not limited.
        if method != "roots/list" {
            let take = |left: usize| left.checked_sub(1);
            self.questions_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).map_err(|_| {
                let why = "No more questions: the limit of this call is reached, or no call is in progress";
                RpcError::new(INTERNAL_ERROR, why)
            })?;
        }
        Ok(Arc::clone(handler))
    }

    /// Cancels what is in progress.
    pub(super) fn close(&self) {
        let in_progress = std::mem::take(&mut *lock(&self.in_progress));
        in_progress.values().for_each(Cancel::cancel);
        self.changes.close();
        self.outgoing.close();
    }
}

/// Allows questions while a call is in progress.
pub(super) struct CallGuard<'a>(&'a Inbound);

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.questions_left.store(0, Ordering::SeqCst);
        }
    }
}
