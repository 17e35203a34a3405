//! Tavily.

use haft_tool::{HttpRequest, HttpResponse, Secret, ToolError, json};
use url::Url;

use super::{Backend, Found, Query, listed, post};
use crate::ops::api::{address, json_of};

const HOME: &str = "https://api.tavily.com/search";
const NAME: &str = "Tavily";
const MOST_RESULTS: usize = 20;

pub(super) struct Tavily {
    key: Secret,
    url: Url,
}

impl Tavily {
    pub(super) fn new(key: Secret, url: Option<&str>) -> Result<Self, ToolError> {
        Ok(Self { key, url: address("tools.web_search.tavily.url", url.unwrap_or(HOME))? })
    }
}

impl Backend for Tavily {
    fn name(&self) -> &'static str {
        NAME
    }

    fn url(&self) -> &Url {
        &self.url
    }

    fn request(&self, query: &Query<'_>) -> HttpRequest {
        let mut request = post(
            &self.url,
            &json!({
                "query": query.text,
                "max_results": query.count.clamp(1, MOST_RESULTS),
                "search_depth": "basic",
                "include_domains": query.sites.only,
                "exclude_domains": query.sites.never,
            }),
        );
        request.headers.push(("Authorization".to_owned(), format!("Bearer {}", self.key.expose())));
        request
    }

    fn read(&self, answer: &HttpResponse) -> Result<Found, ToolError> {
        listed(NAME, &json_of(NAME, answer)?, "/results", "url", "content")
    }

    fn secret(&self) -> Option<&Secret> {
        Some(&self.key)
    }

    fn advice(&self, status: u16) -> Option<&'static str> {
        match status {
            401 | 403 => Some("check TAVILY_API_KEY (tools.web_search.tavily.api_key)"),
            432 | 433 => Some("the plan's searches are used up; searching again will not help"),
            _ => None,
        }
    }
}
