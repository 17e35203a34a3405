//! Any address that takes `q` and `count` and answers with results in some JSON.

use haft_tool::{HttpRequest, HttpResponse, ToolError, Value};
use url::Url;

use super::{Backend, Found, Hit, Query, get};
use crate::ops::api::address;

const NAME: &str = "The search endpoint";

/// Where services put their results.
const PLACES: &[&str] =
    &["/results", "/web/results", "/items", "/organic", "/organic_results", "/hits", "/data"];

pub(super) struct Endpoint {
    url: Url,
}

impl Endpoint {
    pub(super) fn new(url: &str) -> Result<Self, ToolError> {
        Ok(Self { url: address("tools.web_search.endpoint", url)? })
    }
}

impl Backend for Endpoint {
    fn name(&self) -> &'static str {
        NAME
    }

    fn url(&self) -> &Url {
        &self.url
    }

    fn request(&self, query: &Query<'_>) -> HttpRequest {
        get(&self.url, &[("q", query.text), ("count", &query.count.to_string())])
    }

    /// What is not understood is kept as it came: the reader may understand it.
    fn read(&self, answer: &HttpResponse) -> Result<Found, ToolError> {
        let Ok(value) = serde_json::from_slice::<Value>(&answer.body) else {
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            return Ok(Found { hits: Vec::new(), raw: Value::String(text), note: None });
        };
        let list = match &value {
            Value::Array(_) => Some(&value),
            _ => PLACES.iter().find_map(|place| value.pointer(place).filter(|list| list.is_array())),
        };
        let Some(list) = list else { return Ok(Found { hits: Vec::new(), raw: value, note: None }) };
        let hits = list.as_array().into_iter().flatten().filter_map(understood).collect();
        Ok(Found { hits, raw: list.clone(), note: None })
    }
}

fn understood(item: &Value) -> Option<Hit> {
    let first = |keys: &[&'static str]| {
        keys.iter().find(|key| item.get(**key).is_some_and(Value::is_string)).copied()
    };
    let url = first(&["url", "link", "href"])?;
    let snippet = first(&["snippet", "description", "content", "text", "body"]).unwrap_or_default();
    Hit::of(item, url, snippet)
}
