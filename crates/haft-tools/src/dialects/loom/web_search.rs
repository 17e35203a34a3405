//! `web_search`: pages for a query, through the Loom server.

use haft_tool::prelude::*;

use crate::Settings;
use crate::ops::web_search::{SearchEngine, SearchHit, SearchQuery, SiteFilter, configured, loom};

const DEFAULT_RESULTS: u8 = 5;

/// Search the web.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to search for.
    query: String,
    /// How many results at most (default 5).
    #[schemars(range(min = 1, max = 10))]
    max_results: Option<u8>,
}

#[derive(Serialize, JsonSchema)]
struct LoomSearchResults {
    /// The pages, the best first.
    results: Vec<SearchHit>,
}

pub(super) struct LoomWebSearch {
    pub(super) settings: Settings,
}

impl Tool for LoomWebSearch {
    const NAME: &'static str = "web_search";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Reach];
    const NEEDS: Option<ToolNeed> = Some(ToolNeed::SearchEngine);
    const BOUND: Bound = super::BOUND;
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<LoomSearchResults>);
    type Input = Input;
    type Plan = (SearchEngine, SearchQuery);

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<(SearchEngine, SearchQuery)>, ToolError> {
        let max_results = input.max_results.unwrap_or(DEFAULT_RESULTS);
        let query = SearchQuery::new(&input.query, max_results.into(), SiteFilter::default())?;
        let Settings { web_search, loom: server, .. } = &self.settings;
        // Only a backend that the user names replaces the Loom server.
        let named = if web_search.backend.is_some() { configured(web_search, server)? } else { None };
        let engine = named.map_or_else(|| loom(server), Ok)?;
        Ok(Planned::new([engine.effect()], (engine, query)))
    }

    fn perform(
        &self,
        (engine, query): (SearchEngine, SearchQuery),
        world: &dyn World,
    ) -> Result<Output, ToolError> {
        let results = engine.search(&query, world)?.hits;
        Ok(Output::json(json!(LoomSearchResults { results })))
    }
}
