//! Answers HTTP requests: checks access, then returns a file of the page, an API response or an event stream.

use std::net::SocketAddr;
use std::sync::Arc;

use haft_ledger::Ledger;
use haft_net::server::{ActiveRequest, BodyReader, ConnectionLimits, ConnectionSlot, RequestHandler};
use haft_telemetry::LedgerMetrics;
use haft_tool::Cancel;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::Semaphore;

use crate::access::{Access, Role, check_fetch_site, forbidden};
use crate::access_log::{AccessLog, LoggedRequest};
use crate::api::error::ApiError;
use crate::api::{self, AnswerCost, Api, ApiRequest, Route, RouteMatch, query::Query};
use crate::assets;
use crate::events::{self, Hub};
use crate::proxy::Proxies;
use crate::proxy_requests::{self, CancelIfAbandoned};
use crate::reply::{HttpReply, ReplyBody};

/// Where the paths of Loom's proxies begin.
const PROXY_BASE: &str = "/proxy/";

/// The state that all requests share.
pub(crate) struct WebServer {
    pub(crate) api: Arc<Api>,
    /// A separate database connection for slow requests, so that all others do not wait for them.
    pub(crate) long_reads: Ledger,
    pub(crate) hub: Arc<Hub>,
    pub(crate) access: Access,
    pub(crate) log: AccessLog,
    pub(crate) limits: ConnectionLimits,
    pub(crate) bodies: BodyReader,
    /// One permit per event stream.
    pub(crate) streams: Arc<Semaphore>,
    /// An additional permit per stream whose token may not answer questions.
    pub(crate) view_streams: Arc<Semaphore>,
    /// One permit per slow request.
    pub(crate) large_answers: Arc<Semaphore>,
    pub(crate) exports: Arc<Semaphore>,
    pub(crate) metrics: Arc<LedgerMetrics>,
    pub(crate) proxies: Arc<Proxies>,
    /// One permit per request to the proxies.
    pub(crate) proxy_requests: Arc<Semaphore>,
}

/// The connection of a request, and what its token allows.
struct RequestAccess<'a> {
    slot: &'a Arc<ConnectionSlot>,
    role: Option<Role>,
    /// Keeps the connection from being evicted while its request is answered.
    active: Option<ActiveRequest>,
}

impl RequestAccess<'_> {
    /// Protects the connection from eviction. Called only once the request has arrived, so that slow clients do not keep others out.
    fn activate(&mut self) -> Result<(), ApiError> {
        if self.active.is_none() {
            self.active = Some(self.slot.activate().ok_or_else(too_many_connections)?);
        }
        Ok(())
    }
}

impl RequestHandler for WebServer {
    type Body = ReplyBody;

    async fn respond(
        self: Arc<Self>,
        slot: Arc<ConnectionSlot>,
        request: Request<Incoming>,
    ) -> Response<ReplyBody> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let mut access = RequestAccess { slot: &slot, role: None, active: None };
        let answered = self.answer(request, &mut access).await;
        let into_reply =
            if path.starts_with(PROXY_BASE) { ApiError::into_proxy_reply } else { ApiError::into_reply };
        let mut reply = answered.unwrap_or_else(into_reply);
        if access.activate().is_err() {
            // A newer connection got the slot while this one was idle.
            reply = too_many_connections().into_reply().and_close();
        }
        let RequestAccess { role, active, .. } = access;
        self.log.write(&LoggedRequest {
            peer: slot.peer(),
            method: method.as_str(),
            path: &path,
            role: role.map(Role::name),
            status: reply.status.as_u16(),
        });
        reply.into_response(active)
    }

    fn close(&self) {
        self.hub.stop();
    }
}

fn overloaded(message: &str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
}

fn stopping() -> ApiError {
    overloaded("The server is stopping.")
}

fn too_many_connections() -> ApiError {
    overloaded("There are too many connections.")
}

fn not_allowed(methods: &str) -> HttpReply {
    let why = format!("Allowed here: {methods}.");
    let error = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", why);
    error.into_reply().with(ALLOW, methods)
}

impl WebServer {
    async fn answer(
        &self,
        request: Request<Incoming>,
        access: &mut RequestAccess<'_>,
    ) -> Result<HttpReply, ApiError> {
        self.access.check_source(&request)?;
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        if let Some(asset) = assets::at(path) {
            return Ok(match head.method {
                Method::GET => HttpReply::page(asset.content_type, asset.bytes),
                _ => not_allowed("GET"),
            });
        }
        // Other sites may link to the page, but not request data.
        check_fetch_site(&head.headers)?;
        if path == "/healthz" {
            return Ok(HttpReply::bytes(StatusCode::OK, "text/plain; charset=utf-8", "ok\n"));
        }
        let given = self.access.role(&head.headers)?;
        access.role = Some(given);
        if let Some(target) = path.strip_prefix(PROXY_BASE) {
            return self.proxy(target.to_owned(), &head, body, given, access).await;
        }
        if given < Role::View {
            return Err(forbidden(Role::View, given).into());
        }
        if path == "/metrics" {
            return match head.method {
                Method::GET => self.metrics().await,
                _ => Ok(not_allowed("GET")),
            };
        }
        let Some(path) = path.strip_prefix(api::BASE) else {
            return Err(ApiError::not_found(format!("There is nothing at {:?}.", head.uri.path())));
        };
        match path {
            "/openapi.json" if head.method == Method::GET => {
                Ok(HttpReply::json(StatusCode::OK, &api::document()))
            }
            "/events" if head.method == Method::GET => self.stream(&head, given).await,
            "/openapi.json" | "/events" => Ok(not_allowed("GET")),
            _ => match api::find(&head.method, path) {
                RouteMatch::Route(route, parameters) => {
                    self.answer_route(route, parameters, &head, body, given, access).await
                }
                RouteMatch::OtherMethods(methods) => Ok(not_allowed(&methods)),
                RouteMatch::Nothing => {
                    Err(ApiError::not_found(format!("The API has nothing at {path:?}; see openapi.json.")))
                }
            },
        }
    }

