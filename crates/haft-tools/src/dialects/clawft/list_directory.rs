//! `list_directory`: the entries of a directory.

use std::path::PathBuf;

use haft_tool::prelude::*;

use crate::ops::list::list;

/// More entries do not fit into a result, whatever their names.
const MAX_ENTRIES: usize = super::MAX_RESULT_BYTES / r#"{"name":"","is_dir":true,"size":0}"#.len();

/// List a directory by name, not what lies deeper.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path in the workspace.
    #[schemars(extend("format" = "path"))]
    path: String,
}

#[derive(Serialize, JsonSchema)]
struct ClawftListing {
    /// By name.
    #[schemars(with = "Vec<ClawftEntry>")]
    entries: Value,
}

#[derive(Serialize, JsonSchema)]
struct ClawftEntry {
    /// Its name.
    name: String,
    /// Whether it is a directory.
    is_dir: bool,
    /// Its length in bytes.
    size: u64,
}

pub(super) struct ListDirectory;

impl Tool for ListDirectory {
    const NAME: &'static str = "list_directory";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<ClawftListing>);
    type Input = Input;
    type Plan = PathBuf;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<PathBuf>, ToolError> {
        let path = at.absolute(&input.path)?;
        Ok(Planned::new([Effect::Read { path: path.clone() }], path))
    }

    fn perform(&self, path: PathBuf, world: &dyn World) -> Result<Output, ToolError> {
        let entries = list(world, &path, MAX_ENTRIES, true, |entry, is_dir| {
            json!(ClawftEntry { name: entry.name.to_string_lossy().into_owned(), is_dir, size: entry.size })
        })?;
        Ok(Output::json(json!(ClawftListing { entries })))
    }
}
