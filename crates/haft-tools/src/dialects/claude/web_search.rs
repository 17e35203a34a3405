//! `WebSearch`: pages for a query.

use std::time::Duration;

use haft_tool::prelude::*;

use crate::Settings;
use crate::ops::web_search::{SearchEngine, SearchQuery, SiteFilter, configured, results_text};

const MAX_RESULTS: usize = 10;

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
    pub(super) settings: Settings,
}

impl Tool for WebSearch {
    const NAME: &'static str = "WebSearch";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Reach];
    const NEEDS: Option<ToolNeed> = Some(ToolNeed::SearchEngine);
    type Input = Input;
    type Plan = (SearchEngine, SearchQuery);

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<(SearchEngine, SearchQuery)>, ToolError> {
        let (only, never) =
            (input.allowed_domains.unwrap_or_default(), input.blocked_domains.unwrap_or_default());
        let query = SearchQuery::new(&input.query, MAX_RESULTS, SiteFilter::parse(&only, &never)?)?;
        let engine = configured(&self.settings.web_search, &self.settings.loom)?.ok_or_else(|| {
            ToolError::failed(
                "no web search is set up here. The user can set BRAVE_API_KEY, TAVILY_API_KEY, SEARXNG_URL, or \
                 GOOGLE_API_KEY with GOOGLE_CSE_ID, or [tools.web_search] in haft.toml",
            )
        })?;
        Ok(Planned::new([engine.effect()], (engine, query)))
    }

    fn perform(
        &self,
        (engine, query): (SearchEngine, SearchQuery),
        world: &dyn World,
    ) -> Result<Output, ToolError> {
        let started_ms = world.now_ms();
        let results = engine.search(&query, world)?;
        let elapsed = Duration::from_millis(world.now_ms().saturating_sub(started_ms));
        Ok(Output::text(results_text(&query.text, &results)).with_structured(json!({
            "query": query.text,
            "results": results.hits,
            "durationSeconds": elapsed.as_secs_f64(),
        })))
    }
}