    /// Streams events.
    async fn stream(&self, head: &Parts, role: Role) -> Result<HttpReply, ApiError> {
        let query = Query::parse(head.uri.query().unwrap_or_default());
        let after = query.number("after")?;
        let full = |_| overloaded("Too many pages are open. Close some.");
        let mut permits = vec![Arc::clone(&self.streams).try_acquire_owned().map_err(full)?];
        if role < Role::Approve {
            permits.push(Arc::clone(&self.view_streams).try_acquire_owned().map_err(full)?);
        }
        let stream = events::connect(&self.hub, after, role, permits).await?;
        Ok(HttpReply::events(stream))
    }

    /// Metrics for Prometheus.
    async fn metrics(&self) -> Result<HttpReply, ApiError> {
        let (metrics, ledger) = (Arc::clone(&self.metrics), self.api.ledger.clone());
        let text = tokio::task::spawn_blocking(move || metrics.text(&ledger)).await.map_err(failed)??;
        Ok(HttpReply::bytes(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
    }

    /// Answers an agent's request to one of the proxies.
    async fn proxy(
        &self,
        target: String,
        head: &Parts,
        body: Incoming,
        role: Role,
        access: &mut RequestAccess<'_>,
    ) -> Result<HttpReply, ApiError> {
        if !role.may_use_proxies() {
            return Err(forbidden(Role::Proxy, role).into());
        }
        let body = match self.bodies.read(body, &self.limits).await {
            Ok(body) => body.bytes,
            Err(error) => return Ok(ApiError::from(error).into_proxy_reply().and_close()),
        };
        // Acquired only now, so that slow bodies occupy no permits.
        let Ok(permit) = Arc::clone(&self.proxy_requests).try_acquire_owned() else {
            return Err(overloaded("There are too many requests to the proxies."));
        };
        access.activate()?;
        let method = head.method.as_str().to_owned();
        proxy_requests::answer(Arc::clone(&self.proxies), method, target, body, permit).await
    }

    /// Answers an API request on a blocking thread.
    async fn answer_route(
        &self,
        route: &'static Route,
        parameters: Vec<String>,
        head: &Parts,
        body: Incoming,
        role: Role,
        access: &mut RequestAccess<'_>,
    ) -> Result<HttpReply, ApiError> {
        if role < route.role {
            return Err(forbidden(route.role, role).into());
        }
        let body = if head.method == Method::POST {
            if route.takes.is_some() {
                check_content_type(&head.headers)?;
            }
            match self.bodies.read(body, &self.limits).await {
                Ok(body) => body.bytes,
                // The rest of the body stays unread, so the connection cannot be reused.
                Err(error) => return Ok(ApiError::from(error).into_reply().and_close()),
            }
        } else {
            Vec::new()
        };
        access.activate()?;
        let peer = access.slot.peer();
        let parameters = api::decoded(parameters)?;
        let query = Query::parse(head.uri.query().unwrap_or_default());
        let permits = match route.cost_of(&query) {
            AnswerCost::Small => None,
            AnswerCost::Large => Some(&self.large_answers),
            AnswerCost::Export => Some(&self.exports),
        };
        // A client that disconnects while it waits leaves the queue.
        let permit = match permits {
            Some(permits) => Some(Arc::clone(permits).acquire_owned().await.map_err(|_| stopping())?),
            None => None,
        };
        let cancel = Cancel::new();
        let _cancel_guard = CancelIfAbandoned(cancel.clone());
        let api = match permit {
            Some(_) => {
                let ledger = self.long_reads.clone().with_cancel(cancel);
                Arc::new(Api::new(ledger, Arc::clone(&self.api.backend), self.api.workspace.clone()))
            }
            None => Arc::clone(&self.api),
        };
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let person = person(peer);
            let request = ApiRequest { parameters, query, body: &body, role, person: &person };
            (route.answer)(&api, &request)
        });
        done.await.map_err(failed)?
    }
}

/// The error for a request whose thread panicked.
fn failed(_: tokio::task::JoinError) -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "The request failed.")
}

/// How receipts name the person who answers a question.
fn person(peer: SocketAddr) -> String {
    if peer.ip().is_loopback() {
        return "a person on Haft's page".to_owned();
    }
    format!("a person on Haft's page at {}", peer.ip())
}

/// Requires JSON, a content type that forms on other sites cannot send.
fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if given.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    let why = "Content-Type must be application/json.";
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_arguments", why))
}
