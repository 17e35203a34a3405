//! Answers of the last minutes, for requests that take them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_tool::{HttpRequest, HttpResponse, Redirects};

use super::address::Address;

/// How long an answer will do.
const FRESH: Duration = Duration::from_mins(15);
/// How much all of them may hold.
const MOST_BYTES: usize = 32 << 20;
const MOST_ANSWERS: usize = 128;

/// What makes two requests the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    url: String,
    headers: Vec<(String, String)>,
    keep_bytes: usize,
    redirects: Redirects,
}

impl Key {
    /// The key of a request that may be answered from here.
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        let plain = request.cached && request.method.eq_ignore_ascii_case("GET") && request.body.is_none();
        plain.then(|| Self {
            url: request.url.clone(),
            headers: request.headers.clone(),
            keep_bytes: request.keep_bytes,
            redirects: request.redirects,
        })
    }
}

/// An answer and every address that was asked on the way to it.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) response: HttpResponse,
    pub(super) visited: Vec<Address>,
}

#[derive(Debug, Default)]
pub(super) struct Cache {
    /// The newest last.
    kept: VecDeque<(Key, Instant, Arc<Kept>)>,
}

impl Cache {
    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<Arc<Kept>> {
        let found = self.kept.iter().find(|(known, at, _)| known == key && now.duration_since(*at) < FRESH);
        found.map(|(_, _, kept)| Arc::clone(kept))
    }

    pub(super) fn put(&mut self, key: Key, kept: Kept, now: Instant) {
        if !worth_keeping(&kept.response) {
            return;
        }
        self.kept.retain(|(known, at, _)| *known != key && now.duration_since(*at) < FRESH);
        self.kept.push_back((key, now, Arc::new(kept)));
        let bytes =
            |cache: &Self| cache.kept.iter().map(|(_, _, kept)| kept.response.body.len()).sum::<usize>();
        while self.kept.len() > MOST_ANSWERS || bytes(self) > MOST_BYTES {
            self.kept.pop_front();
        }
    }
}

fn worth_keeping(response: &HttpResponse) -> bool {
    let forbidden =
        response.header("cache-control").is_some_and(|words| words.to_lowercase().contains("no-store"));
    (200..300).contains(&response.status) && !forbidden
}
