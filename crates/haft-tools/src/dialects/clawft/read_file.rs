//! `read_file`: the text of a file.

use std::path::PathBuf;

use haft_tool::cut_string;
use haft_tool::prelude::*;

use crate::ops::prefix::read_prefix;

/// How much is read; the bound cuts it further.
const MAX_READ_BYTES: u64 = super::MAX_RESULT_BYTES as u64 * 2;

/// Read a text file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path in the workspace.
    #[schemars(extend("format" = "path"))]
    path: String,
}

#[derive(Serialize, JsonSchema)]
struct ClawftFile {
    /// The file's text.
    content: String,
}

pub(super) struct ClawftReadFile;

impl Tool for ClawftReadFile {
    const NAME: &'static str = "read_file";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<ClawftFile>);
    type Input = Input;
    type Plan = PathBuf;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<PathBuf>, ToolError> {
        let path = at.absolute(&input.path)?;
        Ok(Planned::new([Effect::Read { path: path.clone() }], path))
    }

    fn perform(&self, path: PathBuf, world: &dyn World) -> Result<Output, ToolError> {
        let prefix = read_prefix(world, &path, MAX_READ_BYTES)?;
        let mut content = prefix.require_text(&path)?;
        if prefix.missing_bytes > 0 {
            content = cut_string(content, prefix.bytes.len() as u64 + prefix.missing_bytes);
        }
        Ok(Output::json(json!(ClawftFile { content })))
    }
}
