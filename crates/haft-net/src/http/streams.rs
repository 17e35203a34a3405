//! The door for conversations: answers are read as they come, and connections are kept for the next request.
//!
//! Hosts and addresses are judged as for any other request. One thread drives all connections of one door; it starts with
//! the first request and ends with the door.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use haft_tool::{
    Cancel, ErrorKind, HttpBody, HttpStream, HttpStreams, Reach, StreamRequest, ToolError, lock,
};
use reqwest::Method;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::address::Address;
use super::exchange::{Ask, Reached, headers, pairs, reach};
use super::failure;
use super::inflow::{Head, Inflow};
use super::limits::Limits;
use super::web::Web;

/// How many idle connections are kept for the next request.
const IDLE: usize = 4;
/// After how long a name is looked up, and its addresses judged, again.
const FRESH: Duration = Duration::from_mins(5);

/// The door for conversations with the hosts of one reach.
pub(crate) struct Streams {
    shared: Arc<Shared>,
    reach: Reach,
    engine: OnceLock<Result<Engine, ToolError>>,
}

struct Shared {
    web: Arc<Web>,
    /// Clients by the origin that they were made for, and when.
    reached: Mutex<HashMap<String, (Instant, Reached)>>,
}

/// The thread that drives the connections.
struct Engine {
    handle: Handle,
    stop: Arc<Notify>,
}

impl Streams {
    pub(crate) fn new(web: Arc<Web>, reach: Reach) -> Self {
        Self { shared: Arc::new(Shared { web, reached: Mutex::default() }), reach, engine: OnceLock::new() }
    }
}

impl HttpStreams for Streams {
    fn open(
        &self,
        request: StreamRequest,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<HttpStream, ToolError> {
        let limits = Limits::of(&self.reach)?;
        let address = Address::read(&request.url)?;
        limits.judge(&address)?;
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| ToolError::invalid_arguments(format!("{:?} is no HTTP method", request.method)))?;
        let place = address.place().to_string();
        let ask = Ask { method, address, headers: headers(&request.headers)?, body: request.body };
        let engine = self.engine.get_or_init(Engine::start).as_ref().map_err(Clone::clone)?;
        let inflow = Arc::new(Inflow::default());
        let work = carry(Arc::clone(&self.shared), limits, ask, Ending(Arc::clone(&inflow)));
        let task = engine.handle.spawn(work).abort_handle();
        let body = Body { inflow, task, place };
        let Head { status, headers } = body.inflow.head(&body.place, limit, cancel)?;
        Ok(HttpStream { status, headers, body: Box::new(body) })
    }
}

impl Engine {
    fn start() -> Result<Self, ToolError> {
        let broken = |error: &std::io::Error| ToolError::io("set up a connection", error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| broken(&error))?;
        let (handle, stop) = (runtime.handle().clone(), Arc::new(Notify::new()));
        let stopped = Arc::clone(&stop);
        let drive = move || {
            runtime.block_on(stopped.notified());
            // A lookup cannot be called off, and nobody shall wait for it.
            runtime.shutdown_background();
        };
        thread::Builder::new()
            .name("haft-streams".to_owned())
            .spawn(drive)
            .map_err(|error| broken(&error))?;
        Ok(Self { handle, stop })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}

/// The reading end of an answer.
struct Body {
    inflow: Arc<Inflow>,
    task: AbortHandle,
    place: String,
}

impl HttpBody for Body {
    fn next(&mut self, limit: Duration, cancel: &Cancel) -> Result<Option<Vec<u8>>, ToolError> {
        self.inflow.next(&self.place, limit, cancel)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Tells whoever waits that nothing more will come, also when the work is dropped half done.
struct Ending(Arc<Inflow>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(Err(ToolError::new(ErrorKind::Interrupted, "the connection was closed on this side")));
    }
}

/// Sends the request and carries its answer over.
async fn carry(shared: Arc<Shared>, limits: Limits, ask: Ask, ending: Ending) {
    let carried = async {
        let reached = shared.reach(&limits, &ask.address).await?;
        let sent = ask.send(&reached).await;
        if sent.is_err() {
            shared.forget(&ask.address);
        }
        let mut response = sent?;
        let head = Head { status: response.status().as_u16(), headers: pairs(response.headers()) };
        ending.0.put_head(head);
        loop {
            ending.0.room().await;
            let broken = |error| failure::of(&error, &ask.address.place(), reached.proxy.as_deref());
            match response.chunk().await.map_err(broken)? {
                Some(chunk) => ending.0.put(chunk.to_vec()),
                None => return Ok(()),
            }
        }
    };
    let end = carried.await;
    ending.0.end(end);
}

impl Shared {
    async fn reach(&self, limits: &Limits, address: &Address) -> Result<Reached, ToolError> {
        let origin = address.url.origin().ascii_serialization();
        let known = |all: &HashMap<String, (Instant, Reached)>| {
            let (since, reached) = all.get(&origin)?;
            (since.elapsed() < FRESH).then(|| reached.clone())
        };
        if let Some(known) = known(&self.reached()) {
            return Ok(known);
        }
        let reached = reach(&self.web, limits, address, IDLE).await?;
        self.reached().insert(origin, (Instant::now(), reached.clone()));
        Ok(reached)
    }

    /// The addresses that were found may have been the trouble.
    fn forget(&self, address: &Address) {
        self.reached().remove(&address.url.origin().ascii_serialization());
    }

    fn reached(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, Reached)>> {
        lock(&self.reached)
    }
}
