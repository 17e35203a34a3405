//! `list_files`: what is in a directory.

use haft_tool::{
    Bound, Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, Value, World, json,
    path_to_text, result_schema_of,
};
use serde::{Deserialize, Serialize};

use crate::ops::list::list;

const DEFAULT_RESULTS: u64 = 1_000;

/// List a directory, not what lies deeper.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The directory (default: the workspace).
    root: Option<String>,
    /// Most entries to list (default 1000).
    max_results: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Given {
    /// By name.
    #[schemars(with = "Vec<Entry>")]
    entries: Value,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    /// Where it is.
    path: String,
    /// Whether it is a directory.
    is_dir: bool,
}

pub(super) struct ListFiles;

impl Tool for ListFiles {
    type Input = Input;

    fn name(&self) -> &'static str {
        "list_files"
    }

    fn gives(&self) -> Option<fn() -> Value> {
        Some(result_schema_of::<Given>)
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::ReadOnly
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: planning.absolute(input.root.as_deref().unwrap_or("."))? }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let root = world.planning().absolute(input.root.as_deref().unwrap_or("."))?;
        let most = usize::try_from(input.max_results.unwrap_or(DEFAULT_RESULTS)).unwrap_or(usize::MAX);
        let entries = list(world, &root, most, false, |entry, is_dir| {
            json!(Entry { path: path_to_text(&root.join(&entry.name)).into_owned(), is_dir })
        })?;
        Ok(Output::json(json!(Given { entries })))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }

    fn clamps(&self) -> bool {
        true
    }
}
