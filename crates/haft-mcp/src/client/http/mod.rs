//! A server over HTTP: each request is one of HTTP's, and its answer a body or a stream of events.
//!
//! The new era needs no more than that. In the old one a server may open a session, which every request then names, and
//! may break a stream off to be asked for the rest of it later. The oldest servers of all answer on one stream for all
//! ([`old`]).

mod door;
mod events;
pub(super) mod headers;
mod listening;
pub(super) mod old;
mod reading;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_tool::{Cancel, HttpStreams, Secret};
use serde_json::Value;

use self::door::{Door, Sent};
use super::ear::Ear;
use super::link::{Asked, Link};
use super::patience::Patience;
use super::{ClientError, ClientLimits, McpError, TokenProvider, lock};
use crate::wire::{ProtocolVersion, RpcMessage};

/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// Where a server is, and how it is reached.
#[derive(Clone)]
pub struct HttpEndpoint {
    /// Its address.
    pub url: String,
    /// Headers that go with every request.
    pub headers: Vec<(String, Secret)>,
    /// The network.
    pub http: Arc<dyn HttpStreams>,
    /// Who gets the tokens, if the server wants any.
    pub tokens: Option<Arc<dyn TokenProvider>>,
}

/// The way to a server that answers each request by itself.
pub(super) struct Streamable(Arc<Inner>);

struct Inner {
    door: Door,
    ear: Arc<Ear>,
    state: Mutex<State>,
    closed: Cancel,
}

#[derive(Default)]
struct State {
    session: Option<String>,
    agreed: Option<ProtocolVersion>,
    listening: bool,
}

impl Streamable {
    pub(super) fn new(
        endpoint: HttpEndpoint,
        limits: &ClientLimits,
        ear: &Arc<Ear>,
    ) -> Result<Self, ClientError> {
        let door = Door::new(endpoint, limits)?;
        let inner = Inner { door, ear: Arc::clone(ear), state: Mutex::default(), closed: Cancel::new() };
        Ok(Self(Arc::new(inner)))
    }
}

impl Inner {
    /// The headers that say in which revision, and in which session, something is said.
    fn headers(&self, version: Option<ProtocolVersion>) -> Vec<(String, String)> {
        let state = lock(&self.state);
        let mut headers = Vec::new();
        // Revisions before this one had no such header.
        let agreed = state.agreed.filter(|agreed| *agreed >= ProtocolVersion::V2025_06_18);
        if let Some(version) = version.or(agreed) {
            headers.push(("MCP-Protocol-Version".to_owned(), version.as_str().to_owned()));
        }
        if let Some(session) = state.session.as_ref().filter(|_| version.is_none()) {
            headers.push(("Mcp-Session-Id".to_owned(), session.clone()));
        }
        headers
    }

    /// A message on its way.
    fn post(
        &self,
        message: &RpcMessage,
        mut headers: Vec<(String, String)>,
        what: &str,
        patience: &Patience<'_>,
    ) -> Result<haft_tool::HttpStream, ClientError> {
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        headers.push(("Accept".to_owned(), "application/json, text/event-stream".to_owned()));
        let named = headers.iter().any(|(name, _)| name == "Mcp-Session-Id");
        let body = Some(message.to_line());
        let sent = Sent { method: "POST", url: &self.door.url, headers, body, what };
        let stream = self.door.open(&sent, patience)?;
        match stream.status {
            200..=299 => Ok(stream),
            404 if named => Err(ClientError::new(
                McpError::SessionExpired,
                format!("{} does not know this session any more", self.door.shown),
            )),
            _ => Err(self.door.refusal(stream, what, patience)),
        }
    }
}

impl Link for Streamable {
    fn ask(&self, asked: &Asked, patience: &Patience<'_>) -> Result<Value, ClientError> {
        let inner = &self.0;
        let begins = asked.method == "initialize";
        if begins {
            let mut state = lock(&inner.state);
            (state.session, state.agreed) = (None, None);
        }
        let mut all = inner.headers(asked.version);
        if asked.version.is_some() {
            all.push(("Mcp-Method".to_owned(), asked.method.to_owned()));
            let name = match asked.method {
                "tools/call" | "prompts/get" => asked.params.get("name"),
                "resources/read" => asked.params.get("uri"),
                _ => None,
            };
            if let Some(name) = name.and_then(Value::as_str) {
                all.push(("Mcp-Name".to_owned(), headers::encode(name)));
            }
            all.extend(asked.headers.iter().cloned());
        }
        let stream = inner.post(&asked.message(), all, asked.method, patience)?;
        let session = stream.header("mcp-session-id").map(str::to_owned);
        let answer = inner.read(stream, asked, patience)?;
        if begins && let Some(session) = session {
            let visible = !session.is_empty() && session.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
            if !visible || session.len() > 4096 {
                return Err(ClientError::invalid_message(
                    "the server's session id is none that a header can hold",
                ));
            }
            lock(&inner.state).session = Some(session);
        }
        Ok(answer)
    }

    fn tell(&self, message: &RpcMessage, limit: Duration) -> Result<(), ClientError> {
        let patience = Patience::of(limit, &self.0.closed);
        // A body would say nothing that matters.
        self.0.post(message, self.0.headers(None), "a notification", &patience).map(drop)
    }

    fn taken_back(&self, asked: &Asked) -> Option<RpcMessage> {
        // Where each request says its revision itself, the end of its stream says this.
        if asked.version.is_some() {
            return None;
        }
        let params = serde_json::json!({"requestId": asked.id, "reason": "nobody waits for it any more"});
        Some(RpcMessage::notification("notifications/cancelled", params))
    }

    fn agreed(&self, version: ProtocolVersion) {
        lock(&self.0.state).agreed = Some(version);
    }

    fn listen(&self) {
        let begins = !std::mem::replace(&mut lock(&self.0.state).listening, true);
        if begins {
            listening::start(&self.0);
        }
    }

    fn close(&self) {
        self.0.closed.cancel();
        let headers = self.0.headers(None);
        let session = std::mem::take(&mut lock(&self.0.state).session);
        if session.is_some() {
            let cancel = Cancel::new();
            let url = &self.0.door.url;
            let sent = Sent { method: "DELETE", url, headers, body: None, what: "the end of the session" };
            // A server that does not want to know is left alone.
            let _ = self.0.door.open_as_is(&sent, &Patience::of(FAREWELL, &cancel));
        }
    }
}
