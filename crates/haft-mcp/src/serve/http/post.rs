//! Messages that come by POST.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft_net::server::{ConnectionSlot, RequestBody};
use haft_tool::Cancel;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde_json::Value;

use super::event_reader::{EventReader, FirstReply};
use super::event_stream::{EventSink, EventStream, StreamMode};
use super::header_params;
use super::headers::{self, SESSION};
use super::response::{JSON, Rejection, ResponseBody, complete, event_stream};
use super::router::{HttpState, Routed, activate};
use super::sessions::HttpSession;
use crate::serve::peer::{ClientPeer, MessageSink};
use crate::serve::server::{McpServer, check_stateless};
use crate::wire::{
    HEADER_MISMATCH, INVALID_REQUEST, InvalidMessage, METHOD_NOT_FOUND, MISSING_CAPABILITY, ProtocolVersion,
    RpcError, RpcInput, RpcMessage, UNSUPPORTED_VERSION, meta,
};

/// How long `initialize` may take; its response decides whether there is a session.
const INITIALIZE_TIMEOUT: Duration = Duration::from_mins(1);

/// Answers a POST request.
pub(super) async fn respond(
    state: &Arc<HttpState>,
    slot: &Arc<ConnectionSlot>,
    request: Request<Incoming>,
    principal: &str,
) -> Result<Routed, Rejection> {
    headers::check_content_type(request.headers())?;
    headers::check_accept(request.headers(), request.method())?;
    let (head, body) = request.into_parts();
    let body = state.bodies.read(body, &state.connection_limits).await.map_err(Rejection::of_body)?;
    let active = activate(slot)?;
    let input = parse(body).await?;
    let post = PostRequest { state, headers: &head.headers, principal };
    let response = match input {
        RpcInput::Single(message) => post.single(message).await?,
        RpcInput::Batch(all) => post.batch(all)?,
    };
    Ok((response, active))
}

/// Parses a body; a large one on another thread, because this one serves all connections.
async fn parse(body: RequestBody) -> Result<RpcInput, Rejection> {
    let reject = |InvalidMessage { id, error }| {
        let rejection = Rejection::error(StatusCode::BAD_REQUEST, *error);
        match id {
            Some(id) => rejection.of_request(&id),
            None => rejection,
        }
    };
    if !body.is_large() {
        return RpcInput::read(&body.bytes).map_err(reject);
    }
    let parsed = tokio::task::spawn_blocking(move || RpcInput::read(&body.bytes)).await;
    let failed =
        |_| InvalidMessage { id: None, error: RpcError::internal("The body could not be parsed").into() };
    parsed.map_err(failed).flatten().map_err(reject)
}

/// A POST request and its principal.
struct PostRequest<'a> {
    state: &'a Arc<HttpState>,
    headers: &'a HeaderMap,
    principal: &'a str,
}

