//! Requests to one server after the handshake.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use haft_tool::{Cancel, CancelGuard};
use serde_json::{Value, json};

use super::connection::{PreparedRequest, ServerConnection};
use super::deadline::Deadline;
use super::handshake::Handshake;
use super::http::headers::HeaderParam;
use super::inbound::Inbound;
use super::timed_mutex::TimedMutex;
use super::{ClientCapabilities, ClientError, ClientOptions, McpError, ServerInfo, lock};
use crate::wire::{ProtocolVersion, RequestId, RpcMessage};

/// A session with one server.
pub(super) struct ClientSession {
    pub(super) connection: Arc<dyn ServerConnection>,
    pub(super) inbound: Arc<Inbound>,
    pub(super) options: ClientOptions,
    last_id: AtomicI64,
    negotiated: Mutex<Negotiated>,
    /// The arguments of each tool that are repeated in headers, from the last list.
    pub(super) header_params: Mutex<HashMap<String, Vec<HeaderParam>>>,
    /// Whether the transport has headers.
    pub(super) has_headers: bool,
    pub(super) closed: Cancel,
    /// Held by the thread that begins a new session.
    renewing: TimedMutex,
}

/// The outcome of the last handshake.
struct Negotiated {
    info: ServerInfo,
    /// The number of handshakes so far.
    count: u64,
}

/// A request before it is prepared.
pub(super) struct OutgoingRequest {
    pub(super) method: &'static str,
    pub(super) params: Value,
    pub(super) headers: Vec<(String, String)>,
}

impl OutgoingRequest {
    pub(super) fn new(method: &'static str, params: Value) -> Self {
        Self { method, params, headers: Vec::new() }
    }
}

impl ClientSession {
    /// Runs the handshake; closes the connection if it fails.
    pub(super) fn begin(
        connection: Arc<dyn ServerConnection>,
        inbound: Arc<Inbound>,
        options: ClientOptions,
        has_headers: bool,
    ) -> Result<Self, ClientError> {
        let (last_id, closed) = (AtomicI64::new(1), Cancel::new());
        inbound.outgoing.attach(Arc::downgrade(&connection));
        let handshake = Handshake {
            connection: connection.as_ref(),
            inbound: &inbound,
            last_id: &last_id,
            options: &options,
            cancel: &closed,
        };
        let info = handshake.run().inspect_err(|_| {
            inbound.close();
            connection.close();
        })?;
        if !info.version.is_stateless() && inbound.capabilities() != ClientCapabilities::default() {
            connection.listen();
        }
        let negotiated = Mutex::new(Negotiated { info, count: 1 });
        let (header_params, renewing) = (Mutex::default(), TimedMutex::default());
        Ok(Self {
            connection,
            inbound,
            options,
            last_id,
            negotiated,
            header_params,
            has_headers,
            closed,
            renewing,
        })
    }

    pub(super) fn info(&self) -> ServerInfo {
        lock(&self.negotiated).info.clone()
    }

    pub(super) fn version(&self) -> ProtocolVersion {
        lock(&self.negotiated).info.version
    }

    /// A cancellation that follows the caller's and the end of the session.
    pub(super) fn linked_cancel(&self, caller: &Cancel) -> (Cancel, [CancelGuard; 2]) {
        let linked = Cancel::new();
        let link = |to: &Cancel| {
            let linked = linked.clone();
            to.on_cancel(move || linked.cancel())
        };
        let guards = [link(caller), link(&self.closed)];
        (linked, guards)
    }

    /// Sends a request. If the server has lost the session, begins a new one and sends it again.
    pub(super) fn request(
        &self,
        request: &OutgoingRequest,
        deadline: &Deadline<'_>,
    ) -> Result<Value, ClientError> {
        let handshakes = lock(&self.negotiated).count;
        match self.request_once(request, deadline) {
            // The server has not processed the request.
            Err(error) if error.kind == McpError::SessionExpired => {
                self.renew(handshakes, deadline)?;
                self.request_once(request, deadline)
            }
            outcome => outcome,
        }
    }

    fn request_once(&self, request: &OutgoingRequest, deadline: &Deadline<'_>) -> Result<Value, ClientError> {
        let prepared = self.prepare(request);
        self.connection.request(&prepared, deadline).map_err(|error| {
            if matches!(error.kind, McpError::TimedOut | McpError::Cancelled)
                && self.connection.sends_cancellation(&prepared)
            {
                let reason = "the caller no longer waits for the result";
                let params = json!({"requestId": prepared.id, "reason": reason});
                self.inbound.outgoing.push(RpcMessage::notification("notifications/cancelled", params));
            }
            let was_closed = error.kind == McpError::Cancelled && self.closed.is_cancelled();
            if was_closed { ClientError::closed() } else { error }
        })
    }

    /// Adds what the protocol version requires.
    fn prepare(&self, request: &OutgoingRequest) -> PreparedRequest {
        let id = RequestId::Number(self.last_id.fetch_add(1, Ordering::Relaxed));
        let version = Some(self.version()).filter(|version| version.is_stateless());
        let mut params = request.params.clone();
        let mut meta = version.map_or_else(|| json!({}), |version| self.handshake().request_meta(version));
        if let Some(Value::Object(own)) = params.get("_meta") {
            for (field, value) in own {
                meta[field] = value.clone();
            }
        }
        if request.method == "tools/call" {
            meta["progressToken"] = json!(id);
        }
        if meta.as_object().is_some_and(|meta| !meta.is_empty()) {
            params["_meta"] = meta;
        } else if params.as_object().is_some_and(serde_json::Map::is_empty) {
            params = Value::Null;
        }
        PreparedRequest { id, method: request.method, params, version, headers: request.headers.clone() }
    }

    fn handshake(&self) -> Handshake<'_> {
        let Self { connection, inbound, options, last_id, closed, .. } = self;
        Handshake { connection: connection.as_ref(), inbound, last_id, options, cancel: closed }
    }

    /// Begins a new session, unless another thread has done so since the handshake of that number.
    fn renew(&self, handshakes: u64, deadline: &Deadline<'_>) -> Result<(), ClientError> {
        let _guard = self.renewing.lock(&|| deadline.remaining("initialize"))?;
        let version = {
            let negotiated = lock(&self.negotiated);
            if negotiated.count != handshakes {
                return Ok(());
            }
            negotiated.info.version
        };
        let timeout = deadline.remaining("initialize")?.min(self.options.limits.connect_timeout);
        let info = self.handshake().initialize(version, Instant::now() + timeout)?;
        *lock(&self.negotiated) = Negotiated { info, count: handshakes + 1 };
        Ok(())
    }

    /// Closes the session. Idempotent.
    pub(super) fn close(&self) {
        self.closed.cancel();
        self.inbound.close();
        self.connection.close();
    }
}

impl Drop for ClientSession {
    fn drop(&mut self) {
        self.close();
    }
}
