//! `write`: a whole file.

use std::path::PathBuf;

use haft_tool::prelude::*;

use crate::ops::write::write;

/// Create or overwrite a file; missing directories are made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Its path.
    #[schemars(extend("format" = "path"))]
    file_path: String,
    /// The whole new content.
    content: String,
}

pub(super) struct OmegaWrite;

impl Tool for OmegaWrite {
    const NAME: &'static str = "write";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    const HAS_PREVIEW: bool = true;
    type Input = Input;
    type Plan = (PathBuf, String);

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<(PathBuf, String)>, ToolError> {
        let path = at.absolute(&input.file_path)?;
        Ok(Planned::new([Effect::Write { path: path.clone() }], (path, input.content)))
    }

    fn perform(&self, (path, content): (PathBuf, String), world: &dyn World) -> Result<Output, ToolError> {
        let result = write(world, &path, &content)?;
        let note = result.note.map(|note| format!("; {note}")).unwrap_or_default();
        Ok(Output::text(format!("Wrote {} bytes to {}{note}", result.bytes, result.written.path.display())))
    }
}
