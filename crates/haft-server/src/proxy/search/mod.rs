//! The proxy for a search engine, `/proxy/cse`.
//!
//! An answer is kept in the ledger for a day, so that the same search is paid for only once. Failures are never kept.

mod file;
mod key;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use haft_ledger::Ledger;
use haft_tool::{Cancel, Http, ToolError, Value, json, lock};
use haft_tools::{FoundPages, SearchHit, WebSearch};
use url::Url;

use super::failure::ProxyFailure;
use super::fields::Fields;
use key::search_key;

/// How long an answer is kept.
const MAX_AGE_MS: u64 = 24 * 60 * 60 * 1_000;
const DEFAULT_RESULTS_COUNT: usize = 5;
const MAX_RESULTS_COUNT: usize = 10;
/// The longest query. Engines accept less, and say so themselves.
const MAX_QUERY_CHARS: usize = 2_000;

/// Where searches are made.
pub enum SearchSource {
    /// A search engine, and a client that reaches its host.
    Engine {
        /// The engine.
        engine: Box<WebSearch>,
        /// The client.
        http: Arc<dyn Http>,
    },
    /// A file with pages, for use without a network: a JSON list of objects with `title`, `url` and `snippet`.
    File(PathBuf),
}

/// The search engine of a server.
pub struct SearchProxy {
    /// Where to search, or the reason why no source is set up.
    source: Result<SearchSource, String>,
    ledger: Ledger,
    /// Searches under way, by key. Further requests for the same search wait for the first.
    pending_searches: Mutex<HashMap<String, PendingSearch>>,
}

/// The outcome of a search: `results`, and `notes` if there are some.
type PendingSearch = Arc<OnceLock<Result<Value, ProxyFailure>>>;

/// What is searched for.
struct SearchRequest {
    query: String,
    count: usize,
}

impl SearchRequest {
    fn parse(body: &[u8]) -> Result<Self, ProxyFailure> {
        let mut fields = Fields::parse(body)?;
        let query = fields.required_text("query")?.trim().to_owned();
        if query.chars().nth(MAX_QUERY_CHARS).is_some() {
            let what = format!("expected at most {MAX_QUERY_CHARS} characters");
            return Err(fields.error("query", &what));
        }
        let count = fields.integer("max_results")?.map_or(DEFAULT_RESULTS_COUNT, |number| {
            usize::try_from(number.clamp(1, MAX_RESULTS_COUNT as i128)).unwrap_or(MAX_RESULTS_COUNT)
        });
        Ok(Self { query, count })
    }
}

impl SearchProxy {
    /// A proxy that searches `source`, or says why it cannot, and keeps answers in this ledger.
    pub fn new(source: Result<SearchSource, String>, ledger: Ledger) -> Self {
        Self { source, ledger, pending_searches: Mutex::default() }
    }

    pub(super) fn search(&self, body: &[u8]) -> Result<Value, ProxyFailure> {
        let source = self.source.as_ref().map_err(|why| {
            ProxyFailure::new(500, format!("No search engine is configured on this server: {why}"))
        })?;
        let request = SearchRequest::parse(body)?;
        let found = match source {
            SearchSource::File(path) => {
                let pages = file::search(path, &request.query, request.count);
                pages.map(|hits| results(&FoundPages { hits, note: None }))?
            }
            SearchSource::Engine { engine, http } => self.search_once(engine, http.as_ref(), &request)?,
        };
        let mut answer = json!({"query": request.query});
        if let (Some(answer), Value::Object(found)) = (answer.as_object_mut(), found) {
            answer.extend(found);
        }
        Ok(answer)
    }

    /// Searches once for all concurrent requests with the same key.
    fn search_once(
        &self,
        engine: &WebSearch,
        http: &dyn Http,
        request: &SearchRequest,
    ) -> Result<Value, ProxyFailure> {
        let key = search_key(engine.name(), &request.query, request.count);
        let pending = Arc::clone(lock(&self.pending_searches).entry(key.clone()).or_default());
        let outcome = pending.get_or_init(|| self.cached_or_searched(&key, engine, http, request)).clone();
        let mut pending_searches = lock(&self.pending_searches);
        if pending_searches.get(&key).is_some_and(|known| Arc::ptr_eq(known, &pending)) {
            pending_searches.remove(&key);
        }
        outcome
    }

    fn cached_or_searched(
        &self,
        key: &str,
        engine: &WebSearch,
        http: &dyn Http,
        request: &SearchRequest,
    ) -> Result<Value, ProxyFailure> {
        // A search works without its cache.
        let note = |error: ToolError| tracing::warn!("a search could not be kept: {}", error.message);
        if let Ok(Some(kept)) = self.ledger.cached_search(key, MAX_AGE_MS).map_err(note) {
            return Ok(kept);
        }
        // Not cancelled when the client disconnects: others may wait for it, and the ledger keeps it for later ones.
        let found = engine.search(&request.query, request.count, http, &Cancel::new());
        let found = found.map_err(|error| ProxyFailure::of_search(&error))?;
        let answer = results(&found);
        // A note says that part of the engine did not answer, so the answer is not worth keeping.
        if found.note.is_none() {
            let _ = self.ledger.cache_search(key, &answer, MAX_AGE_MS).map_err(note);
        }
        Ok(answer)
    }
}

fn results(found: &FoundPages) -> Value {
    let results: Vec<Value> =
        (1..).zip(&found.hits).map(|(rank, hit): (usize, &SearchHit)| result(rank, hit)).collect();
    match &found.note {
        None => json!({"results": results}),
        Some(note) => json!({"results": results, "notes": [note]}),
    }
}

fn result(rank: usize, hit: &SearchHit) -> Value {
    let SearchHit { title, url, snippet } = hit;
    let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    json!({
        "title": title,
        "url": url,
        "snippet": snippet,
        "display_link": host.unwrap_or_default(),
        "rank": rank,
    })
}
