//! Google's Custom Search.

use haft_tool::{HttpRequest, HttpResponse, Secret, ToolError};
use url::Url;

use super::{Backend, Found, Query, get, listed};
use crate::ops::api::{address, json_of};

const HOME: &str = "https://www.googleapis.com/customsearch/v1";
const NAME: &str = "Google Custom Search";
const MOST_RESULTS: usize = 10;

pub(super) struct Google {
    key: Secret,
    engine: String,
    url: Url,
}

impl Google {
    pub(super) fn new(key: Secret, engine: String, url: Option<&str>) -> Result<Self, ToolError> {
        Ok(Self { key, engine, url: address("tools.web_search.google.url", url.unwrap_or(HOME))? })
    }
}

impl Backend for Google {
    fn name(&self) -> &'static str {
        NAME
    }

    fn url(&self) -> &Url {
        &self.url
    }

    fn request(&self, query: &Query<'_>) -> HttpRequest {
        let words = query.sites.in_words(query.text);
        let count = query.count.clamp(1, MOST_RESULTS).to_string();
        let mut request = get(&self.url, &[("cx", self.engine.as_str()), ("q", &words), ("num", &count)]);
        // In a header, because addresses end up in logs.
        request.headers.push(("X-Goog-Api-Key".to_owned(), self.key.expose().to_owned()));
        request
    }

    fn read(&self, answer: &HttpResponse) -> Result<Found, ToolError> {
        let answer = json_of(NAME, answer)?;
        // Google leaves the list out when it has nothing to put in.
        if answer.get("items").is_none()
            && answer.get("kind").is_some_and(|kind| kind == "customsearch#search")
        {
            return Ok(Found::nothing());
        }
        listed(NAME, &answer, "/items", "link", "snippet")
    }

    fn secret(&self) -> Option<&Secret> {
        Some(&self.key)
    }

    fn advice(&self, status: u16) -> Option<&'static str> {
        matches!(status, 400 | 401 | 403).then_some(
            "check GOOGLE_API_KEY and GOOGLE_CSE_ID (tools.web_search.google), and whether the day's searches are used up",
        )
    }
}
