//! `web_search`: pages for a query, through the Loom server.

use haft_tool::{
    Bound, EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value, World, json,
    result_schema_of,
};
use serde::{Deserialize, Serialize};

use crate::Settings;
use crate::ops::search::{self, Backend, Hit, Query, Sites};

const DEFAULT_RESULTS: i64 = 5;

/// Search the web.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to search for.
    query: String,
    /// How many results at most (default 5).
    #[schemars(range(min = 1, max = 10))]
    max_results: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
struct Given {
    /// The pages, the best first.
    results: Vec<Hit>,
}

pub(super) struct WebSearch {
    settings: Settings,
}

impl WebSearch {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone() }
    }

    /// The Loom server's, unless the user names another by `backend`.
    fn backend(&self) -> Result<Box<dyn Backend>, ToolError> {
        let Settings { web_search, loom, .. } = &self.settings;
        match web_search.backend.map(|_| search::chosen(web_search, loom)).transpose()?.flatten() {
            Some(backend) => Ok(backend),
            None => search::loom(loom),
        }
    }
}

/// What to search for, and with which service.
pub(super) struct SearchPlan {
    backend: Box<dyn Backend>,
    query: String,
    count: usize,
}

impl Tool for WebSearch {
    const NAME: &'static str = "web_search";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Reach];
    const BOUND: Bound = super::BOUND;
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = SearchPlan;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<SearchPlan>, ToolError> {
        search::words(&input.query)?;
        let backend = self.backend()?;
        let effects = search::effects(backend.as_ref());
        let count = usize::try_from(input.max_results.unwrap_or(DEFAULT_RESULTS).clamp(1, 10)).unwrap_or(1);
        Ok(Planned::new(effects, SearchPlan { backend, query: input.query, count }))
    }

    fn perform(&self, plan: SearchPlan, world: &dyn World) -> Result<Output, ToolError> {
        let query = Query { text: search::words(&plan.query)?, count: plan.count, sites: Sites::default() };
        let found = search::search(plan.backend.as_ref(), &query, world)?;
        Ok(Output::json(json!(Given { results: found.hits })))
    }
}
