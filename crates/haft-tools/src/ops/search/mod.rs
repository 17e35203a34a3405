//! Searching the web, by whichever backend the user has set up.

mod brave;
mod endpoint;
mod google;
mod loom;
mod searxng;
mod sites;
mod tavily;

use std::time::Duration;

use haft_tool::{
    Effect, HttpRequest, HttpResponse, JsonSchema, Redirects, Retry, Secret, ToolError, Value, World,
    retry_after,
};
use serde::Serialize;
use url::Url;

use crate::ops::api::{Api, MOST_BYTES, host_of, unexpected};
use crate::settings::{LoomServer, SearchBackend, WebSearch};

pub(crate) use sites::Sites;

/// What to look for.
pub(crate) struct Query<'a> {
    pub(crate) text: &'a str,
    /// How many results at most.
    pub(crate) count: usize,
    pub(crate) sites: Sites,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Hit {
    /// The page's title.
    pub(crate) title: String,
    /// Its address.
    pub(crate) url: String,
    /// A few of its words.
    pub(crate) snippet: String,
}

/// What a search found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) hits: Vec<Hit>,
    /// The results as the backend gave them.
    pub(crate) raw: Value,
    /// What the backend says beside its results.
    pub(crate) note: Option<String>,
}

/// A search engine with an API.
pub(crate) trait Backend: Send + Sync {
    /// What it is called.
    fn name(&self) -> &'static str;
    /// Where it is asked.
    fn url(&self) -> &Url;
    /// The request for a query.
    fn request(&self, query: &Query<'_>) -> HttpRequest;
    /// The results in a successful answer.
    fn read(&self, answer: &HttpResponse) -> Result<Found, ToolError>;
    /// The key that must not show up in messages.
    fn secret(&self) -> Option<&Secret> {
        None
    }
    /// How often it is asked again.
    fn retry(&self) -> Retry {
        Retry::default()
    }
    /// How long an answer asks to be left alone.
    fn wait(&self, answer: &HttpResponse) -> Option<Duration> {
        retry_after(answer)
    }
    /// What to do about a status.
    fn advice(&self, status: u16) -> Option<&'static str> {
        let _ = status;
        None
    }
}

/// The backend that the settings name or have a key for.
pub(crate) fn chosen(settings: &WebSearch, loom: &LoomServer) -> Result<Option<Box<dyn Backend>>, ToolError> {
    let WebSearch { backend, endpoint, searxng, brave, tavily, google } = settings;
    let chosen = backend.or(match () {
        () if endpoint.is_some() => Some(SearchBackend::Endpoint),
        () if searxng.url.is_some() => Some(SearchBackend::Searxng),
        () if brave.api_key.is_some() => Some(SearchBackend::Brave),
        () if tavily.api_key.is_some() => Some(SearchBackend::Tavily),
        () if google.api_key.is_some() && google.cse_id.is_some() => Some(SearchBackend::Google),
        () => None,
    });
    let missing = |what: &str| {
        ToolError::failed(format!("the search backend is chosen but not set up: {what} is missing"))
    };
    Ok(match chosen {
        None => None,
        Some(SearchBackend::Endpoint) => {
            let endpoint = endpoint.as_ref().ok_or_else(|| missing("tools.web_search.endpoint"))?;
            Some(Box::new(endpoint::Endpoint::new(endpoint)?))
        }
        Some(SearchBackend::Searxng) => {
            let url =
                searxng.url.as_ref().ok_or_else(|| missing("SEARXNG_URL (tools.web_search.searxng.url)"))?;
            Some(Box::new(searxng::Searxng::new(url)?))
        }
        Some(SearchBackend::Brave) => {
            let key = brave.api_key.clone();
            let key = key.ok_or_else(|| missing("BRAVE_API_KEY (tools.web_search.brave.api_key)"))?;
            Some(Box::new(brave::Brave::new(key, brave.url.as_deref())?))
        }
        Some(SearchBackend::Tavily) => {
            let key = tavily.api_key.clone();
            let key = key.ok_or_else(|| missing("TAVILY_API_KEY (tools.web_search.tavily.api_key)"))?;
            Some(Box::new(tavily::Tavily::new(key, tavily.url.as_deref())?))
        }
        Some(SearchBackend::Google) => {
            let key = google.api_key.clone();
            let key = key.ok_or_else(|| missing("GOOGLE_API_KEY (tools.web_search.google.api_key)"))?;
            let engine = google.cse_id.clone();
            let engine = engine.ok_or_else(|| missing("GOOGLE_CSE_ID (tools.web_search.google.cse_id)"))?;
            Some(Box::new(google::Google::new(key, engine, google.url.as_deref())?))
        }
        Some(SearchBackend::Loom) => Some(self::loom(loom)?),
    })
}

