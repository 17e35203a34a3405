//! `list_files`: what is in a directory.

use std::path::PathBuf;

use haft_tool::{
    Bound, Effect, EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value, World, json,
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

/// The directory, and how many of its entries are listed.
pub(super) struct ListPlan {
    root: PathBuf,
    limit: usize,
}

impl Tool for ListFiles {
    const NAME: &'static str = "list_files";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = super::BOUND;
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = ListPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<ListPlan>, ToolError> {
        let root = at.absolute(input.root.as_deref().unwrap_or("."))?;
        let limit = usize::try_from(input.max_results.unwrap_or(DEFAULT_RESULTS)).unwrap_or(usize::MAX);
        Ok(Planned::new([Effect::Read { path: root.clone() }], ListPlan { root, limit }))
    }

    fn perform(&self, plan: ListPlan, world: &dyn World) -> Result<Output, ToolError> {
        let ListPlan { root, limit } = plan;
        let entries = list(world, &root, limit, false, |entry, is_dir| {
            json!(Entry { path: path_to_text(&root.join(&entry.name)).into_owned(), is_dir })
        })?;
        Ok(Output::json(json!(Given { entries })))
    }
}
