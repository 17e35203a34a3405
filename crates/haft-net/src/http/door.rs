//! The door of one call.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Instant;

use haft_tool::{Cancel, ErrorKind, Http, HttpRequest, HttpResponse, Reach, ToolError, lock};

use super::address::Address;
use super::cache::Key;
use super::failure;
use super::limits::Limits;
use super::travel::travel;
use super::web::Web;

/// The network, as one call may reach it.
pub struct Door {
    web: Arc<Web>,
    reach: Reach,
    cancel: Cancel,
}

impl Door {
    /// HTTP through `web`, limited to `reach`; requests end on `cancel`.
    pub fn new(web: Arc<Web>, reach: Reach, cancel: Cancel) -> Self {
        Self { web, reach, cancel }
    }
}

impl Http for Door {
    fn fetch(&self, request: &HttpRequest) -> Result<HttpResponse, ToolError> {
        let limits = Limits::of(&self.reach)?;
        let first = Address::read(&request.url)?;
        limits.judge(&first)?;
        let key = Key::of(request);
        let cache = || lock(&self.web.cache);
        if let Some(kept) = key.as_ref().and_then(|key| cache().get(key, Instant::now()))
            && kept.visited.iter().all(|address| limits.judge(address).is_ok())
        {
            return Ok(kept.response.clone());
        }
        let place = first.place();
        let work = async {
            let travelling =
                tokio::time::timeout(request.timeout, travel(&self.web, &limits, request, first));
            unless_cancelled(travelling, &self.cancel).await
        };
        let kept = match on_a_thread(work)? {
            None => {
                return Err(ToolError::new(
                    ErrorKind::Interrupted,
                    format!("the request to {place} was cancelled"),
                ));
            }
            Some(Err(_)) => return Err(failure::late(&place, request.timeout)),
            Some(Ok(kept)) => kept?,
        };
        let response = kept.response.clone();
        if let Some(key) = key {
            cache().put(key, kept, Instant::now());
        }
        Ok(response)
    }
}

/// Runs `work` on a thread of its own: the caller's may be driving a Tokio runtime, and cannot start another.
fn on_a_thread<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, ToolError> {
    let broken = |error: &std::io::Error| ToolError::io("set up a request", error);
    thread::scope(|scope| {
        let running = thread::Builder::new().name("haft-http".to_owned()).spawn_scoped(scope, || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| broken(&error))?;
            let done = runtime.block_on(work);
            // A lookup cannot be called off, and nobody shall wait for it.
            runtime.shutdown_background();
            Ok(done)
        });
        let running = running.map_err(|error| broken(&error))?;
        running.join().unwrap_or_else(|_| Err(ToolError::internal("the request broke down")))
    })
}

/// What `work` gives, unless nobody wants it any more.
async fn unless_cancelled<T>(work: impl Future<Output = T>, cancel: &Cancel) -> Option<T> {
    let (mut work, mut stop) = (pin!(work), pin!(cancel.cancelled()));
    poll_fn(|cx| match stop.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => work.as_mut().poll(cx).map(Some),
    })
    .await
}
