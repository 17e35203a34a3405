//! `[tools.web_search]`: the web search backends.

use haft_tool::Secret;
use serde::{Deserialize, Serialize};

/// The web search backends. Without `backend`, the first one that is set up is used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSearchSettings {
    /// The backend to use, in all dialects.
    pub backend: Option<SearchBackend>,
    /// A URL that takes `q` and `count` and answers with JSON.
    pub endpoint: Option<String>,
    /// A SearXNG instance.
    pub searxng: SearxngSettings,
    /// Brave Search.
    pub brave: KeyedSearchSettings,
    /// Tavily.
    pub tavily: KeyedSearchSettings,
    /// Google's Custom Search.
    pub google: GoogleSearchSettings,
}

/// A web search backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchBackend {
    /// Any URL that takes `q` and `count`.
    Endpoint,
    /// A SearXNG instance.
    Searxng,
    /// Brave Search.
    Brave,
    /// Tavily.
    Tavily,
    /// Google's Custom Search.
    Google,
    /// Google's Custom Search through a Loom server.
    Loom,
}

/// A SearXNG instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearxngSettings {
    /// Its URL.
    pub url: Option<String>,
}

/// A search engine that needs an API key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyedSearchSettings {
    /// The API key.
    pub api_key: Option<Secret>,
    /// Its URL, if not the public one.
    pub url: Option<String>,
}

/// Google's Custom Search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GoogleSearchSettings {
    /// The API key.
    pub api_key: Option<Secret>,
    /// The search engine's id, `cx`.
    pub cse_id: Option<String>,
    /// Its URL, if not the public one.
    pub url: Option<String>,
}

impl WebSearchSettings {
    /// Environment variables override the file.
    pub(super) fn apply_env(&mut self, var: &dyn Fn(&str) -> Option<String>) {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        let secret = |name: &str| var(name).map(Secret::new);
        let Self { searxng, brave, tavily, google, .. } = self;
        searxng.url = var("SEARXNG_URL").or(searxng.url.take());
        brave.api_key = secret("BRAVE_API_KEY").or(brave.api_key.take());
        tavily.api_key = secret("TAVILY_API_KEY").or(tavily.api_key.take());
        google.api_key = secret("GOOGLE_API_KEY").or(google.api_key.take());
        google.cse_id = var("GOOGLE_CSE_ID").or(google.cse_id.take());
    }
}
