//! `list_directory`: what is in a directory.

use haft_tool::{Bound, Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, World, json};
use serde::Deserialize;

use crate::ops::list::list;

/// More entries than these never fit into a result, whatever their names.
const MOST_ENTRIES: usize = super::MOST_BYTES / r#"{"name":"","is_dir":true,"size":0}"#.len();

/// List a directory by name, not what lies deeper.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path in the workspace.
    path: String,
}

pub(super) struct ListDirectory;

impl Tool for ListDirectory {
    type Input = Input;

    fn name(&self) -> &'static str {
        "list_directory"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::ReadOnly
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: planning.absolute(&input.path)? }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let path = world.planning().absolute(&input.path)?;
        let entries = list(
            world,
            &path,
            MOST_ENTRIES,
            true,
            |entry, is_dir| json!({"name": entry.name.to_string_lossy(), "is_dir": is_dir, "size": entry.size}),
        )?;
        Ok(Output::json(json!({"entries": entries})))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }
}
