//! Web search through the backend that the user has set up.

mod brave;
mod engines;
mod offered;
mod sites;

use std::time::Duration;

use haft_tool::{
    Effect, HttpRequest, HttpResponse, JsonSchema, Redirects, RetryPolicy, Secret, ToolError, Value, World,
    clip_chars, retry_after,
};
use serde::Serialize;
use url::Url;

use crate::ops::api::{ApiClient, JsonApi, MAX_RESPONSE_BYTES, host_of, missing_field, with_client};

pub(crate) use engines::{configured, loom};
pub use offered::{FoundPages, WebSearch};
pub(crate) use sites::SiteFilter;

/// How much of an excerpt is shown.
const MAX_SNIPPET_CHARS: usize = 600;

/// One search.
pub(crate) struct SearchQuery {
    pub(crate) text: String,
    pub(crate) max_results: usize,
    pub(crate) sites: SiteFilter,
}

impl SearchQuery {
    pub(crate) fn new(text: &str, max_results: usize, sites: SiteFilter) -> Result<Self, ToolError> {
        let text = text.trim().to_owned();
        if text.is_empty() {
            return Err(ToolError::invalid_arguments(
                "query: expected words to search for, got an empty text",
            ));
        }
        Ok(Self { text, max_results, sites })
    }
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SearchHit {
    /// The page's title.
    pub title: String,
    /// Its address.
    pub url: String,
    /// A few of its words.
    pub snippet: String,
}

/// The results of a search.
#[derive(Debug, Default)]
pub(crate) struct SearchResults {
    pub(crate) hits: Vec<SearchHit>,
    /// The results as the backend returned them.
    pub(crate) raw: Value,
    /// What the backend reports beside its results.
    pub(crate) note: Option<String>,
}

/// A search backend: where it is, how it is called and how its response is read.
pub(crate) struct SearchEngine {
    name: &'static str,
    url: Url,
    /// The API key, which must not appear in messages.
    key: Option<Secret>,
    retry: RetryPolicy,
    retry_delay: fn(&HttpResponse) -> Option<Duration>,
    /// What the user can do about a status.
    advice: fn(u16) -> Option<&'static str>,
    request: BuildRequest,
    parse: ParseResponse,
}

type BuildRequest = fn(&SearchEngine, &SearchQuery) -> HttpRequest;
/// Takes the name of the engine for messages, and a successful response.
type ParseResponse = fn(&str, &HttpResponse) -> Result<SearchResults, ToolError>;

impl SearchEngine {
    /// The effect of a search.
    pub(crate) fn effect(&self) -> Effect {
        Effect::Reach { host: self.host() }
    }

    /// The host that is called, as effects name it.
    pub(crate) fn host(&self) -> String {
        host_of(&self.url)
    }

    pub(crate) fn search(&self, query: &SearchQuery, world: &dyn World) -> Result<SearchResults, ToolError> {
        with_client(world, |client| self.search_through(client, query))
    }

    /// [`SearchEngine::search`] through any client.
    fn search_through(&self, client: ApiClient<'_>, query: &SearchQuery) -> Result<SearchResults, ToolError> {
        let api = JsonApi {
            name: self.name,
            retry: self.retry,
            secret: self.key.as_ref(),
            retry_delay: &self.retry_delay,
            advice: &self.advice,
        };
        let response = api.send(client, &(self.request)(self, query))?;
        let mut results = (self.parse)(self.name, &response)?;
        results.hits.retain(|hit| query.sites.allows(&hit.url));
        results.hits.truncate(query.max_results);
        if let Value::Array(raw) = &mut results.raw {
            raw.truncate(query.max_results);
        }
        Ok(results)
    }

    fn key(&self) -> &str {
        self.key.as_ref().map_or("", Secret::expose)
    }

    /// A `GET` with these pairs added to the query of the URL.
    fn get(&self, pairs: &[(&str, &str)]) -> HttpRequest {
        let mut url = self.url.clone();
        url.query_pairs_mut().extend_pairs(pairs);
        json_request(HttpRequest::get(url))
    }

    /// A `POST` of JSON.
    fn post(&self, body: &Value) -> HttpRequest {
        let get = HttpRequest::get(self.url.clone());
        let mut request = json_request(HttpRequest { method: "POST".to_owned(), ..get });
        request.headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        request.body = Some(body.to_string().into_bytes());
        request
    }
}

/// Redirects to other hosts are not followed, so that the key reaches no other host.
fn json_request(request: HttpRequest) -> HttpRequest {
    HttpRequest {
        headers: vec![("Accept".to_owned(), "application/json".to_owned())],
        keep_bytes: MAX_RESPONSE_BYTES,
        redirects: Redirects::SameHost,
        ..request
    }
}

/// The results as numbered entries.
pub(crate) fn results_text(query: &str, results: &SearchResults) -> String {
    let mut text = String::new();
    for (number, hit) in (1..).zip(&results.hits) {
        text.push_str(&format!("{number}. {}\n   {}\n", hit.title, hit.url));
        if !hit.snippet.is_empty() {
            text.push_str(&format!("   {}\n", clip_chars(&hit.snippet, MAX_SNIPPET_CHARS, 0)));
        }
    }
    match &results.raw {
        _ if !results.hits.is_empty() => {}
        Value::Array(_) => text.push_str(&format!("Nothing found for {query:?}.\n")),
        // The model may be able to read a response in an unknown form.
        Value::String(raw) => text.push_str(raw),
        raw => text.push_str(&raw.to_string()),
    }
    text.extend(results.note.iter().map(|note| format!("({note})\n")));
    text
}

/// An engine with default retries and without advice.
fn engine(
    name: &'static str,
    url: Url,
    key: Option<Secret>,
    request: BuildRequest,
    parse: ParseResponse,
) -> SearchEngine {
    let retry = RetryPolicy::default();
    SearchEngine { name, url, key, retry, retry_delay: retry_after, advice: |_| None, request, parse }
}

/// The results in the array at `pointer`, by the names of the backend's fields.
fn read_list(
    engine: &str,
    response: &Value,
    pointer: &str,
    url_field: &str,
    snippet_field: &str,
) -> Result<SearchResults, ToolError> {
    let Some(items) = response.pointer(pointer).and_then(Value::as_array) else {
        let field = pointer.trim_start_matches('/').replace('/', ".");
        return Err(missing_field(engine, &format!("list at {field}")));
    };
    let hits = items.iter().filter_map(|item| SearchHit::parse(item, url_field, snippet_field)).collect();
    Ok(SearchResults { hits, raw: Value::Array(items.clone()), note: None })
}

impl SearchHit {
    /// A result, if its URL is one of the web.
    fn parse(item: &Value, url_field: &str, snippet_field: &str) -> Option<Self> {
        let text = |field: &str| {
            let text = item.get(field).and_then(Value::as_str)?;
            Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        let url = text(url_field).filter(|url| url.starts_with("http://") || url.starts_with("https://"))?;
        let title = text("title").filter(|title| !title.is_empty()).unwrap_or_else(|| url.clone());
        Some(Self { title, url, snippet: text(snippet_field).unwrap_or_default() })
    }
}

impl SearchResults {
    fn empty() -> Self {
        Self { raw: Value::Array(Vec::new()), ..Self::default() }
    }
}
