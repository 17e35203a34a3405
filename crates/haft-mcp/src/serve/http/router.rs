//! Checks HTTP requests and routes them by path and method.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use haft_net::server::{ActiveRequest, BodyReader, ConnectionLimits, ConnectionSlot, RequestHandler};
use haft_tool::ToolError;
use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;
use tokio::sync::Semaphore;

use super::access::{ClientAccess, is_metadata_path};
use super::event_reader::EventReader;
use super::event_stream::parse_event_id;
use super::headers::{self, LAST_EVENT, SESSION};
use super::response::{JSON, Rejection, ResponseBody, complete, event_stream};
use super::sessions::{HttpSession, HttpSessions};
use super::{HttpServerLimits, HttpServerOptions, PATH, post};
use crate::serve::server::McpServer;
use crate::wire::ProtocolVersion;

/// A response, and the guard that keeps its connection until it is written.
pub(super) type Routed = (Response<ResponseBody>, ActiveRequest);

/// What all requests share.
pub(super) struct HttpState {
    pub(super) server: Arc<McpServer>,
    pub(super) limits: HttpServerLimits,
    pub(super) sessions: HttpSessions,
    pub(super) bodies: BodyReader,
    pub(super) connection_limits: ConnectionLimits,
    /// One permit for each request in progress.
    pub(super) requests: Arc<Semaphore>,
    access: ClientAccess,
    metadata: Option<Bytes>,
}

impl HttpState {
    pub(super) fn new(
        server: Arc<McpServer>,
        options: HttpServerOptions,
        address: SocketAddr,
    ) -> Result<Self, ToolError> {
        let access = ClientAccess::new(&options, address);
        let metadata = options.metadata.as_ref().map(|metadata| {
            let mut document = json!({
                "resource": metadata.resource,
                "authorization_servers": metadata.authorization_servers,
                "bearer_methods_supported": ["header"],
            });
            if !metadata.scopes.is_empty() {
                document["scopes_supported"] = json!(metadata.scopes);
            }
            Bytes::from(document.to_string())
        });
        let limits = options.limits;
        if limits.max_connections == 0 || limits.max_requests == 0 || limits.max_sessions == 0 {
            let why = "each limit of an HTTP server must be at least 1";
            return Err(ToolError::invalid_arguments(why.to_owned()));
        }
        let sessions = HttpSessions::new(&limits);
        let requests = Arc::new(Semaphore::new(limits.max_requests));
        let (bodies, connection_limits) = (BodyReader::default(), limits.of_connections());
        Ok(Self { server, limits, sessions, bodies, connection_limits, requests, access, metadata })
    }
}

impl RequestHandler for HttpState {
    type Body = ResponseBody;

    async fn respond(
        self: Arc<Self>,
        slot: Arc<ConnectionSlot>,
        request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        match route(&self, &slot, request).await {
            Ok((mut response, active)) => {
                response.body_mut().hold(active);
                response
            }
            Err(rejection) => rejection.into_response(),
        }
    }

    fn tick(&self) {
        self.sessions.expire(Instant::now());
    }

    fn close(&self) {
        self.server.close();
        self.sessions.close();
    }
}

async fn route(
    state: &Arc<HttpState>,
    slot: &Arc<ConnectionSlot>,
    request: Request<Incoming>,
) -> Result<Routed, Rejection> {
    state.access.check_source(&request)?;
    let path = request.uri().path();
    if let Some(metadata) = state.metadata.as_ref().filter(|_| is_metadata_path(path)) {
        return match *request.method() {
            Method::GET => Ok((complete(StatusCode::OK, Some(JSON), metadata.clone()), activate(slot)?)),
            _ => Err(method_not_allowed("GET")),
        };
    }
    if path != PATH {
        let why = format!("There is nothing at {path:?}; the endpoint is {PATH:?}");
        return Err(Rejection::new(StatusCode::NOT_FOUND, why));
    }
    let principal = state.access.authenticate(request.headers())?;
    match *request.method() {
        Method::POST => post::respond(state, slot, request, &principal).await,
        Method::GET => listen(state, slot, &request, &principal),
        Method::DELETE => {
            state.sessions.end(session_id(&request)?, &principal)?;
            Ok((complete(StatusCode::NO_CONTENT, None, Bytes::new()), activate(slot)?))
        }
        _ => Err(method_not_allowed("POST, GET, DELETE")),
    }
}

/// Marks the connection as active, so that it is not evicted.
pub(super) fn activate(slot: &Arc<ConnectionSlot>) -> Result<ActiveRequest, Rejection> {
    slot.activate().ok_or_else(|| Rejection::overloaded("There are too many connections").and_close())
}

/// Opens the stream for messages that belong to no request, or resumes one that was interrupted.
fn listen(
    state: &Arc<HttpState>,
    slot: &Arc<ConnectionSlot>,
    request: &Request<Incoming>,
    principal: &str,
) -> Result<Routed, Rejection> {
    let id = session_id(request)?;
    headers::check_accept(request.headers(), request.method())?;
    let session = state.sessions.get(id, principal)?;
    let active = activate(slot)?;
    let heartbeat = state.limits.heartbeat_interval;
    let reader = match headers::single_or_reject(request.headers(), LAST_EVENT)? {
        None => session.listen().read_after(0, heartbeat),
        Some(last_event) => resume(&session, last_event, state),
    };
    let reader = reader.ok_or_else(|| {
        let why = "The events after that Last-Event-ID are unknown or no longer available";
        Rejection::new(StatusCode::BAD_REQUEST, why)
    })?;
    Ok((event_stream(reader), active))
}

fn resume(session: &HttpSession, last_event: &str, state: &HttpState) -> Option<EventReader> {
    let (stream, number) = parse_event_id(last_event)?;
    session.stream(stream)?.read_after(number, state.limits.heartbeat_interval)
}

/// The session of a GET or DELETE request.
fn session_id<B>(request: &Request<B>) -> Result<&str, Rejection> {
    if headers::version(request.headers())?.is_some_and(ProtocolVersion::is_stateless) {
        return Err(method_not_allowed("POST"));
    }
    headers::single_or_reject(request.headers(), SESSION)?
        .ok_or_else(|| Rejection::new(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing"))
}

fn method_not_allowed(methods: &'static str) -> Rejection {
    Rejection::new(StatusCode::METHOD_NOT_ALLOWED, format!("Allowed here: {methods}"))
        .with(ALLOW, HeaderValue::from_static(methods))
}
