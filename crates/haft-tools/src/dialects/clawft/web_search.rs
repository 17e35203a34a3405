//! `web_search`: results as the search service returns them.

use haft_tool::prelude::*;

use crate::Settings;
use crate::ops::web_search::{SearchEngine, SearchQuery, SiteFilter, configured};

const DEFAULT_RESULTS: u32 = 5;

/// Search the web.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to search for.
    query: String,
    /// How many results at most (default 5).
    #[schemars(range(min = 1))]
    num_results: Option<u32>,
}

#[derive(Default, Serialize, JsonSchema)]
struct ClawftSearchResults {
    /// Why nothing was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
    /// What was searched for.
    query: String,
    /// What the search service found, in its own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Value>,
}

pub(super) struct ClawftWebSearch {
    pub(super) settings: Settings,
}

pub(super) struct ClawftSearchPlan {
    engine: Option<SearchEngine>,
    query: SearchQuery,
}

impl Tool for ClawftWebSearch {
    const NAME: &'static str = "web_search";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Reach];
    const NEEDS: Option<ToolNeed> = Some(ToolNeed::SearchEngine);
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<ClawftSearchResults>);
    type Input = Input;
    type Plan = ClawftSearchPlan;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<ClawftSearchPlan>, ToolError> {
        let max_results = input.num_results.unwrap_or(DEFAULT_RESULTS) as usize;
        let query = SearchQuery::new(&input.query, max_results, SiteFilter::default())?;
        let engine = configured(&self.settings.web_search, &self.settings.loom)?;
        let effect = engine.as_ref().map(SearchEngine::effect);
        Ok(Planned::new(effect, ClawftSearchPlan { engine, query }))
    }

    fn perform(&self, plan: ClawftSearchPlan, world: &dyn World) -> Result<Output, ToolError> {
        let mut result = ClawftSearchResults::default();
        if let Some(engine) = plan.engine {
            result.results = Some(engine.search(&plan.query, world)?.raw);
        } else {
            // Not an error in clawft.
            result.error = Some("web search not configured");
            result.message =
                Some("No search API endpoint is configured. Set 'tools.web_search.endpoint' in your config.");
        }
        result.query = plan.query.text;
        Ok(Output::json(json!(result)))
    }
}
