//! `[tools.web_search]`: who searches the web.

use haft_tool::Secret;
use serde::{Deserialize, Serialize};

/// Who searches the web. With no `backend` named, the first one that is set up does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSearch {
    /// The one to use, for all dialects.
    pub backend: Option<SearchBackend>,
    /// An address that takes `q` and `count` and answers with JSON.
    pub endpoint: Option<String>,
    /// A SearXNG instance.
    pub searxng: Searxng,
    /// Brave Search.
    pub brave: KeyedSearch,
    /// Tavily.
    pub tavily: KeyedSearch,
    /// Google's Custom Search.
    pub google: GoogleSearch,
}

/// The search engines that Haft can ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchBackend {
    /// Any address that takes `q` and `count`.
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
pub struct Searxng {
    /// Its address.
    pub url: Option<String>,
}

/// A search engine that wants a key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyedSearch {
    /// The key.
    pub api_key: Option<Secret>,
    /// Its address, if it is not the public one.
    pub url: Option<String>,
}

/// Google's Custom Search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GoogleSearch {
    /// The key.
    pub api_key: Option<Secret>,
    /// The search engine's id, `cx`.
    pub cse_id: Option<String>,
    /// Its address, if it is not the public one.
    pub url: Option<String>,
}

impl WebSearch {
    /// What the environment says, which counts more than a file.
    pub(super) fn take_env(&mut self, var: &dyn Fn(&str) -> Option<String>) {
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
