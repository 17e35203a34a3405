//! `Write`: a whole file.

use std::path::PathBuf;

use haft_tool::prelude::*;
use haft_tool::{Node, path_to_text};

use crate::ops::numbered::counted_lines;
use crate::ops::write::write;

/// Write a file, replacing what it held. Missing directories are made. To change part of a file use Edit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Absolute path of the file.
    #[schemars(extend("format" = "path"))]
    file_path: String,
    /// The whole new content.
    content: String,
}

pub(super) struct Write;

pub(super) struct WritePlan {
    path: PathBuf,
    content: String,
}

impl Tool for Write {
    const NAME: &'static str = "Write";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    const HAS_PREVIEW: bool = true;
    type Input = Input;
    type Plan = WritePlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<WritePlan>, ToolError> {
        let path = at.only_absolute("file_path", &input.file_path)?;
        Ok(Planned::new([Effect::Write { path: path.clone() }], WritePlan { path, content: input.content }))
    }

    fn perform(&self, plan: WritePlan, world: &dyn World) -> Result<Output, ToolError> {
        let result = write(world, &plan.path, &plan.content)?;
        let lines = plan.content.lines().count();
        let created = result.written.before == Node::Absent;
        let (verb, kind) = if created { ("Created", "create") } else { ("Wrote", "update") };
        let note = result.note.map(|note| format!("; {note}")).unwrap_or_default();
        let path = &result.written.path;
        let size = if result.bytes == 1 { "1 byte".to_owned() } else { format!("{} bytes", result.bytes) };
        let text = format!("{verb} {} ({}, {size}){note}", path.display(), counted_lines(lines as u64));
        Ok(Output::text(text).with_structured(json!({
            "type": kind, "filePath": path_to_text(path), "lines": lines, "bytes": result.bytes,
        })))
    }
}
