//! A server over HTTP. Each message is one POST request, whose response is a body or a stream of events.
//!
//! A legacy server may open a session, which later requests name, and may interrupt a stream that is resumed later. Servers
//! of version 2024-11-05 have another transport ([`sse`]).

mod endpoint_client;
pub(super) mod headers;
mod listen;
mod response;
pub(super) mod sse;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_tool::{Cancel, HttpStream, HttpStreams, Secret};
use serde_json::Value;

use self::endpoint_client::{EndpointClient, EndpointRequest};
use super::connection::{PreparedRequest, ServerConnection};
use super::deadline::Deadline;
use super::inbound::Inbound;
use super::{ClientError, ClientLimits, McpError, TokenProvider, lock};
use crate::wire::{ProtocolVersion, RpcMessage};

/// How long the DELETE request at the end of a session may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_SESSION_ID_BYTES: usize = 4096;

/// A server's URL and how it is reached.
#[derive(Clone)]
pub struct HttpEndpoint {
    /// The URL.
    pub url: String,
    /// Headers of every request.
    pub headers: Vec<(String, Secret)>,
    /// The network.
    pub http: Arc<dyn HttpStreams>,
    /// Provides tokens, if the server may require them.
    pub tokens: Option<Arc<dyn TokenProvider>>,
}

/// A connection over Streamable HTTP.
pub(super) struct StreamableConnection(Arc<StreamableShared>);

struct StreamableShared {
    client: EndpointClient,
    inbound: Arc<Inbound>,
    state: Mutex<StreamableState>,
    closed: Cancel,
}

#[derive(Default)]
struct StreamableState {
    session_id: Option<String>,
    /// The version of a handshake.
    version: Option<ProtocolVersion>,
    is_listening: bool,
}

impl StreamableConnection {
    pub(super) fn new(
        endpoint: HttpEndpoint,
        limits: &ClientLimits,
        inbound: &Arc<Inbound>,
    ) -> Result<Self, ClientError> {
        let client = EndpointClient::new(endpoint, limits)?;
        let (inbound, state, closed) = (Arc::clone(inbound), Mutex::default(), Cancel::new());
        Ok(Self(Arc::new(StreamableShared { client, inbound, state, closed })))
    }
}

impl StreamableShared {
    /// The headers for the protocol version and the session; `version` is that of a stateless request.
    fn headers(&self, version: Option<ProtocolVersion>) -> Vec<(String, String)> {
        let state = lock(&self.state);
        let mut headers = Vec::new();
        // Earlier versions do not have this header.
        let negotiated = state.version.filter(|version| *version >= ProtocolVersion::V2025_06_18);
        if let Some(version) = version.or(negotiated) {
            headers.push(("MCP-Protocol-Version".to_owned(), version.as_str().to_owned()));
        }
        if let Some(id) = state.session_id.as_ref().filter(|_| version.is_none()) {
            headers.push(("Mcp-Session-Id".to_owned(), id.clone()));
        }
        headers
    }

    fn post(
        &self,
        message: &RpcMessage,
        mut headers: Vec<(String, String)>,
        what: &str,
        deadline: &Deadline<'_>,
    ) -> Result<HttpStream, ClientError> {
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        headers.push(("Accept".to_owned(), "application/json, text/event-stream".to_owned()));
        let has_session = headers.iter().any(|(name, _)| name == "Mcp-Session-Id");
        let (url, body) = (&self.client.url, Some(message.to_line()));
        let request = EndpointRequest { http_method: "POST", url, headers, body, what };
        let stream = self.client.open(&request, deadline)?;
        match stream.status {
            200..=299 => Ok(stream),
            404 if has_session => {
                let why = format!("{} no longer knows the session", self.client.display_url);
                Err(ClientError::new(McpError::SessionExpired, why))
            }
            _ => Err(self.client.status_error(stream, what, deadline)),
        }
    }
}

impl ServerConnection for StreamableConnection {
    fn request(&self, request: &PreparedRequest, deadline: &Deadline<'_>) -> Result<Value, ClientError> {
        let shared = &self.0;
        let is_initialize = request.method == "initialize";
        if is_initialize {
            let mut state = lock(&shared.state);
            (state.session_id, state.version) = (None, None);
        }
        let mut all = shared.headers(request.version);
        if request.version.is_some() {
            all.push(("Mcp-Method".to_owned(), request.method.to_owned()));
            let name = match request.method {
                "tools/call" | "prompts/get" => request.params.get("name"),
                "resources/read" => request.params.get("uri"),
                _ => None,
            };
            if let Some(name) = name.and_then(Value::as_str) {
                all.push(("Mcp-Name".to_owned(), headers::encode(name)));
            }
            all.extend(request.headers.iter().cloned());
        }
        let stream = shared.post(&request.message(), all, request.method, deadline)?;
        let session_id = stream.header("mcp-session-id").map(str::to_owned);
        let result = shared.read_response(stream, request, deadline)?;
        if is_initialize && let Some(id) = session_id {
            let is_visible = !id.is_empty() && id.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
            if !is_visible || id.len() > MAX_SESSION_ID_BYTES {
                return Err(ClientError::invalid_message("the server's session id is invalid"));
            }
            lock(&shared.state).session_id = Some(id);
        }
        Ok(result)
    }

    fn send(&self, message: &RpcMessage, timeout: Duration) -> Result<(), ClientError> {
        let deadline = Deadline::after(timeout, &self.0.closed);
        // The body has no content.
        self.0.post(message, self.0.headers(None), "a notification", &deadline).map(drop)
    }

    fn sends_cancellation(&self, request: &PreparedRequest) -> bool {
        // Closing the stream cancels a stateless request.
        request.version.is_none()
    }

    fn negotiated(&self, version: ProtocolVersion) {
        lock(&self.0.state).version = Some(version);
    }

    fn listen(&self) {
        let is_first = !std::mem::replace(&mut lock(&self.0.state).is_listening, true);
        if is_first {
            listen::start(&self.0);
        }
    }

    fn close(&self) {
        self.0.closed.cancel();
        let headers = self.0.headers(None);
        if lock(&self.0.state).session_id.take().is_some() {
            let (url, what) = (&self.0.client.url, "the end of the session");
            let request = EndpointRequest { http_method: "DELETE", url, headers, body: None, what };
            // Servers need not support this.
            let _ = self.0.client.open_once(&request, &Deadline::after(CLOSE_TIMEOUT, &Cancel::new()));
        }
    }
}
