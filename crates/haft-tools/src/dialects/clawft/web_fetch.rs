//! `web_fetch`: what a server answers, as text.

use std::collections::BTreeMap;
use std::time::Duration;

use haft_tool::{
    Bound, Effect, HttpRequest, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, Value, World,
    json, result_schema_of,
};
use serde::{Deserialize, Serialize};

use crate::ops::fetch::{address, effect, words};

const MOST_BYTES: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_mins(1);

/// Fetch a URL: status, content type and body as text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Starts with http:// or https://.
    url: String,
    /// HTTP method (default GET).
    method: Option<String>,
    /// HTTP headers.
    headers: Option<BTreeMap<String, String>>,
}

#[derive(Serialize, JsonSchema)]
struct Given {
    /// The HTTP status.
    status: u16,
    /// What the server says the body is.
    content_type: String,
    /// The body as text.
    body: String,
    /// What was fetched.
    url: String,
    /// How many bytes came.
    bytes: u64,
}

pub(super) struct WebFetch;

impl Tool for WebFetch {
    type Input = Input;

    fn name(&self) -> &'static str {
        "web_fetch"
    }

    fn gives(&self) -> Option<fn() -> Value> {
        Some(result_schema_of::<Given>)
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Network
    }

    fn plan(&self, input: &Input, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![effect(&address(&input.url)?)])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let response = world.http().fetch(&HttpRequest {
            method: input.method.unwrap_or_else(|| "GET".to_owned()),
            headers: input.headers.unwrap_or_default().into_iter().collect(),
            timeout: TIMEOUT,
            keep_bytes: MOST_BYTES,
            ..HttpRequest::get(address(&input.url)?)
        })?;
        let mut body = words(&response);
        if response.more || response.total_bytes > response.body.len() as u64 {
            let at_least = if response.more { "at least " } else { "" };
            body.push_str(&format!(
                "\n\n[... truncated at {MOST_BYTES} bytes, total response was {at_least}{} bytes]",
                response.total_bytes
            ));
        }
        Ok(Output::json(json!(Given {
            status: response.status,
            content_type: response.header("content-type").unwrap_or_default().to_owned(),
            body,
            url: input.url,
            bytes: response.total_bytes,
        })))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }
}
