//! Where every request comes in, and where it goes from there.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use haft_tool::ToolError;
use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;
use tokio::sync::Semaphore;

use super::answer::{Answer, JSON, Refusal, events, whole};
use super::body::Bodies;
use super::guard::{Guard, is_metadata_path};
use super::headers::{self, LAST_EVENT, SESSION};
use super::reader::Reader;
use super::seats::{Busy, Seat};
use super::sessions::{Session, Sessions};
use super::stream::seen;
use super::{HttpOptions, Limits, PATH, post};
use crate::serve::server::Server;
use crate::wire::Version;

/// What all requests share.
pub(super) struct Door {
    pub(super) server: Arc<Server>,
    pub(super) limits: Limits,
    pub(super) sessions: Sessions,
    pub(super) bodies: Bodies,
    /// One permit for each request under way.
    pub(super) calls: Arc<Semaphore>,
    guard: Guard,
    metadata: Option<Bytes>,
}

impl Door {
    pub(super) fn new(
        server: Arc<Server>,
        options: HttpOptions,
        address: SocketAddr,
    ) -> Result<Self, ToolError> {
        let guard = Guard::new(&options, address);
        let metadata = options.metadata.as_ref().map(|metadata| {
            let mut told = json!({
                "resource": metadata.resource,
                "authorization_servers": metadata.authorization_servers,
                "bearer_methods_supported": ["header"],
            });
            if !metadata.scopes.is_empty() {
                told["scopes_supported"] = json!(metadata.scopes);
            }
            Bytes::from(told.to_string())
        });
        let limits = options.limits;
        let sessions = Sessions::new(&limits);
        let calls = Arc::new(Semaphore::new(limits.calls));
        if limits.connections == 0 || limits.calls == 0 || limits.sessions == 0 {
            return Err(ToolError::invalid_arguments(
                "every limit of an HTTP server must be at least 1".to_owned(),
            ));
        }
        Ok(Self { server, limits, sessions, bodies: Bodies::new(), calls, guard, metadata })
    }
}

/// Answers one request.
pub(super) async fn answer(
    door: &Arc<Door>,
    seat: &Arc<Seat>,
    request: Request<Incoming>,
) -> Response<Answer> {
    match respond(door, seat, request).await {
        Ok((mut response, busy)) => {
            response.body_mut().keep(busy);
            response
        }
        Err(refusal) => refusal.into_response(),
    }
}

async fn respond(
    door: &Arc<Door>,
    seat: &Arc<Seat>,
    request: Request<Incoming>,
) -> Result<(Response<Answer>, Busy), Refusal> {
    door.guard.host(&request)?;
    door.guard.origin(request.headers())?;
    let path = request.uri().path();
    if let Some(metadata) = door.metadata.as_ref().filter(|_| is_metadata_path(path)) {
        return match *request.method() {
            Method::GET => Ok((whole(StatusCode::OK, Some(JSON), metadata.clone()), work(seat)?)),
            _ => Err(not_allowed("GET")),
        };
    }
    if path != PATH {
        let why = format!("There is nothing at {path:?}; messages go to {PATH:?}");
        return Err(Refusal::new(StatusCode::NOT_FOUND, why));
    }
    let principal = door.guard.principal(request.headers())?;
    match *request.method() {
        Method::POST => post::answer(door, seat, request, &principal).await,
        Method::GET => listen(door, seat, &request, &principal),
        Method::DELETE => {
            let id = session_id(&request)?;
            door.sessions.end(id, &principal)?;
            Ok((whole(StatusCode::NO_CONTENT, None, Bytes::new()), work(seat)?))
        }
        _ => Err(not_allowed("POST, GET, DELETE")),
    }
}

/// From here on whoever has the seat keeps it.
pub(super) fn work(seat: &Arc<Seat>) -> Result<Busy, Refusal> {
    seat.busy().ok_or_else(|| Refusal::busy("There are too many connections").and_hang_up())
}

/// A stream for what belongs to no request, or the rest of one that broke.
fn listen(
    door: &Arc<Door>,
    seat: &Arc<Seat>,
    request: &Request<Incoming>,
    principal: &str,
) -> Result<(Response<Answer>, Busy), Refusal> {
    let id = session_id(request)?;
    headers::accept(request.headers(), request.method())?;
    let session = door.sessions.get(id, principal)?;
    let busy = work(seat)?;
    let reader = match headers::one_or_refuse(request.headers(), LAST_EVENT)? {
        None => session.listen().read_from(0, door.limits.heartbeat),
        Some(last) => resume(&session, last, door),
    };
    let reader = reader.ok_or_else(|| {
        Refusal::new(StatusCode::BAD_REQUEST, "What followed that event is unknown or was too long ago")
    })?;
    Ok((events(reader), busy))
}

fn resume(session: &Session, last: &str, door: &Door) -> Option<Reader> {
    let (stream, number) = seen(last)?;
    session.stream(stream)?.read_from(number, door.limits.heartbeat)
}

/// The session that a request without a message is about.
fn session_id<B>(request: &Request<B>) -> Result<&str, Refusal> {
    // Where there are no sessions there is nothing to get and nothing to delete.
    if headers::version(request.headers())?.is_some_and(Version::is_modern) {
        return Err(not_allowed("POST"));
    }
    headers::one_or_refuse(request.headers(), SESSION)?
        .ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing"))
}

fn not_allowed(methods: &'static str) -> Refusal {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, format!("Only {methods} may be used here"))
        .with(ALLOW, HeaderValue::from_static(methods))
}
