//! A message that came by POST.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft_tool::Cancel;
use hyper::body::Incoming as IncomingBody;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde_json::Value;

use super::answer::{Answer, JSON, Refusal, events, whole};
use super::body::Whole;
use super::front::{Door, work};
use super::headers::{self, SESSION};
use super::mirrored;
use super::reader::{Opening, Reader};
use super::seats::{Busy, Seat};
use super::sessions::Session;
use super::stream::{Manner, Speaker, Stream};
use crate::serve::peer::{Outbox, Peer};
use crate::serve::server::{self, Server};
use crate::wire::{
    HEADER_MISMATCH, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, MISSING_CAPABILITY, Message, RpcError,
    UNSUPPORTED_VERSION, Version, meta,
};

/// How long a handshake may take; its answer decides whether there is a session, so it is waited for.
const HANDSHAKE: Duration = Duration::from_mins(1);

/// Answers a message, or several.
pub(super) async fn answer(
    door: &Arc<Door>,
    seat: &Arc<Seat>,
    request: Request<IncomingBody>,
    principal: &str,
) -> Result<(Response<Answer>, Busy), Refusal> {
    headers::content_type(request.headers())?;
    headers::accept(request.headers(), request.method())?;
    let (head, body) = request.into_parts();
    let body = door.bodies.read(body, &door.limits).await?;
    let busy = work(seat)?;
    let incoming = understand(body).await?;
    let asked = Asked { door, headers: &head.headers, principal };
    let response = match incoming {
        Incoming::One(message) => asked.one(message).await?,
        Incoming::Batch(all) => asked.batch(all)?,
    };
    Ok((response, busy))
}

/// What a body says. A large one is read where nobody else has to wait for it.
async fn understand(body: Whole) -> Result<Incoming, Refusal> {
    let refuse = |error| Refusal::error(StatusCode::BAD_REQUEST, error);
    if !body.is_large() {
        return Incoming::read(&body.bytes).map_err(refuse);
    }
    let read = tokio::task::spawn_blocking(move || Incoming::read(&body.bytes)).await;
    read.unwrap_or_else(|_| Err(RpcError::internal("The body could not be read"))).map_err(refuse)
}

/// A request by POST, and who it is from.
struct Asked<'a> {
    door: &'a Arc<Door>,
    headers: &'a HeaderMap,
    principal: &'a str,
}

