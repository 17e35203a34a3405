//! `write_file`: a whole file.

use std::path::PathBuf;

use haft_tool::prelude::*;

use crate::ops::write::write;

/// Write a file, replacing what it held. Missing directories are made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path in the workspace.
    #[schemars(extend("format" = "path"))]
    path: String,
    /// The whole new content.
    content: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Confirmation {
    /// What was done.
    pub(super) message: String,
}

pub(super) struct WriteFile;

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    const HAS_PREVIEW: bool = true;
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Confirmation>);
    type Input = Input;
    type Plan = (PathBuf, Input);

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<(PathBuf, Input)>, ToolError> {
        let path = at.absolute(&input.path)?;
        Ok(Planned::new([Effect::Write { path: path.clone() }], (path, input)))
    }

    fn perform(&self, (path, input): (PathBuf, Input), world: &dyn World) -> Result<Output, ToolError> {
        let bytes = write(world, &path, &input.content)?.bytes;
        let message = format!("Successfully wrote {bytes} bytes to {}", input.path);
        Ok(Output::json(json!(Confirmation { message })))
    }
}
