//! `web_search`: results as the search service gives them.

use haft_tool::{
    Bound, Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, Value, World, json,
    result_schema_of,
};
use serde::{Deserialize, Serialize};

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
                Given { query: input.query, results: Some(found.raw), ..Given::default() }
            }
            // By its document this is an answer, not an error.
            None => Given {
                error: Some("web search not configured"),
                message: Some(
                    "No search API endpoint is configured. Set 'tools.web_search.endpoint' in your config.",
                ),
                query: input.query,
                results: None,
            },
        };
        Ok(Output::json(json!(answer)))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }
}
