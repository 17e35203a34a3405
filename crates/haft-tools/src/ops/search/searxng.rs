//! SearXNG: a search of one's own over many engines.

use haft_tool::{HttpRequest, HttpResponse, ToolError, Value};
use url::Url;

use super::{Backend, Found, Query, get, listed};
use crate::ops::api::{address, json_of};

const NAME: &str = "SearXNG";

pub(super) struct Searxng {
    url: Url,
}

impl Searxng {
    /// `url` is the instance, with or without its `/search`.
    pub(super) fn new(url: &str) -> Result<Self, ToolError> {
        let mut url = address("tools.web_search.searxng.url (SEARXNG_URL)", url)?;
        let path = url.path().trim_end_matches('/').to_owned();
        if !path.ends_with("/search") {
            url.set_path(&format!("{path}/search"));
        }
        Ok(Self { url })
    }
}

impl Backend for Searxng {
    fn name(&self) -> &'static str {
        NAME
    }

    fn url(&self) -> &Url {
        &self.url
    }

    fn request(&self, query: &Query<'_>) -> HttpRequest {
        get(&self.url, &[("q", &query.sites.in_words(query.text)), ("format", "json")])
    }

    fn read(&self, answer: &HttpResponse) -> Result<Found, ToolError> {
        let answer = json_of(NAME, answer)?;
        let mut found = listed(NAME, &answer, "/results", "url", "content")?;
        let silent: Vec<String> = answer
            .get("unresponsive_engines")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|engine| Some(format!("{} ({})", engine.get(0)?.as_str()?, engine.get(1)?.as_str()?)))
            .collect();
        if !silent.is_empty() {
            found.note = Some(format!("Engines that did not answer: {}", silent.join(", ")));
        }
        Ok(found)
    }

    fn advice(&self, status: u16) -> Option<&'static str> {
        (status == 403)
            .then_some("the instance may not serve JSON: add json to search.formats in its settings.yml")
    }
}
