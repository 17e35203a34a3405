//! `web_search`: pages for a query, through the Loom server.

use haft_tool::{
    Bound, Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, Value, World, json,
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

impl Tool for WebSearch {
    type Input = Input;

    fn name(&self) -> &'static str {
        "web_search"
    }

    fn gives(&self) -> Option<fn() -> Value> {
        Some(result_schema_of::<Given>)
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Network
    }

    fn clamps(&self) -> bool {
        true
    }

    fn plan(&self, input: &Input, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        search::words(&input.query)?;
        Ok(search::effects(self.backend()?.as_ref()))
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let count = usize::try_from(input.max_results.unwrap_or(DEFAULT_RESULTS).clamp(1, 10)).unwrap_or(1);
        let query = Query { text: search::words(&input.query)?, count, sites: Sites::default() };
        let found = search::search(self.backend()?.as_ref(), &query, world)?;
        Ok(Output::json(json!(Given { results: found.hits })))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }
}
