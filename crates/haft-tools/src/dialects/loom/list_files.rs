//! `list_files`: what is in a directory.

use haft_tool::{
    Bound, Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, World, json, path_to_text,
};
use serde::Deserialize;

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

pub(super) struct ListFiles;

impl Tool for ListFiles {
    type Input = Input;

    fn name(&self) -> &'static str {
        "list_files"
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
        let entries = list(
            world,
            &root,
            most,
            false,
            |entry, is_dir| json!({"path": path_to_text(&root.join(&entry.name)), "is_dir": is_dir}),
        )?;
        Ok(Output::json(json!({"entries": entries})))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }

    fn clamps(&self) -> bool {
        true
    }
}