impl Asked<'_> {
    async fn one(&self, message: Message) -> Result<Response<Answer>, Refusal> {
        match message {
            Message::Request { id, method, params } => {
                let refused = |refusal: Refusal| refusal.to(&id);
                if let Some(version) = meta::get(&params, meta::VERSION) {
                    self.check(version, &method, &params).map_err(refused)?;
                    return self
                        .modern(Message::Request { id: id.clone(), method, params })
                        .await
                        .map_err(refused);
                }
                if method == "initialize" {
                    let message = Message::Request { id: id.clone(), method, params };
                    return self.handshake(message).await.map_err(refused);
                }
                if headers::version(self.headers).map_err(refused)?.is_some_and(Version::is_modern) {
                    let error = RpcError::params(format!("_meta must have {:?}", meta::VERSION));
                    return Err(refused(Refusal::error(StatusCode::BAD_REQUEST, error)));
                }
                let session = self.session().map_err(refused)?;
                self.legacy(&session, Message::Request { id: id.clone(), method, params })
                    .await
                    .map_err(refused)
            }
            Message::Notification { method, params } => {
                let modern = headers::version(self.headers)?.is_some_and(Version::is_modern);
                // A request is taken back by hanging up in the new era, and nothing else is told there.
                if !modern && meta::version(&params).is_none() && method != "initialize" {
                    self.tell(Message::Notification { method, params })?;
                }
                Ok(accepted())
            }
            answer @ Message::Response { .. } => {
                headers::version(self.headers)?;
                self.tell(answer)?;
                Ok(accepted())
            }
        }
    }

    /// Something that has no answer.
    fn tell(&self, message: Message) -> Result<(), Refusal> {
        let session = self.session()?;
        self.door.server.handle(&session.peer, message, &nowhere(), &Cancel::new());
        Ok(())
    }

    fn session(&self) -> Result<Arc<Session>, Refusal> {
        let id = headers::one_or_refuse(self.headers, SESSION)?.ok_or_else(|| {
            let why = "Mcp-Session-Id is missing; begin with \"initialize\", or say the revision in _meta";
            Refusal::new(StatusCode::BAD_REQUEST, why)
        })?;
        self.door.sessions.get(id, self.principal)
    }

    /// Whether a request that speaks for itself says everything it has to, and the same everywhere.
    fn check(&self, version: &Value, method: &str, params: &Value) -> Result<(), Refusal> {
        let word = version.as_str().unwrap_or_default();
        let agreed = headers::agree(self.headers, word, method, params);
        let complete = agreed.and_then(|()| server::speaks_for_itself(version, params));
        complete.map_err(|error| Refusal::error(StatusCode::BAD_REQUEST, error))
    }

    /// A request that speaks for itself.
    async fn modern(&self, message: Message) -> Result<Response<Answer>, Refusal> {
        let cancel = Cancel::new();
        let stream = Stream::new(1, Manner::Once, Some(cancel.clone()), 1);
        let mut reader = self.reader(&stream)?;
        let peer = Peer::new(self.principal);
        let headers = is_call(&message).then(|| self.headers.clone());
        self.run(&stream, move |server, outbox| {
            if let Some(refused) = headers.and_then(|headers| mirrored(server, &message, &headers)) {
                outbox.send(&refused);
                return;
            }
            server.handle(&peer, message, outbox, &cancel);
        })?;
        Ok(match reader.opening(self.door.limits.patience).await {
            Opening::Answer(bytes, code) => whole(status(code), Some(JSON), bytes),
            Opening::Events => events(reader),
        })
    }

    /// The first request of somebody who wants a session.
    async fn handshake(&self, message: Message) -> Result<Response<Answer>, Refusal> {
        let cancel = Cancel::new();
        let stream = Stream::new(1, Manner::Once, Some(cancel.clone()), 1);
        let mut reader = self.reader(&stream)?;
        let peer = Peer::new(self.principal);
        let introduced = Arc::clone(&peer);
        self.run(&stream, move |server, outbox| server.handle(&introduced, message, outbox, &cancel))?;
        let Opening::Answer(bytes, code) = reader.opening(HANDSHAKE).await else { return Ok(events(reader)) };
        let mut response = whole(StatusCode::OK, Some(JSON), bytes);
        if code.is_none() {
            let id = self.door.sessions.begin(peer)?;
            if let Ok(id) = HeaderValue::from_str(&id) {
                response.headers_mut().insert(HeaderName::from_static(SESSION), id);
            }
        }
        Ok(response)
    }

    /// A request within a session.
    async fn legacy(&self, session: &Arc<Session>, message: Message) -> Result<Response<Answer>, Refusal> {
        let cancel = Cancel::new();
        let stream = session.open(Some(cancel.clone()), 1);
        let mut reader = self.reader(&stream)?;
        let peer = Arc::clone(&session.peer);
        let started = self.run(&stream, move |server, outbox| server.handle(&peer, message, outbox, &cancel));
        started.inspect_err(|_| session.forget(&stream))?;
        Ok(match reader.opening(self.door.limits.patience).await {
            Opening::Answer(bytes, _) => {
                session.forget(&stream);
                whole(StatusCode::OK, Some(JSON), bytes)
            }
            Opening::Events => events(reader),
        })
    }

    /// Several messages at once, which one revision allows.
    fn batch(&self, all: Vec<Result<Message, RpcError>>) -> Result<Response<Answer>, Refusal> {
        headers::version(self.headers)?;
        let session = self.session()?;
        if session.peer.version() != Some(Version::V2025_03_26) {
            let why = "Invalid request: a batch, which only revision 2025-03-26 has";
            return Err(Refusal::error(StatusCode::BAD_REQUEST, RpcError::new(INVALID_REQUEST, why)));
        }
        let answers = all.iter().filter(|one| !matches!(one, Ok(told) if !is_request(told))).count();
        let peer = Arc::clone(&session.peer);
        let cancel = Cancel::new();
        let work = move |server: &Arc<Server>, outbox: &Arc<dyn Outbox>, cancel: &Cancel| {
            for message in all {
                match message {
                    Ok(message) => server.handle(&peer, message, outbox, cancel),
                    Err(error) => {
                        outbox.send(&Message::Response { id: None, outcome: Err(error) });
                    }
                }
            }
        };
        if answers == 0 {
            work(&self.door.server, &nowhere(), &cancel);
            return Ok(accepted());
        }
        let stream = session.open(Some(cancel.clone()), answers);
        let reader = self.reader(&stream)?;
        let started = self.run(&stream, move |server, outbox| work(server, outbox, &cancel));
        started.inspect_err(|_| session.forget(&stream))?;
        Ok(events(reader))
    }

    fn reader(&self, stream: &Arc<Stream>) -> Result<Reader, Refusal> {
        let reader = stream.read_from(0, self.door.limits.heartbeat);
        reader.ok_or_else(|| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "The stream is over already"))
    }

    /// Does work on a thread that may wait, if there is one left.
    fn run(
        &self,
        stream: &Arc<Stream>,
        work: impl FnOnce(&Arc<Server>, &Arc<dyn Outbox>) + Send + 'static,
    ) -> Result<(), Refusal> {
        let permit = Arc::clone(&self.door.calls).try_acquire_owned().map_err(|_| {
            Refusal::busy(format!(
                "{} requests are under way, and there may be no more at once",
                self.door.limits.calls
            ))
        })?;
        let outbox: Arc<dyn Outbox> = Arc::new(Speaker(Arc::clone(stream)));
        let server = Arc::clone(&self.door.server);
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&server, &outbox);
        });
        Ok(())
    }
}

fn is_request(message: &Message) -> bool {
    matches!(message, Message::Request { .. })
}

fn is_call(message: &Message) -> bool {
    matches!(message, Message::Request { method, .. } if method == "tools/call")
}

/// The answer to a call whose headers have not what its tool wants to see there.
fn mirrored(server: &Server, message: &Message, headers: &HeaderMap) -> Option<Message> {
    let Message::Request { id, params, .. } = message else { return None };
    let schema = server.service().schema(params.get("name")?.as_str()?)?;
    let arguments = params.get("arguments").unwrap_or(&Value::Null);
    let error = mirrored::agree(headers, &schema, arguments).err()?;
    Some(Message::response(id.clone(), Err(error)))
}

/// How an answer of the new era is marked for those who do not read it.
fn status(code: Option<i64>) -> StatusCode {
    match code {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn accepted() -> Response<Answer> {
    whole(StatusCode::ACCEPTED, None, Bytes::new())
}

/// For what has no answer.
fn nowhere() -> Arc<dyn Outbox> {
    struct Nowhere;
    impl Outbox for Nowhere {
        fn send(&self, _: &Message) -> bool {
            false
        }
    }
    Arc::new(Nowhere)
}
