//! Brave Search.

use std::time::Duration;

use haft_tool::{HttpRequest, HttpResponse, Secret, ToolError, retry_after, seconds};

use super::{SearchEngine, SearchQuery, SearchResults, engine, read_list};
use crate::ops::api::{parse_json, setting_url};

const DEFAULT_URL: &str = "https://api.search.brave.com/res/v1/web/search";
const MAX_RESULTS: usize = 20;

pub(super) fn brave(key: &Secret, url: Option<&str>) -> Result<SearchEngine, ToolError> {
    let url = setting_url("tools.web_search.brave.url", url.unwrap_or(DEFAULT_URL))?;
    Ok(SearchEngine {
        retry_delay,
        advice: |status| {
            matches!(status, 401 | 403 | 422)
                .then_some("check BRAVE_API_KEY (tools.web_search.brave.api_key)")
        },
        ..engine("Brave Search", url, Some(key.clone()), request, parse)
    })
}

fn request(engine: &SearchEngine, query: &SearchQuery) -> HttpRequest {
    let text = query.sites.add_to(&query.text);
    let count = query.max_results.clamp(1, MAX_RESULTS).to_string();
    let mut request = engine.get(&[
        ("q", text.as_str()),
        ("count", &count),
        ("text_decorations", "false"),
        ("result_filter", "web"),
    ]);
    request.headers.push(("X-Subscription-Token".to_owned(), engine.key().to_owned()));
    request
}

fn parse(name: &str, response: &HttpResponse) -> Result<SearchResults, ToolError> {
    let response = parse_json(name, response)?;
    if response.get("web").is_none() && response["type"] == "search" {
        return Ok(SearchResults::empty());
    }
    let mut results = read_list(name, &response, "/web/results", "url", "description")?;
    for hit in &mut results.hits {
        hit.title = plain_text(&hit.title);
        hit.snippet = plain_text(&hit.snippet);
    }
    Ok(results)
}

/// Brave has one limit per second and one per month, and reports for each what is left and when it resets.
fn retry_delay(response: &HttpResponse) -> Option<Duration> {
    let list = |name: &str| response.header(name).map(|list| list.split(',').map(str::trim));
    let limits = list("x-ratelimit-remaining")?.zip(list("x-ratelimit-reset")?);
    let used_up = limits.filter(|(left, _)| *left == "0");
    used_up.filter_map(|(_, reset)| seconds(reset)).max().or_else(|| retry_after(response))
}

/// Removes the HTML emphasis and entities in Brave's texts.
fn plain_text(text: &str) -> String {
    let mut plain = text.to_owned();
    for tag in ["<strong>", "</strong>", "<b>", "</b>", "<em>", "</em>"] {
        plain = plain.replace(tag, "");
    }
    // The ampersand comes last, so that nothing is decoded twice.
    for (entity, character) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ] {
        plain = plain.replace(entity, character);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_decoded_once() {
        assert_eq!(
            plain_text("<strong>Rust</strong> &amp; C&#x27;s &lt;T&gt; &amp;lt;"),
            "Rust & C's <T> &lt;"
        );
    }

    #[test]
    fn retry_delay_is_that_of_the_limit_that_is_used_up() {
        let response = |left: &str| HttpResponse {
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
        assert_eq!(retry_delay(&response("0, 1000")), Some(Duration::from_secs(1)));
        assert_eq!(retry_delay(&response("0, 0")), Some(Duration::from_secs(1_419_704)));
        assert_eq!(retry_delay(&response("1, 1000")), None);
    }
}
