//! `WebFetch`: a page as Markdown, or a model's answer about it.

use std::time::Duration;

use haft_tool::prelude::*;
use haft_tool::{Content, ErrorKind, HttpRequest, HttpResponse, ModelRole, Redirects};
use url::Url;

use crate::ops::fetch::{WebPage, effect, page_question, page_text, parse_url, prefer_https, read_page};

const MAX_BODY_BYTES: usize = 5 << 20;
const MAX_CHARS: usize = 50_000;
const TIMEOUT: Duration = Duration::from_secs(30);
const ACCEPT: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, */*;q=0.5";

/// Fetch a page and answer `prompt` from it; without a small model its text comes as Markdown. Read only. Redirects to other hosts are not followed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The address; http becomes https.
    url: String,
    /// What to find on the page.
    prompt: String,
    /// Skip this many characters of the page.
    offset: Option<u64>,
}

pub(super) struct WebFetch;

pub(super) struct FetchPlan {
    url: Url,
    prompt: String,
    /// The characters of the page to skip.
    offset: usize,
}

impl Tool for WebFetch {
    const NAME: &'static str = "WebFetch";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Reach];
    const BOUND: Bound = Bound {
        notice: |cut| {
            format!(
                "[... {} of {} characters shown; for more call again with an offset that is {0} higher]",
                cut.shown_chars, cut.total_chars
            )
        },
        ..Bound::DEFAULT.head().chars(MAX_CHARS)
    };
    type Input = Input;
    type Plan = FetchPlan;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<FetchPlan>, ToolError> {
        let url = prefer_https(parse_url(&input.url)?);
        let offset = usize::try_from(input.offset.unwrap_or(0)).unwrap_or(usize::MAX);
        Ok(Planned::new([effect(&url)], FetchPlan { url, prompt: input.prompt, offset }))
    }

    fn perform(&self, plan: FetchPlan, world: &dyn World) -> Result<Output, ToolError> {
        let started_ms = world.now_ms();
        let response = world.http().fetch(&HttpRequest {
            headers: vec![("accept".to_owned(), ACCEPT.to_owned())],
            timeout: TIMEOUT,
            keep_bytes: MAX_BODY_BYTES,
            redirects: Redirects::SameHost,
            cached: true,
            ..HttpRequest::get(plan.url)
        })?;
        let HttpResponse { status, status_text, url, total_bytes, .. } = &response;
        let mut structured =
            json!({"bytes": total_bytes, "code": status, "codeText": status_text, "url": url});
        let mut output = if let Some(target) = &response.redirect {
            Output::text(format!(
                "{url} redirects to another host ({status} {status_text}). To read it, call WebFetch with this url: {target}"
            ))
        } else {
            match read_page(&response, world.cancelled())? {
                WebPage::Image { media_type, data } => {
                    let image = Content::Image { media_type: media_type.to_owned(), data };
                    Output::pieces(vec![image])
                }
                WebPage::Text(text) => {
                    let text = text.char_indices().nth(plan.offset).map_or("", |(at, _)| &text[at..]);
                    if (200..300).contains(status) && world.host().has_model(ModelRole::Small) {
                        let question = page_question(&plan.prompt, url, text);
                        let answer = world.host().complete(&question, world.cancelled())?;
                        structured["result"] = json!(answer);
                        Output::text(answer)
                    } else {
                        Output::text(page_text(&response, text))
                    }
                }
            }
        };
        structured["durationMs"] = json!(world.now_ms().saturating_sub(started_ms));
        if !(200..400).contains(status) {
            output = output.failed(ErrorKind::ExecutionFailed);
        }
        Ok(output.with_structured(structured))
    }
}
