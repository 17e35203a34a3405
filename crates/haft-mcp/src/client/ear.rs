//! What a server says that answers nothing: news, questions, and noise.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use haft_tool::Cancel;
use serde_json::Value;

use super::courier::Courier;
use super::handlers::{ServerRequestHandler, answer};
use super::lock;
use super::news::NewsDesk;
use super::patience::Questions;
use crate::wire::{INTERNAL_ERROR, RequestId, RpcError, RpcMessage};

/// How many questions are thought about at once.
const MOST_AT_ONCE: usize = 4;

/// Hears what a server says unasked.
#[derive(Default)]
pub(super) struct Ear {
    handlers: Option<Arc<dyn ServerRequestHandler>>,
    pub(super) news: NewsDesk,
    pub(super) courier: Courier,
    pub(super) thinking: Questions,
    /// Whether the server may ask questions of its own; in the new era it puts them into results.
    may_ask: AtomicBool,
    /// How many more questions it may ask.
    questions_left: AtomicUsize,
    calls: AtomicUsize,
    under_way: Mutex<HashMap<RequestId, Cancel>>,
}

impl Ear {
    pub(super) fn new(handlers: Option<Arc<dyn ServerRequestHandler>>) -> Self {
        Self { handlers, ..Self::default() }
    }

    pub(super) fn offers_something(&self) -> bool {
        self.handlers
            .as_ref()
            .is_some_and(|handlers| handlers.capabilities() != super::ClientCapabilities::default())
    }

    pub(super) fn capabilities(&self) -> Value {
        self.handlers.as_ref().map(|handlers| handlers.capabilities()).unwrap_or_default().capabilities()
    }

    pub(super) fn let_ask(&self, may: bool) {
        self.may_ask.store(may, Ordering::SeqCst);
    }

    pub(super) fn may_be_asked(&self) -> bool {
        self.may_ask.load(Ordering::SeqCst)
    }

    /// A call begins: until it ends, the server may ask so many questions.
    pub(super) fn during_a_call(&self, questions: usize) -> DuringACall<'_> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.questions_left.store(questions, Ordering::SeqCst);
        DuringACall(self)
    }

    /// Takes a notification.
    pub(super) fn note(&self, method: &str, params: &Value) {
        if self.news.note(method, params) {
            return;
        }
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId").and_then(RequestId::read)
        {
            let found = lock(&self.under_way).remove(&id);
            found.iter().for_each(Cancel::cancel);
        }
    }

    /// Takes a request of the server's own. Never waits.
    pub(super) fn request(self: &Arc<Self>, id: RequestId, method: String, params: Value) {
        if !self.may_be_asked() {
            return;
        }
        if method == "ping" {
            return self.courier.send(RpcMessage::response(id, Ok(serde_json::json!({}))));
        }
        let handlers = match self.covering(&method, &params) {
            Ok(handlers) => handlers,
            Err(error) => return self.courier.send(RpcMessage::response(id, Err(error))),
        };
        let cancel = Cancel::new();
        {
            let mut under_way = lock(&self.under_way);
            if under_way.len() >= MOST_AT_ONCE || under_way.contains_key(&id) {
                let busy = RpcError::new(INTERNAL_ERROR, "Too many questions at once; ask again later");
                return self.courier.send(RpcMessage::response(id, Err(busy)));
            }
            under_way.insert(id.clone(), cancel.clone());
        }
        self.thinking.begin();
        let own = Arc::clone(self);
        let asked = id.clone();
        let think = move || {
            let outcome = answer(handlers.as_ref(), &method, &params, &cancel);
            own.done(&asked);
            if !cancel.is_cancelled() {
                own.courier.send(RpcMessage::response(asked, outcome));
            }
        };
        if std::thread::Builder::new().name("mcp-question".to_owned()).spawn(think).is_err() {
            self.done(&id);
            self.courier
                .send(RpcMessage::response(id, Err(RpcError::internal("no thread for the question"))));
        }
    }

    fn done(&self, id: &RequestId) {
        lock(&self.under_way).remove(id);
        self.thinking.end();
    }

    /// Has a question answered that came in a result.
    pub(super) fn answer(&self, method: &str, params: &Value, cancel: &Cancel) -> Result<Value, RpcError> {
        let handlers = self.covering(method, params)?;
        answer(handlers.as_ref(), method, params, cancel)
    }

    /// Whoever answers such questions, if they are offered and not too many.
    fn covering(&self, method: &str, params: &Value) -> Result<Arc<dyn ServerRequestHandler>, RpcError> {
        let handlers =
            self.handlers.as_ref().filter(|handlers| handlers.capabilities().covers(method, params));
        let handlers = handlers.ok_or_else(|| RpcError::method_not_found(method))?;
        // To tell the folders costs nobody anything.
        if method != "roots/list" {
            let take = |left: usize| left.checked_sub(1);
            self.questions_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).map_err(|_| {
                RpcError::new(
                    INTERNAL_ERROR,
                    "No more questions: too many during one call, or no call is under way",
                )
            })?;
        }
        Ok(Arc::clone(handlers))
    }

    /// Listens no more.
    pub(super) fn close(&self) {
        let under_way = std::mem::take(&mut *lock(&self.under_way));
        under_way.values().for_each(Cancel::cancel);
        self.news.close();
        self.courier.close();
    }
}

/// While this is held, a call is under way.
pub(super) struct DuringACall<'a>(&'a Ear);

impl Drop for DuringACall<'_> {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.questions_left.store(0, Ordering::SeqCst);
        }
    }
}
