//! The HTTP client of one call.

use std::sync::Arc;
use std::time::Instant;

use haft_tool::{Cancel, ErrorKind, Http, HttpRequest, HttpResponse, Reach, ToolError, lock};

use super::cache::CacheKey;
use super::error;
use super::reach::ReachCheck;
use super::redirects::fetch_following;
use super::runtime::{WaitError, wait_for};
use super::service::HttpService;
use super::target::HttpTarget;

/// HTTP limited to what one call may reach.
pub struct HttpClient {
    service: Arc<HttpService>,
    reach: Reach,
    cancel: Cancel,
}

impl HttpClient {
    /// A client limited to `reach`; requests end on `cancel`.
    pub fn new(service: Arc<HttpService>, reach: Reach, cancel: Cancel) -> Self {
        Self { service, reach, cancel }
    }
}

impl Http for HttpClient {
    fn fetch(&self, request: &HttpRequest) -> Result<HttpResponse, ToolError> {
        let check = ReachCheck::new(&self.reach)?;
        let target = HttpTarget::parse(&request.url)?;
        check.check(&target)?;
        let key = CacheKey::of(request);
        let cache = || lock(&self.service.cache);
        if let Some(cached) = key.as_ref().and_then(|key| cache().get(key, Instant::now()))
            && cached.visited.iter().all(|target| check.check(target).is_ok())
        {
            return Ok(cached.response.clone());
        }
        let authority = target.authority();
        let (service, sent) = (Arc::clone(&self.service), request.clone());
        let work = async move { fetch_following(&service, &check, &sent, target).await };
        let mut task = self.service.runtime()?.spawn(work);
        let fetched = match wait_for(&mut task.0, request.timeout, &self.cancel) {
            Ok(Ok(fetched)) => fetched?,
            Ok(Err(_)) => return Err(ToolError::internal(format!("the request to {authority} panicked"))),
            Err(WaitError::Timeout) => return Err(error::timeout(&authority, request.timeout)),
            Err(WaitError::Cancelled) => {
                let what = format!("the request to {authority} was cancelled");
                return Err(ToolError::new(ErrorKind::Interrupted, what));
            }
        };
        let response = fetched.response.clone();
        if let Some(key) = key {
            cache().put(key, fetched, Instant::now());
        }
        Ok(response)
    }
}
