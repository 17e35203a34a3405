//! `web_fetch`: the response of a server as text.

use std::collections::BTreeMap;
use std::time::Duration;

use haft_tool::HttpRequest;
use haft_tool::prelude::*;

use crate::ops::fetch::{body_text, effect, parse_url};

const MAX_BODY_BYTES: usize = 1 << 20;
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
struct FetchedPage {
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

pub(super) struct ClawftWebFetch;

impl Tool for ClawftWebFetch {
    const NAME: &'static str = "web_fetch";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Reach];
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<FetchedPage>);
    type Input = Input;
    type Plan = (HttpRequest, String);

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<(HttpRequest, String)>, ToolError> {
        let url = parse_url(&input.url)?;
        let effect = effect(&url);
        let request = HttpRequest {
            method: input.method.unwrap_or_else(|| "GET".to_owned()),
            headers: input.headers.unwrap_or_default().into_iter().collect(),
            timeout: TIMEOUT,
            keep_bytes: MAX_BODY_BYTES,
            ..HttpRequest::get(url)
        };
        Ok(Planned::new([effect], (request, input.url)))
    }

    fn perform(&self, (request, url): (HttpRequest, String), world: &dyn World) -> Result<Output, ToolError> {
        let response = world.http().fetch(&request)?;
        let mut body = body_text(&response);
        if response.more || response.total_bytes > response.body.len() as u64 {
            let at_least = if response.more { "at least " } else { "" };
            body.push_str(&format!(
                "\n\n[... truncated at {MAX_BODY_BYTES} bytes, total response was {at_least}{} bytes]",
                response.total_bytes
            ));
        }
        let content_type = response.header("content-type").unwrap_or_default().to_owned();
        let (status, bytes) = (response.status, response.total_bytes);
        Ok(Output::json(json!(FetchedPage { status, content_type, body, url, bytes })))
    }
}
