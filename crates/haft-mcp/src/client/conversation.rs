//! Requests to a server that has been greeted: dressed for its era, answered, taken back, and asked again where that is
//! right.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_tool::{Cancel, CancelGuard};
use serde_json::{Value, json};

use super::ear::Ear;
use super::greeting::Greeting;
use super::http::headers::Mirrored;
use super::link::{Asked, Link};
use super::patience::Patience;
use super::{ClientError, ClientOptions, McpError, ServerInfo, lock};
use crate::wire::{ProtocolVersion, RequestId};

/// How often somebody who waits for a session looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// A conversation with one server.
pub(super) struct Conversation {
    pub(super) link: Arc<dyn Link>,
    pub(super) ear: Arc<Ear>,
    pub(super) options: ClientOptions,
    ids: AtomicI64,
    agreed: Mutex<Agreed>,
    /// Which arguments of which tools go along as headers; what was learned from the last list.
    pub(super) mirrored: Mutex<HashMap<String, Vec<Mirrored>>>,
    /// Whether the way has headers at all.
    pub(super) has_headers: bool,
    pub(super) closed: Cancel,
    /// Whether somebody begins a new session.
    beginning: (Mutex<bool>, Condvar),
}

struct Agreed {
    info: ServerInfo,
    /// How many sessions there have been.
    sessions: u64,
}

/// One request, before it is dressed.
pub(super) struct Question {
    pub(super) method: &'static str,
    pub(super) params: Value,
    pub(super) headers: Vec<(String, String)>,
}

impl Question {
    pub(super) fn new(method: &'static str, params: Value) -> Self {
        Self { method, params, headers: Vec::new() }
    }
}

impl Conversation {
    /// Greets whoever is at the other end of `link`.
    pub(super) fn begin(
        link: Arc<dyn Link>,
        ear: Arc<Ear>,
        options: ClientOptions,
        has_headers: bool,
    ) -> Result<Self, ClientError> {
        let (ids, closed) = (AtomicI64::new(1), Cancel::new());
        ear.courier.attach(Arc::downgrade(&link));
        let greeting =
            Greeting { link: link.as_ref(), ear: &ear, ids: &ids, options: &options, cancel: &closed };
        let info = match greeting.greet() {
            Ok(info) => info,
            Err(error) => {
                ear.close();
                link.close();
                return Err(error);
            }
        };
        if !info.version.is_stateless() && ear.offers_something() {
            link.listen();
        }
        let agreed = Mutex::new(Agreed { info, sessions: 1 });
        Ok(Self {
            link,
            ear,
            options,
            ids,
            agreed,
            mirrored: Mutex::default(),
            has_headers,
            closed,
            beginning: Default::default(),
        })
    }

    pub(super) fn info(&self) -> ServerInfo {
        lock(&self.agreed).info.clone()
    }

    pub(super) fn version(&self) -> ProtocolVersion {
        lock(&self.agreed).info.version
    }

    /// A cancellation that comes with the caller's, and with the end of the conversation.
    pub(super) fn linked(&self, other: &Cancel) -> (Cancel, [CancelGuard; 2]) {
        let linked = Cancel::new();
        let link = |to: &Cancel| {
            let linked = linked.clone();
            to.on_cancel(move || linked.cancel())
        };
        let guards = [link(other), link(&self.closed)];
        (linked, guards)
    }

    /// Asks, and asks again if the server has forgotten who we are.
    pub(super) fn ask(&self, question: &Question, patience: &Patience<'_>) -> Result<Value, ClientError> {
        let sessions = lock(&self.agreed).sessions;
        match self.ask_once(question, patience) {
            // It has not looked at the request, so to ask again is to ask once.
            Err(error) if error.kind == McpError::SessionExpired => {
                self.begin_anew(sessions, patience)?;
                self.ask_once(question, patience)
            }
            outcome => outcome,
        }
    }

    fn ask_once(&self, question: &Question, patience: &Patience<'_>) -> Result<Value, ClientError> {
        let asked = self.dress(question);
        let outcome = self.link.ask(&asked, patience);
        let given_up = |error: &ClientError| matches!(error.kind, McpError::TimedOut | McpError::Cancelled);
        match outcome {
            Err(error) if given_up(&error) => {
                if let Some(word) = self.link.taken_back(&asked) {
                    self.ear.courier.send(word);
                }
                let closed = error.kind == McpError::Cancelled && self.closed.is_cancelled();
                Err(if closed {
                    ClientError::new(McpError::Closed, "the connection was closed")
                } else {
                    error
                })
            }
            outcome => outcome,
        }
    }

    /// The request as this era has it.
    fn dress(&self, question: &Question) -> Asked {
        let id = RequestId::Number(self.ids.fetch_add(1, Ordering::Relaxed));
        let version = Some(self.version()).filter(|version| version.is_stateless());
        let mut params = question.params.clone();
        let mut meta = version.map_or_else(|| json!({}), |version| self.greeting().meta(version));
        if question.method == "tools/call" {
            meta["progressToken"] = json!(id);
        }
        if meta.as_object().is_some_and(|meta| !meta.is_empty()) {
            params["_meta"] = meta;
        } else if params.as_object().is_some_and(serde_json::Map::is_empty) {
            params = Value::Null;
        }
        Asked { id, method: question.method, params, version, headers: question.headers.clone() }
    }

    fn greeting(&self) -> Greeting<'_> {
        let Self { link, ear, options, ids, closed, .. } = self;
        Greeting { link: link.as_ref(), ear, ids, options, cancel: closed }
    }

    /// A new session, unless somebody else has begun one meanwhile.
    fn begin_anew(&self, sessions: u64, patience: &Patience<'_>) -> Result<(), ClientError> {
        let _turn = self.turn(patience)?;
        let version = {
            let agreed = lock(&self.agreed);
            if agreed.sessions != sessions {
                return Ok(());
            }
            agreed.info.version
        };
        let limit = patience.left("initialize")?.min(self.options.limits.connect_timeout);
        let info = self.greeting().initialize(version, Instant::now() + limit)?;
        *lock(&self.agreed) = Agreed { info, sessions: sessions + 1 };
        Ok(())
    }

    /// Waits until nobody else begins a session.
    fn turn(&self, patience: &Patience<'_>) -> Result<Turn<'_>, ClientError> {
        let mut busy = lock(&self.beginning.0);
        while *busy {
            let time = patience.left("initialize")?.min(LOOK);
            busy = self.beginning.1.wait_timeout(busy, time).unwrap_or_else(PoisonError::into_inner).0;
        }
        *busy = true;
        Ok(Turn(self))
    }

    pub(super) fn is_over(&self) -> bool {
        self.link.is_over()
    }

    /// Ends it. To end it twice is to end it once.
    pub(super) fn close(&self) {
        self.closed.cancel();
        self.ear.close();
        self.link.close();
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.close();
    }
}

/// The right to begin a session.
struct Turn<'a>(&'a Conversation);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.beginning.0) = false;
        self.0.beginning.1.notify_one();
    }
}
