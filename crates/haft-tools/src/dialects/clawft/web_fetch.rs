//! `web_fetch`: what a server answers, as text.

use std::collections::BTreeMap;
use std::time::Duration;

use haft_tool::{
    Bound, EffectKind, HttpRequest, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value, World,
    json, result_schema_of,
};
use serde::{Deserialize, Serialize};
use url::Url;

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
    const NAME: &'static str = "web_fetch";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Reach];
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = (Url, Input);

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<(Url, Input)>, ToolError> {
        let url = address(&input.url)?;
        Ok(Planned::new([effect(&url)], (url, input)))
    }

    fn perform(&self, (url, input): (Url, Input), world: &dyn World) -> Result<Output, ToolError> {
        let response = world.http().fetch(&HttpRequest {
            method: input.method.unwrap_or_else(|| "GET".to_owned()),
            headers: input.headers.unwrap_or_default().into_iter().collect(),
            timeout: TIMEOUT,
            keep_bytes: MOST_BYTES,
            ..HttpRequest::get(url)
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
}
