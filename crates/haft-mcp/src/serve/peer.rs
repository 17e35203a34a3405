//! A client's state on the server.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};

use haft_tool::Cancel;
pub(super) use haft_tool::lock;
use serde_json::Value;

use super::LogLevel;
use crate::wire::{INVALID_REQUEST, ProtocolVersion, RequestId, RpcError, RpcMessage};

/// Sends messages to a client.
pub trait MessageSink: Send + Sync {
    /// Sends a message. Returns false if the client no longer receives.
    fn send(&self, message: &RpcMessage) -> bool;

    /// Ends the current connection so that the client reconnects for the rest, if the transport supports that.
    fn disconnect(&self) {}
}

static NEXT_PEER: AtomicU64 = AtomicU64::new(1);

/// A client: one connection, one session, or one request of a stateless client.
pub struct ClientPeer {
    /// Who the client is, as the transport has authenticated it.
    pub principal: String,
    /// A name that is unique in this process.
    pub(super) name: String,
    /// Where messages go that belong to no request.
    sink: Mutex<Option<Arc<dyn MessageSink>>>,
    state: Mutex<PeerState>,
    in_flight: Mutex<HashMap<RequestId, Cancel>>,
    /// Requests to the client that wait for its response.
    pending: Mutex<HashMap<RequestId, mpsc::Sender<Result<Value, RpcError>>>>,
    last_request: AtomicU64,
}

/// What a client has declared.
#[derive(Debug, Clone, Default)]
pub(super) struct PeerState {
    /// `None` before the handshake.
    pub(super) version: Option<ProtocolVersion>,
    pub(super) client_info: Arc<Value>,
    pub(super) capabilities: Arc<Value>,
    pub(super) log_level: Option<LogLevel>,
    /// URIs of resources.
    pub(super) subscribed: HashSet<String>,
}

impl ClientPeer {
    /// A client before its first message.
    pub fn new(principal: impl Into<String>) -> Arc<Self> {
        let principal = principal.into();
        Arc::new(Self {
            name: format!("{principal}/{}", NEXT_PEER.fetch_add(1, Ordering::Relaxed)),
            principal,
            sink: Mutex::default(),
            state: Mutex::default(),
            in_flight: Mutex::default(),
            pending: Mutex::default(),
            last_request: AtomicU64::new(0),
        })
    }

    /// Whether it lives longer than one request.
    pub(super) fn is_persistent(&self) -> bool {
        lock(&self.sink).is_some() || self.state().version.is_some()
    }

    /// The version that a handshake agreed on.
    pub fn version(&self) -> Option<ProtocolVersion> {
        self.state().version
    }

    /// Sets where messages go that belong to no request.
    pub fn set_sink(&self, sink: Option<Arc<dyn MessageSink>>) {
        *lock(&self.sink) = sink;
    }

    /// Sends a message that belongs to no request.
    pub(super) fn send(&self, message: &RpcMessage) {
        let sink = lock(&self.sink).clone();
        if let Some(sink) = sink {
            sink.send(message);
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, PeerState> {
        lock(&self.state)
    }

    /// Cancels all requests in progress.
    pub fn cancel_all(&self) {
        let all = std::mem::take(&mut *lock(&self.in_flight));
        all.values().for_each(Cancel::cancel);
        self.drop_pending();
    }

    /// Fails all requests to the client that wait for a response.
    pub(super) fn drop_pending(&self) {
        lock(&self.pending).clear();
    }

    /// Cancels one request.
    pub(super) fn cancel(&self, id: &RequestId) {
        let found = lock(&self.in_flight).remove(id);
        if let Some(cancel) = found {
            cancel.cancel();
        }
    }

    /// Registers a request in progress. Fails if its id is in use.
    pub(super) fn begin(&self, id: &RequestId, cancel: &Cancel) -> Result<(), RpcError> {
        match lock(&self.in_flight).entry(id.clone()) {
            Entry::Occupied(_) => {
                let why = format!("Invalid request: the id {id} belongs to a request in progress");
                Err(RpcError::new(INVALID_REQUEST, why))
            }
            Entry::Vacant(free) => {
                free.insert(cancel.clone());
                Ok(())
            }
        }
    }

    /// Unregisters a request.
    pub(super) fn finish(&self, id: &RequestId) {
        lock(&self.in_flight).remove(id);
    }

    /// Registers a request to the client; its response will come through the receiver.
    pub(super) fn register_request(&self) -> (RequestId, mpsc::Receiver<Result<Value, RpcError>>) {
        let number = self.last_request.fetch_add(1, Ordering::Relaxed) + 1;
        let id = RequestId::Text(format!("haft-{number}"));
        let (sender, receiver) = mpsc::channel();
        lock(&self.pending).insert(id.clone(), sender);
        (id, receiver)
    }

    /// Unregisters a request to the client.
    pub(super) fn forget_request(&self, id: &RequestId) {
        lock(&self.pending).remove(id);
    }

    /// Delivers a response of the client; one without a request is ignored.
    pub(super) fn deliver(&self, id: &RequestId, outcome: Result<Value, RpcError>) {
        let sender = lock(&self.pending).remove(id);
        if let Some(sender) = sender {
            // The receiver is gone if the request was given up.
            let _ = sender.send(outcome);
        }
    }
}
