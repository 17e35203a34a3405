//! `web_search`: results as the search service gives them.

use haft_tool::{Bound, Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, World, json};
use serde::Deserialize;

use crate::Settings;
use crate::ops::search::{self, Backend, Query, Sites};

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

impl Tool for WebSearch {
    type Input = Input;

    fn name(&self) -> &'static str {
        "web_search"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Network
    }

    fn plan(&self, input: &Input, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        search::words(&input.query)?;
        Ok(self.backend()?.map(|backend| search::effects(backend.as_ref())).unwrap_or_default())
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let answer = match self.backend()? {
            Some(backend) => {
                let count = input.num_results.unwrap_or(5) as usize;
                let query = Query { text: search::words(&input.query)?, count, sites: Sites::default() };
                let found = search::search(backend.as_ref(), &query, world)?;
                json!({"query": input.query, "results": found.raw})
            }
            // By its document this is an answer, not an error.
            None => json!({
                "error": "web search not configured",
                "message": "No search API endpoint is configured. Set 'tools.web_search.endpoint' in your config.",
                "query": input.query,
            }),
        };
        Ok(Output::json(answer))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }
}
