//! `read`: the text of a file.

use std::path::PathBuf;

use haft_tool::Text;
use haft_tool::prelude::*;

use crate::ops::prefix::read_prefix;

const MAX_CHARS: usize = 50_000;
/// How much is read to count its characters; the rest is counted in bytes.
const MAX_COUNTED_BYTES: u64 = 16 << 20;

/// Read a text file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Its path.
    #[schemars(extend("format" = "path"))]
    file_path: String,
}

pub(super) struct OmegaRead;

impl Tool for OmegaRead {
    const NAME: &'static str = "read";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = super::limit(MAX_CHARS);
    type Input = Input;
    type Plan = PathBuf;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<PathBuf>, ToolError> {
        let path = at.absolute(&input.file_path)?;
        Ok(Planned::new([Effect::Read { path: path.clone() }], path))
    }

    fn perform(&self, path: PathBuf, world: &dyn World) -> Result<Output, ToolError> {
        let prefix = read_prefix(world, &path, MAX_COUNTED_BYTES)?;
        let head = prefix.require_text(&path)?;
        Ok(Output::text(Text { head, missing_bytes: prefix.missing_bytes, tail: String::new() }))
    }
}