/// The search of a Loom server.
pub(crate) fn loom(server: &LoomServer) -> Result<Box<dyn Backend>, ToolError> {
    Ok(Box::new(loom::Loom::new(server)?))
}

/// What a search touches.
pub(crate) fn effects(backend: &dyn Backend) -> Vec<Effect> {
    vec![Effect::Reach { host: host_of(backend.url()) }]
}

/// Searches.
pub(crate) fn search(
    backend: &dyn Backend,
    query: &Query<'_>,
    world: &dyn World,
) -> Result<Found, ToolError> {
    let api = Api {
        name: backend.name(),
        retry: backend.retry(),
        secret: backend.secret(),
        wait: &|answer| backend.wait(answer),
        advice: &|status| backend.advice(status),
    };
    let answer = api.send(world, &backend.request(query))?;
    let mut found = backend.read(&answer)?;
    found.hits.retain(|hit| query.sites.admit(&hit.url));
    found.hits.truncate(query.count);
    if let Value::Array(raw) = &mut found.raw {
        raw.truncate(query.count);
    }
    Ok(found)
}

/// A search needs words.
pub(crate) fn words(query: &str) -> Result<&str, ToolError> {
    let words = query.trim();
    if words.is_empty() {
        return Err(ToolError::invalid_arguments("query: expected words to search for, got an empty text"));
    }
    Ok(words)
}

/// A `GET` with these pairs behind what the address has already.
fn get(url: &Url, pairs: &[(&str, &str)]) -> HttpRequest {
    let mut url = url.clone();
    url.query_pairs_mut().extend_pairs(pairs);
    prepared(HttpRequest::get(url))
}

/// A `POST` of JSON.
fn post(url: &Url, body: &Value) -> HttpRequest {
    let mut request = prepared(HttpRequest { method: "POST".to_owned(), ..HttpRequest::get(url.clone()) });
    request.headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    request.body = Some(body.to_string().into_bytes());
    request
}

/// Keys go only where they were meant to go, so no other host is followed.
fn prepared(request: HttpRequest) -> HttpRequest {
    HttpRequest {
        headers: vec![("Accept".to_owned(), "application/json".to_owned())],
        keep_bytes: MOST_BYTES,
        redirects: Redirects::SameHost,
        ..request
    }
}

/// The list at `place`, and its results by the names that the backend has for them.
fn listed(backend: &str, answer: &Value, place: &str, url: &str, snippet: &str) -> Result<Found, ToolError> {
    let Some(items) = answer.pointer(place).and_then(Value::as_array) else {
        return Err(unexpected(
            backend,
            &format!("list at {}", place.trim_start_matches('/').replace('/', ".")),
        ));
    };
    let hits = items.iter().filter_map(|item| Hit::of(item, url, snippet)).collect();
    Ok(Found { hits, raw: Value::Array(items.clone()), note: None })
}

impl Found {
    fn nothing() -> Self {
        Self { hits: Vec::new(), raw: Value::Array(Vec::new()), note: None }
    }
}

impl Hit {
    /// A result, if it leads to a page on the web.
    fn of(item: &Value, url: &str, snippet: &str) -> Option<Self> {
        let text = |key: &str| item.get(key).and_then(Value::as_str).map(one_line);
        let url = text(url).filter(|url| url.starts_with("http://") || url.starts_with("https://"))?;
        let title = text("title").filter(|title| !title.is_empty()).unwrap_or_else(|| url.clone());
        Some(Self { title, url, snippet: text(snippet).unwrap_or_default() })
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