impl PostRequest<'_> {
    async fn single(&self, message: RpcMessage) -> Result<Response<ResponseBody>, Rejection> {
        match &message {
            RpcMessage::Request { id, .. } => {
                let id = id.clone();
                self.request(message).await.map_err(|rejection| rejection.of_request(&id))
            }
            RpcMessage::Notification { method, params } => {
                let is_stateless = headers::version(self.headers)?.is_some_and(ProtocolVersion::is_stateless)
                    || meta::version(params).is_some();
                // Stateless clients have no notifications over HTTP: closing the stream cancels a request.
                if !is_stateless && method != "initialize" {
                    self.deliver(message)?;
                }
                Ok(accepted())
            }
            RpcMessage::Response { .. } => {
                headers::version(self.headers)?;
                self.deliver(message)?;
                Ok(accepted())
            }
        }
    }

    async fn request(&self, message: RpcMessage) -> Result<Response<ResponseBody>, Rejection> {
        let RpcMessage::Request { method, params, .. } = &message else { return Ok(accepted()) };
        if let Some(version) = meta::get(params, meta::VERSION) {
            self.check_stateless(version, method, params)?;
            return self.stateless(message).await;
        }
        if method == "initialize" {
            return self.initialize(message).await;
        }
        if headers::version(self.headers)?.is_some_and(ProtocolVersion::is_stateless) {
            let error = RpcError::invalid_params(format!("_meta must contain {:?}", meta::VERSION));
            return Err(Rejection::error(StatusCode::BAD_REQUEST, error));
        }
        self.legacy(&self.session()?, message).await
    }

    /// Passes on a message that has no response.
    fn deliver(&self, message: RpcMessage) -> Result<(), Rejection> {
        let session = self.session()?;
        self.state.server.begin(&session.peer, message, &discard(), &Cancel::new());
        Ok(())
    }

    fn session(&self) -> Result<Arc<HttpSession>, Rejection> {
        let id = headers::single_or_reject(self.headers, SESSION)?.ok_or_else(|| {
            let why = "Mcp-Session-Id is missing. Begin with \"initialize\", or name the version in _meta.";
            Rejection::new(StatusCode::BAD_REQUEST, why)
        })?;
        self.state.sessions.get(id, self.principal)
    }

    /// Checks that a stateless request is complete and that its headers match its body.
    fn check_stateless(&self, version: &Value, method: &str, params: &Value) -> Result<(), Rejection> {
        let name = version.as_str().unwrap_or_default();
        headers::check_match(self.headers, name, method, params)
            .and_then(|()| check_stateless(version, params))
            .map_err(|error| Rejection::error(StatusCode::BAD_REQUEST, error))
    }

    async fn stateless(&self, message: RpcMessage) -> Result<Response<ResponseBody>, Rejection> {
        let cancel = Cancel::new();
        let stream = EventStream::new(1, StreamMode::Single, Some(cancel.clone()), 1);
        let mut reader = self.reader(&stream)?;
        let peer = ClientPeer::new(self.principal);
        let headers = is_tool_call(&message).then(|| self.headers.clone());
        self.spawn(&stream, move |server, sink| {
            if let Some(error) = headers.and_then(|headers| header_error(server, &message, &headers)) {
                sink.send(&error);
                return;
            }
            server.handle(&peer, message, sink, &cancel);
        })?;
        Ok(match reader.first_reply(self.state.limits.stream_after).await {
            FirstReply::Response(bytes, code) => complete(status(code), Some(JSON), bytes),
            FirstReply::Stream => event_stream(reader),
        })
    }

    /// Answers `initialize` and begins a session if it succeeds.
    async fn initialize(&self, message: RpcMessage) -> Result<Response<ResponseBody>, Rejection> {
        let cancel = Cancel::new();
        let stream = EventStream::new(1, StreamMode::Single, Some(cancel.clone()), 1);
        let mut reader = self.reader(&stream)?;
        let peer = ClientPeer::new(self.principal);
        let shared = Arc::clone(&peer);
        self.spawn(&stream, move |server, sink| server.handle(&shared, message, sink, &cancel))?;
        let FirstReply::Response(bytes, code) = reader.first_reply(INITIALIZE_TIMEOUT).await else {
            return Ok(event_stream(reader));
        };
        let mut response = complete(StatusCode::OK, Some(JSON), bytes);
        if code.is_none() {
            let id = self.state.sessions.begin(peer)?;
            if let Ok(id) = HeaderValue::from_str(&id) {
                response.headers_mut().insert(HeaderName::from_static(SESSION), id);
            }
        }
        Ok(response)
    }

    async fn legacy(
        &self,
        session: &Arc<HttpSession>,
        message: RpcMessage,
    ) -> Result<Response<ResponseBody>, Rejection> {
        let cancel = Cancel::new();
        let stream = session.open_stream(Some(cancel.clone()), 1);
        let mut reader = self.reader(&stream)?;
        let peer = Arc::clone(&session.peer);
        let started = self.spawn(&stream, move |server, sink| server.handle(&peer, message, sink, &cancel));
        started.inspect_err(|_| session.remove_stream(&stream))?;
        Ok(match reader.first_reply(self.state.limits.stream_after).await {
            FirstReply::Response(bytes, _) => {
                session.remove_stream(&stream);
                complete(StatusCode::OK, Some(JSON), bytes)
            }
            FirstReply::Stream => event_stream(reader),
        })
    }

    fn batch(
        &self,
        all: Vec<Result<RpcMessage, InvalidMessage>>,
    ) -> Result<Response<ResponseBody>, Rejection> {
        headers::version(self.headers)?;
        let session = self.session()?;
        if session.peer.version() != Some(ProtocolVersion::V2025_03_26) {
            let why = "Invalid request: only protocol version 2025-03-26 has batches";
            return Err(Rejection::error(StatusCode::BAD_REQUEST, RpcError::new(INVALID_REQUEST, why)));
        }
        let has_response = |one: &&Result<_, _>| matches!(one, Ok(RpcMessage::Request { .. }) | Err(_));
        let responses = all.iter().filter(has_response).count();
        let peer = Arc::clone(&session.peer);
        let cancel = Cancel::new();
        let run = move |server: &Arc<McpServer>, sink: &Arc<dyn MessageSink>, cancel: &Cancel| {
            for message in all {
                match message {
                    Ok(message) => server.handle(&peer, message, sink, cancel),
                    Err(invalid) => {
                        sink.send(&invalid.into_response());
                    }
                }
            }
        };
        if responses == 0 {
            run(&self.state.server, &discard(), &cancel);
            return Ok(accepted());
        }
        let stream = session.open_stream(Some(cancel.clone()), responses);
        let reader = self.reader(&stream)?;
        let started = self.spawn(&stream, move |server, sink| run(server, sink, &cancel));
        started.inspect_err(|_| session.remove_stream(&stream))?;
        Ok(event_stream(reader))
    }

    fn reader(&self, stream: &Arc<EventStream>) -> Result<EventReader, Rejection> {
        let reader = stream.read_after(0, self.state.limits.heartbeat_interval);
        reader.ok_or_else(|| Rejection::new(StatusCode::INTERNAL_SERVER_ERROR, "The stream has ended"))
    }

    /// Runs `work` on a thread that may block, unless there are too many requests.
    fn spawn(
        &self,
        stream: &Arc<EventStream>,
        work: impl FnOnce(&Arc<McpServer>, &Arc<dyn MessageSink>) + Send + 'static,
    ) -> Result<(), Rejection> {
        let permit = Arc::clone(&self.state.requests).try_acquire_owned().map_err(|_| {
            let max = self.state.limits.max_requests;
            Rejection::overloaded(format!("Too many requests are in progress (at most {max})"))
        })?;
        let sink: Arc<dyn MessageSink> = Arc::new(EventSink(Arc::clone(stream)));
        let server = Arc::clone(&self.state.server);
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&server, &sink);
        });
        Ok(())
    }
}

fn is_tool_call(message: &RpcMessage) -> bool {
    matches!(message, RpcMessage::Request { method, .. } if method == "tools/call")
}

/// The error response to a call whose headers do not repeat the arguments that its tool marks.
fn header_error(server: &McpServer, message: &RpcMessage, headers: &HeaderMap) -> Option<RpcMessage> {
    let RpcMessage::Request { id, params, .. } = message else { return None };
    let schema = server.service().header_schema(params.get("name")?.as_str()?)?;
    let arguments = params.get("arguments").unwrap_or(&Value::Null);
    let error = header_params::check(headers, &schema, arguments).err()?;
    Some(RpcMessage::response(id.clone(), Err(error)))
}

/// The HTTP status of a stateless response.
fn status(code: Option<i64>) -> StatusCode {
    match code {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn accepted() -> Response<ResponseBody> {
    complete(StatusCode::ACCEPTED, None, Bytes::new())
}

/// A sink for messages that have no response.
fn discard() -> Arc<dyn MessageSink> {
    struct DiscardSink;
    impl MessageSink for DiscardSink {
        fn send(&self, _: &RpcMessage) -> bool {
            false
        }
    }
    Arc::new(DiscardSink)
}
