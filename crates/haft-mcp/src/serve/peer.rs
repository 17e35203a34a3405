//! A client, as far as the server has to remember it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};

use haft_tool::Cancel;
use serde_json::Value;

pub(super) use haft_tool::lock;

use super::Level;
use crate::wire::{Id, Message, RpcError, Version};

/// Where messages for a client go.
pub trait Outbox: Send + Sync {
    /// Sends a message; whether it was still wanted.
    fn send(&self, message: &Message) -> bool;

    /// Has the client come back for the rest, if the transport knows how.
    fn pause(&self) {}
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// A client: one connection, one session, or one request of those who need neither.
pub struct Peer {
    /// Who it is, as far as the transport made sure of that.
    pub principal: String,
    /// A name that no other client has.
    pub(super) name: String,
    /// Where it hears what belongs to no request of its own, if anywhere.
    standing: Mutex<Option<Arc<dyn Outbox>>>,
    known: Mutex<Known>,
    in_flight: Mutex<HashMap<Id, Cancel>>,
    waiting: Mutex<HashMap<Id, mpsc::Sender<Result<Value, RpcError>>>>,
    asked: AtomicU64,
}

/// What a client has said of itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub(super) version: Option<Version>,
    pub(super) client: Arc<Value>,
    pub(super) capabilities: Arc<Value>,
    pub(super) level: Option<Level>,
    pub(super) watched: HashSet<String>,
}

impl Peer {
    /// A client that has said nothing yet.
    pub fn new(principal: impl Into<String>) -> Arc<Self> {
        let principal = principal.into();
        Arc::new(Self {
            name: format!("{principal}/{}", NUMBERS.fetch_add(1, Ordering::Relaxed)),
            principal,
            standing: Mutex::default(),
            known: Mutex::default(),
            in_flight: Mutex::default(),
            waiting: Mutex::default(),
            asked: AtomicU64::new(0),
        })
    }

    /// Whether it is there for longer than one request.
    pub(super) fn stays(&self) -> bool {
        lock(&self.standing).is_some() || self.known().version.is_some()
    }

    /// The revision that was agreed on, if there was a handshake.
    pub fn version(&self) -> Option<Version> {
        self.known().version
    }

    /// Has news sent there from now on; nowhere if nothing is given.
    pub fn hear_at(&self, outbox: Option<Arc<dyn Outbox>>) {
        *lock(&self.standing) = outbox;
    }

    /// Tells it something that belongs to no request.
    pub(super) fn tell(&self, message: &Message) {
        let outbox = lock(&self.standing).clone();
        if let Some(outbox) = outbox {
            outbox.send(message);
        }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    /// Ends everything that is under way for this client, because it is gone.
    pub fn leave(&self) {
        let all = std::mem::take(&mut *lock(&self.in_flight));
        all.values().for_each(Cancel::cancel);
        self.give_up_asking();
    }

    /// Lets whoever waits for an answer know that none will come.
    pub(super) fn give_up_asking(&self) {
        lock(&self.waiting).clear();
    }

    /// Stops one request.
    pub(super) fn cancel(&self, id: &Id) {
        let found = lock(&self.in_flight).remove(id);
        if let Some(cancel) = found {
            cancel.cancel();
        }
    }

    /// Takes note of a request under way; an id that is in use already is an error.
    pub(super) fn begin(&self, id: &Id, cancel: &Cancel) -> Result<(), RpcError> {
        match lock(&self.in_flight).entry(id.clone()) {
            std::collections::hash_map::Entry::Occupied(_) => Err(RpcError::new(
                crate::wire::INVALID_REQUEST,
                format!("Invalid request: the id {id} belongs to a request that is still under way"),
            )),
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(cancel.clone());
                Ok(())
            }
        }
    }

    pub(super) fn done(&self, id: &Id) {
        lock(&self.in_flight).remove(id);
    }

    /// An id for a request to the client, and where its answer will come.
    pub(super) fn ask(&self) -> (Id, mpsc::Receiver<Result<Value, RpcError>>) {
        let id = Id::Text(format!("haft-{}", self.asked.fetch_add(1, Ordering::Relaxed) + 1));
        let (tell, told) = mpsc::channel();
        lock(&self.waiting).insert(id.clone(), tell);
        (id, told)
    }

    /// Nobody waits for that answer any more.
    pub(super) fn forget(&self, id: &Id) {
        lock(&self.waiting).remove(id);
    }

    /// Takes an answer of the client's. One that nobody waits for is nobody's.
    pub(super) fn answered(&self, id: &Id, outcome: Result<Value, RpcError>) {
        let waiting = lock(&self.waiting).remove(id);
        if let Some(waiting) = waiting {
            // Whoever asked may have gone meanwhile.
            let _ = waiting.send(outcome);
        }
    }
}
