//! `read_file`: the first bytes of a file.

use std::path::PathBuf;

use haft_tool::path_to_text;
use haft_tool::prelude::*;

use crate::ops::prefix::read_prefix;

const DEFAULT_BYTES: u64 = 1 << 20;
const MAX_BYTES: u64 = 8 << 20;

/// Read a text file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path, absolute or in the workspace.
    #[schemars(extend("format" = "path"))]
    path: String,
    /// Most bytes to read (default 1 MiB).
    max_bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct LoomFile {
    /// The file.
    path: String,
    /// Its text.
    contents: String,
    /// Whether there is more of it.
    truncated: bool,
}

pub(super) struct LoomReadFile;

impl Tool for LoomReadFile {
    const NAME: &'static str = "read_file";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = super::BOUND;
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<LoomFile>);
    type Input = Input;
    type Plan = (PathBuf, u64);

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<(PathBuf, u64)>, ToolError> {
        let path = at.absolute(&input.path)?;
        let max_bytes = input.max_bytes.unwrap_or(DEFAULT_BYTES).min(MAX_BYTES);
        Ok(Planned::new([Effect::Read { path: path.clone() }], (path, max_bytes)))
    }

    fn perform(&self, (path, max_bytes): (PathBuf, u64), world: &dyn World) -> Result<Output, ToolError> {
        let prefix = read_prefix(world, &path, max_bytes)?;
        let mut contents =
            prefix.text().unwrap_or_else(|| String::from_utf8_lossy(&prefix.bytes).into_owned());
        if prefix.split_character {
            contents.push(char::REPLACEMENT_CHARACTER);
        }
        let path = path_to_text(&world.files().real_path(&path)?).into_owned();
        Ok(Output::json(json!(LoomFile { path, contents, truncated: prefix.missing_bytes > 0 })))
    }
}
