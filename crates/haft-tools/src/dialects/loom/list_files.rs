//! `list_files`: the entries of a directory.

use std::path::PathBuf;

use haft_tool::path_to_text;
use haft_tool::prelude::*;

use crate::ops::list::list;

const DEFAULT_ENTRIES: u64 = 1_000;

/// List a directory, not what lies deeper.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The directory (default: the workspace).
    #[schemars(extend("format" = "path"))]
    root: Option<String>,
    /// Most entries to list (default 1000).
    max_results: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct LoomListing {
    /// By name.
    #[schemars(with = "Vec<LoomEntry>")]
    entries: Value,
}

#[derive(Serialize, JsonSchema)]
struct LoomEntry {
    /// Where it is.
    path: String,
    /// Whether it is a directory.
    is_dir: bool,
}

pub(super) struct ListFiles;

impl Tool for ListFiles {
    const NAME: &'static str = "list_files";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = super::BOUND;
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<LoomListing>);
    type Input = Input;
    type Plan = (PathBuf, usize);

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<(PathBuf, usize)>, ToolError> {
        let root = at.absolute(input.root.as_deref().unwrap_or("."))?;
        let max_entries = usize::try_from(input.max_results.unwrap_or(DEFAULT_ENTRIES)).unwrap_or(usize::MAX);
        Ok(Planned::new([Effect::Read { path: root.clone() }], (root, max_entries)))
    }

    fn perform(&self, (root, max_entries): (PathBuf, usize), world: &dyn World) -> Result<Output, ToolError> {
        let root = world.files().real_path(&root)?;
        let entries = list(world, &root, max_entries, false, |entry, is_dir| {
            json!(LoomEntry { path: path_to_text(&root.join(&entry.name)).into_owned(), is_dir })
        })?;
        Ok(Output::json(json!(LoomListing { entries })))
    }
}
