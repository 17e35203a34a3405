//! `web_search`: results as the search service gives them.

use haft_tool::{
    Bound, EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value, World, json,
    result_schema_of,
};
use serde::{Deserialize, Serialize};

use crate::Settings;
use crate::ops::search::{self, Backend, Query, Sites};

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
struct Given {
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

pub(super) struct WebSearch {
    settings: Settings,
}

impl WebSearch {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone() }
    }

    fn backend(&self) -> Result<Option<Box<dyn Backend>>, ToolError> {
        search::chosen(&self.settings.web_search, &self.settings.loom)
    }
}

/// What to search for, and with which service, if one is set up.
pub(super) struct SearchPlan {
    backend: Option<Box<dyn Backend>>,
    query: String,
    count: usize,
}

impl Tool for WebSearch {
    const NAME: &'static str = "web_search";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Reach];
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = SearchPlan;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<SearchPlan>, ToolError> {
        search::words(&input.query)?;
        let backend = self.backend()?;
        let effects = backend.as_deref().map(search::effects).unwrap_or_default();
        let count = input.num_results.unwrap_or(DEFAULT_RESULTS) as usize;
        Ok(Planned::new(effects, SearchPlan { backend, query: input.query, count }))
    }

    fn perform(&self, plan: SearchPlan, world: &dyn World) -> Result<Output, ToolError> {
        let SearchPlan { backend, query, count } = plan;
        let answer = match backend {
            Some(backend) => {
                let request = Query { text: search::words(&query)?, count, sites: Sites::default() };
                let found = search::search(backend.as_ref(), &request, world)?;
                Given { query, results: Some(found.raw), ..Given::default() }
            }
            // By its document this is an answer, not an error.
            None => Given {
                error: Some("web search not configured"),
                message: Some(
                    "No search API endpoint is configured. Set 'tools.web_search.endpoint' in your config.",
                ),
                query,
                results: None,
            },
        };
        Ok(Output::json(json!(answer)))
    }
}
