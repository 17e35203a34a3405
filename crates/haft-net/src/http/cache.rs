//! Recent responses, for requests that accept them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_tool::{HttpRequest, HttpResponse, Redirects};

use super::target::HttpTarget;

const MAX_AGE: Duration = Duration::from_mins(15);
const MAX_BODY_BYTES: usize = 32 << 20;
const MAX_RESPONSES: usize = 128;

/// What makes two requests the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CacheKey {
    url: String,
    headers: Vec<(String, String)>,
    keep_bytes: usize,
    redirects: Redirects,
}

impl CacheKey {
    /// The key of a request that may be answered from the cache.
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        let cacheable =
            request.cached && request.method.eq_ignore_ascii_case("GET") && request.body.is_none();
        cacheable.then(|| Self {
            url: request.url.clone(),
            headers: request.headers.clone(),
            keep_bytes: request.keep_bytes,
            redirects: request.redirects,
        })
    }
}

/// A response and every target that was requested on the way to it.
#[derive(Debug)]
pub(super) struct CachedResponse {
    pub(super) response: HttpResponse,
    pub(super) visited: Vec<HttpTarget>,
}

#[derive(Debug, Default)]
pub(super) struct ResponseCache {
    /// The newest last.
    responses: VecDeque<(CacheKey, Instant, Arc<CachedResponse>)>,
}

impl ResponseCache {
    pub(super) fn get(&self, key: &CacheKey, now: Instant) -> Option<Arc<CachedResponse>> {
        let matches = |(known, at, _): &&(CacheKey, Instant, _)| known == key && is_fresh(*at, now);
        self.responses.iter().find(matches).map(|(_, _, cached)| Arc::clone(cached))
    }

    pub(super) fn put(&mut self, key: CacheKey, cached: CachedResponse, now: Instant) {
        if !is_cacheable(&cached.response) {
            return;
        }
        self.responses.retain(|(known, at, _)| *known != key && is_fresh(*at, now));
        self.responses.push_back((key, now, Arc::new(cached)));
        while self.responses.len() > MAX_RESPONSES || self.body_bytes() > MAX_BODY_BYTES {
            self.responses.pop_front();
        }
    }

    fn body_bytes(&self) -> usize {
        self.responses.iter().map(|(_, _, cached)| cached.response.body.len()).sum()
    }
}

fn is_fresh(stored: Instant, now: Instant) -> bool {
    now.duration_since(stored) < MAX_AGE
}

fn is_cacheable(response: &HttpResponse) -> bool {
    let no_store =
        response.header("cache-control").is_some_and(|value| value.to_lowercase().contains("no-store"));
    (200..300).contains(&response.status) && !no_store
}
