//! `WebSearch`: pages for a query.

use std::fmt::Write;
use std::time::Duration;

use haft_tool::{
    EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value, World, clip_chars, json,
};
use serde::Deserialize;

use crate::Settings;
use crate::ops::search::{self, Backend, Found, Query, Sites};

const RESULTS: usize = 10;
const MOST_SNIPPET_CHARS: usize = 600;

/// Search the web. Gives titles, addresses and excerpts; read a page with `WebFetch`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to search for.
    query: String,
    /// Only results from these domains.
    allowed_domains: Option<Vec<String>>,
    /// No results from these domains.
    blocked_domains: Option<Vec<String>>,
}

pub(super) struct WebSearch {
    settings: Settings,
}

impl WebSearch {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone() }
    }

    fn backend(&self) -> Result<Box<dyn Backend>, ToolError> {
        search::chosen(&self.settings.web_search, &self.settings.loom)?.ok_or_else(|| {
            ToolError::failed(
                "no web search is set up here. The user can set BRAVE_API_KEY, TAVILY_API_KEY, SEARXNG_URL, or \
                 GOOGLE_API_KEY with GOOGLE_CSE_ID, or [tools.web_search] in haft.toml",
            )
        })
    }
}

impl Input {
    fn sites(&self) -> Result<Sites, ToolError> {
        let list = |domains: &Option<Vec<String>>| domains.clone().unwrap_or_default();
        Sites::parse(&list(&self.allowed_domains), &list(&self.blocked_domains))
    }
}

/// What to search for, and with which service.
pub(super) struct SearchPlan {
    backend: Box<dyn Backend>,
    query: String,
    sites: Sites,
}

impl Tool for WebSearch {
    const NAME: &'static str = "WebSearch";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Reach];
    type Input = Input;
    type Plan = SearchPlan;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<SearchPlan>, ToolError> {
        search::words(&input.query)?;
        let (sites, backend) = (input.sites()?, self.backend()?);
        let effects = search::effects(backend.as_ref());
        Ok(Planned::new(effects, SearchPlan { backend, query: input.query, sites }))
    }

    fn perform(&self, plan: SearchPlan, world: &dyn World) -> Result<Output, ToolError> {
        let started_ms = world.now_ms();
        let query = Query { text: search::words(&plan.query)?, count: RESULTS, sites: plan.sites };
        let found = search::search(plan.backend.as_ref(), &query, world)?;
        Ok(Output::text(shown(&plan.query, &found)).with_structured(json!({
            "query": plan.query,
            "results": found.hits,
            "durationSeconds": Duration::from_millis(world.now_ms().saturating_sub(started_ms)).as_secs_f64(),
        })))
    }
}

fn shown(query: &str, found: &Found) -> String {
    let mut text = String::new();
    for (number, hit) in (1..).zip(&found.hits) {
        let _ = writeln!(text, "{number}. {}\n   {}", hit.title, hit.url);
        if !hit.snippet.is_empty() {
            let _ = writeln!(text, "   {}", clip_chars(&hit.snippet, MOST_SNIPPET_CHARS, 0));
        }
    }
    match &found.raw {
        _ if !found.hits.is_empty() => {}
        Value::Array(_) => {
            text.push_str(&format!("Nothing found for {query:?}.\n"));
        }
        // An answer in a form nobody here knows may still say what was asked for.
        Value::String(raw) => text.push_str(raw),
        raw => text.push_str(&raw.to_string()),
    }
    if let Some(note) = &found.note {
        let _ = writeln!(text, "({note})");
    }
    text
}
