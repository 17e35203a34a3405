//! Google's Custom Search through a Loom server, which holds the key.

use haft_tool::{HttpRequest, HttpResponse, Retry, ToolError, json};
use url::Url;

use super::{Backend, Found, Query, listed, post};
use crate::ops::api::json_of;
use crate::settings::LoomServer;

const NAME: &str = "The Loom server's search";
const MOST_RESULTS: usize = 10;

pub(super) struct Loom {
    url: Url,
}

impl Loom {
    pub(super) fn new(server: &LoomServer) -> Result<Self, ToolError> {
        Ok(Self { url: server.at("/proxy/cse")? })
    }
}

impl Backend for Loom {
    fn name(&self) -> &'static str {
        NAME
    }

    fn url(&self) -> &Url {
        &self.url
    }

    fn request(&self, query: &Query<'_>) -> HttpRequest {
        let words = query.sites.in_words(query.text);
        post(&self.url, &json!({"query": words, "max_results": query.count.clamp(1, MOST_RESULTS)}))
    }

    fn read(&self, answer: &HttpResponse) -> Result<Found, ToolError> {
        listed(NAME, &json_of(NAME, answer)?, "/results", "url", "snippet")
    }

    fn retry(&self) -> Retry {
        Retry { statuses: LoomServer::RETRIED, ..Retry::default() }
    }

    fn advice(&self, status: u16) -> Option<&'static str> {
        match status {
            404 => Some("LOOM_SERVER_URL (tools.loom.server_url) does not lead to a Loom server"),
            500 => Some("Google CSE may not be set up on that server"),
            _ => None,
        }
    }
}
