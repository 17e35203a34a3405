//! Brave Search.

use std::time::Duration;

use haft_tool::{HttpRequest, HttpResponse, Secret, ToolError, retry_after, seconds};
use url::Url;

use super::{Backend, Found, Query, get, listed};
use crate::ops::api::{address, json_of};

const HOME: &str = "https://api.search.brave.com/res/v1/web/search";
const NAME: &str = "Brave Search";
const MOST_RESULTS: usize = 20;

pub(super) struct Brave {
    key: Secret,
    url: Url,
}

impl Brave {
    pub(super) fn new(key: Secret, url: Option<&str>) -> Result<Self, ToolError> {
        Ok(Self { key, url: address("tools.web_search.brave.url", url.unwrap_or(HOME))? })
    }
}

impl Backend for Brave {
    fn name(&self) -> &'static str {
        NAME
    }

    fn url(&self) -> &Url {
        &self.url
    }

    fn request(&self, query: &Query<'_>) -> HttpRequest {
        let words = query.sites.in_words(query.text);
        let count = query.count.clamp(1, MOST_RESULTS).to_string();
        let pairs = [
            ("q", words.as_str()),
            ("count", &count),
            ("text_decorations", "false"),
            ("result_filter", "web"),
        ];
        let mut request = get(&self.url, &pairs);
        request.headers.push(("X-Subscription-Token".to_owned(), self.key.expose().to_owned()));
        request
    }

    fn read(&self, answer: &HttpResponse) -> Result<Found, ToolError> {
        let answer = json_of(NAME, answer)?;
        if answer.get("web").is_none() && answer.get("type").is_some_and(|kind| kind == "search") {
            return Ok(Found::nothing());
        }
        let mut found = listed(NAME, &answer, "/web/results", "url", "description")?;
        for hit in &mut found.hits {
            hit.title = plain(&hit.title);
            hit.snippet = plain(&hit.snippet);
        }
        Ok(found)
    }

    fn secret(&self) -> Option<&Secret> {
        Some(&self.key)
    }

    /// Brave has one limit per second and one per month, and says of each what is left and when it starts anew.
    fn wait(&self, answer: &HttpResponse) -> Option<Duration> {
        let list =
            |name: &str| answer.header(name).map(|list| list.split(',').map(|one| one.trim().to_owned()));
        let spent =
            list("x-ratelimit-remaining")?.zip(list("x-ratelimit-reset")?).filter(|(left, _)| left == "0");
        spent.filter_map(|(_, reset)| seconds(&reset)).max().or_else(|| retry_after(answer))
    }

    fn advice(&self, status: u16) -> Option<&'static str> {
        matches!(status, 401 | 403 | 422).then_some("check BRAVE_API_KEY (tools.web_search.brave.api_key)")
    }
}

/// Brave's words are a little HTML: emphasis and entities.
fn plain(text: &str) -> String {
    let mut plain = text.to_owned();
    for tag in ["<strong>", "</strong>", "<b>", "</b>", "<em>", "</em>"] {
        plain = plain.replace(tag, "");
    }
    // The ampersand comes last: what it hides is text already.
    for (entity, sign) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ] {
        plain = plain.replace(entity, sign);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_made_plain_once() {
        assert_eq!(plain("<strong>Rust</strong> &amp; C&#x27;s &lt;T&gt; &amp;lt;"), "Rust & C's <T> &lt;");
    }

    #[test]
    fn the_limit_that_is_spent_says_how_long_to_wait() {
        let brave = Brave::new(Secret::new("k"), None).unwrap();
        let answer = |left: &str| HttpResponse {
            status: 429,
            status_text: String::new(),
            url: String::new(),
            headers: vec![
                ("x-ratelimit-remaining".to_owned(), left.to_owned()),
                ("x-ratelimit-reset".to_owned(), "1, 1419704".to_owned()),
            ],
            body: Vec::new(),
            total_bytes: 0,
            more: false,
            redirect: None,
        };
        assert_eq!(brave.wait(&answer("0, 1000")), Some(Duration::from_secs(1)));
        assert_eq!(brave.wait(&answer("0, 0")), Some(Duration::from_secs(1_419_704)));
        assert_eq!(brave.wait(&answer("1, 1000")), None);
    }
}
