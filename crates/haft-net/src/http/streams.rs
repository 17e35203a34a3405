//! Streaming requests: responses are read as they arrive, and connections are reused.
//!
//! Hosts and addresses are checked as for any other request. One thread drives all connections of a client; it starts with
//! the first request and ends with the client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use haft_tool::{
    Cancel, ErrorKind, HttpBody, HttpStream, HttpStreams, Reach, StreamRequest, ToolError, lock,
};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::error;
use super::exchange::{CheckedRequest, PinnedClient, method, request_headers, response_headers};
use super::reach::ReachCheck;
use super::runtime::{HttpTask, RuntimeThread, WaitError, wait_for};
use super::service::HttpService;
use super::target::HttpTarget;

const IDLE_CONNECTIONS: usize = 4;
/// After this time a name is resolved and its addresses are checked again.
const MAX_CLIENT_AGE: Duration = Duration::from_mins(5);
/// How many chunks of a body may wait before no more are read.
const MAX_QUEUED_CHUNKS: usize = 8;

/// Streaming requests to the hosts of one reach.
pub(super) struct StreamClient {
    clients: Arc<ClientPool>,
    reach: Reach,
    runtime: OnceLock<Result<RuntimeThread, ToolError>>,
}

impl StreamClient {
    pub(super) fn new(service: Arc<HttpService>, reach: Reach) -> Self {
        let clients = Arc::new(ClientPool { service, by_origin: Mutex::default() });
        Self { clients, reach, runtime: OnceLock::new() }
    }
}

impl HttpStreams for StreamClient {
    fn open(
        &self,
        request: StreamRequest,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<HttpStream, ToolError> {
        let check = ReachCheck::new(&self.reach)?;
        let target = HttpTarget::parse(&request.url)?;
        check.check(&target)?;
        let authority = target.authority().to_string();
        let headers = request_headers(&request.headers)?;
        let outgoing =
            CheckedRequest { method: method(request.method)?, target, headers, body: request.body };
        let runtime = self.runtime.get_or_init(RuntimeThread::start).as_ref().map_err(Clone::clone)?;
        let (sender, events) = channel(MAX_QUEUED_CHUNKS);
        let task = runtime.spawn(run_request(Arc::clone(&self.clients), check, outgoing, sender));
        let mut body = StreamBody { events, authority, ended: false, _task: task };
        match body.next_event(limit, cancel)? {
            BodyEvent::Head { status, headers } => Ok(HttpStream { status, headers, body: Box::new(body) }),
            BodyEvent::Chunk(_) | BodyEvent::End => Err(ToolError::internal("a response without a head")),
        }
    }
}

/// A part of a response, on its way from the runtime thread.
enum BodyEvent {
    Head { status: u16, headers: Vec<(String, String)> },
    Chunk(Vec<u8>),
    End,
}

/// The body of a response.
struct StreamBody {
    events: Receiver<Result<BodyEvent, ToolError>>,
    authority: String,
    ended: bool,
    _task: HttpTask<()>,
}

impl StreamBody {
    fn next_event(&mut self, limit: Duration, cancel: &Cancel) -> Result<BodyEvent, ToolError> {
        let authority = &self.authority;
        match wait_for(self.events.recv(), limit, cancel) {
            Ok(Some(event)) => event,
            Ok(None) => Err(ToolError::new(ErrorKind::Interrupted, "the connection was closed on this side")),
            Err(WaitError::Cancelled) => Err(ToolError::new(
                ErrorKind::Interrupted,
                format!("the request to {authority} was cancelled"),
            )),
            Err(WaitError::Timeout) => Err(ToolError::new(
                ErrorKind::Timeout,
                format!("{authority} sent nothing for {} s", limit.as_secs_f64()),
            )),
        }
    }
}

impl HttpBody for StreamBody {
    fn next(&mut self, limit: Duration, cancel: &Cancel) -> Result<Option<Vec<u8>>, ToolError> {
        if self.ended {
            return Ok(None);
        }
        match self.next_event(limit, cancel)? {
            BodyEvent::Chunk(chunk) => Ok(Some(chunk)),
            BodyEvent::Head { .. } | BodyEvent::End => {
                self.ended = true;
                Ok(None)
            }
        }
    }
}

/// Sends the request, and its response to `events`.
async fn run_request(
    clients: Arc<ClientPool>,
    check: ReachCheck,
    request: CheckedRequest,
    events: Sender<Result<BodyEvent, ToolError>>,
) {
    let result = async {
        let client = clients.get(&check, &request.target).await?;
        let sent = client.send(&request).await;
        if sent.is_err() {
            // Its addresses may be outdated.
            clients.remove(&request.target);
        }
        let mut response = sent?;
        let (status, headers) = (response.status().as_u16(), response_headers(response.headers()));
        let mut event = BodyEvent::Head { status, headers };
        // An error means that the receiver was dropped.
        while events.send(Ok(event)).await.is_ok() {
            let failed =
                |error| error::request_failed(&error, &request.target.authority(), client.proxy.as_deref());
            match response.chunk().await.map_err(failed)? {
                Some(chunk) => event = BodyEvent::Chunk(chunk.to_vec()),
                None => break,
            }
        }
        Ok(BodyEvent::End)
    };
    let last = result.await;
    let _ = events.send(last).await;
}

/// Clients by the origin that they were made for.
struct ClientPool {
    service: Arc<HttpService>,
    by_origin: Mutex<HashMap<String, (Instant, PinnedClient)>>,
}

impl ClientPool {
    async fn get(&self, check: &ReachCheck, target: &HttpTarget) -> Result<PinnedClient, ToolError> {
        let origin = target.url.origin().ascii_serialization();
        let known = lock(&self.by_origin).get(&origin).cloned();
        if let Some((_, client)) = known.filter(|(created, _)| created.elapsed() < MAX_CLIENT_AGE) {
            return Ok(client);
        }
        let client = PinnedClient::connect(&self.service, check, target, IDLE_CONNECTIONS).await?;
        lock(&self.by_origin).insert(origin, (Instant::now(), client.clone()));
        Ok(client)
    }

    fn remove(&self, target: &HttpTarget) {
        lock(&self.by_origin).remove(&target.url.origin().ascii_serialization());
    }
}
