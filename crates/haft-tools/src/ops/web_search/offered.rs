//! Searches for a program that offers them to others and makes no calls.

use haft_tool::{Cancel, Http, RetryPolicy, ToolError, Value};

use super::{SearchEngine, SearchHit, SearchQuery, SiteFilter, configured, missing_field};
use crate::ops::api::ApiClient;
use crate::settings::{LoomSettings, SearchBackend, WebSearchSettings};

/// The search backend of the settings, without the tools.
pub struct WebSearch(SearchEngine);

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPages {
    /// The pages, the best first.
    pub hits: Vec<SearchHit>,
    /// What the backend reports beside them, for example that a part of it did not answer.
    pub note: Option<String>,
}

impl WebSearch {
    /// The backend that the settings name, else the first one that is set up. Another Loom server is refused: two servers
    /// that ask each other would never end.
    ///
    /// Each search is one request: who asks this program makes further attempts.
    pub fn configured(settings: &WebSearchSettings) -> Result<Option<Self>, ToolError> {
        if settings.backend == Some(SearchBackend::Loom) {
            return Err(ToolError::failed(
                "tools.web_search.backend is loom, and a Loom server cannot search through another one; name another backend",
            ));
        }
        let engine = configured(settings, &LoomSettings::default())?;
        let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
        Ok(engine.map(|engine| Self(SearchEngine { retry, ..engine })))
    }

    /// The backend's name, for messages.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// The host that must be reachable, as `host` or `host:port`.
    pub fn host(&self) -> String {
        self.0.host()
    }

    /// Searches. An error of the backend has its HTTP status in the details, as `status`, and how long it wants to be left
    /// alone, as `retryAfterSeconds`.
    pub fn search(
        &self,
        text: &str,
        max_results: usize,
        http: &dyn Http,
        cancel: &Cancel,
    ) -> Result<FoundPages, ToolError> {
        let query = SearchQuery::new(text, max_results, SiteFilter::default())?;
        let client = ApiClient { http, cancel, on_progress: &|_| {} };
        let results = self.0.search_through(client, &query)?;
        if results.hits.is_empty() && !matches!(results.raw, Value::Array(_)) {
            return Err(missing_field(self.0.name, "list of results"));
        }
        Ok(FoundPages { hits: results.hits, note: results.note })
    }
}
