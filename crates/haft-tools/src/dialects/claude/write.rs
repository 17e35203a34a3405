//! `Write`: a whole file.

use haft_tool::{
    Effect, JsonSchema, Node, Output, Planning, SideEffect, Tool, ToolError, World, json, path_to_text,
};
use serde::Deserialize;

use crate::ops::write::write;

/// Write a file, replacing what it held. Missing directories are made. To change part of a file use Edit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Absolute path of the file.
    file_path: String,
    /// All that the file shall hold.
    content: String,
}

pub(super) struct Write;

impl Tool for Write {
    type Input = Input;

    fn name(&self) -> &'static str {
        "Write"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Write { path: planning.only_absolute("file_path", &input.file_path)? }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let path = world.planning().only_absolute("file_path", &input.file_path)?;
        let wrote = write(world, &path, &input.content)?;
        let lines = input.content.lines().count();
        let created = wrote.written.before == Node::Absent;
        let verb = if created { "Created" } else { "Wrote" };
        let place = wrote.written.path.display();
        let mut text = format!("{verb} {place} ({lines} lines, {} bytes)", wrote.bytes);
        if let Some(note) = wrote.note {
            text.push_str(&format!("; {note}"));
        }
        Ok(Output::text(text).with_structured(json!({
            "type": if created { "create" } else { "update" },
            "filePath": path_to_text(&wrote.written.path), "lines": lines, "bytes": wrote.bytes,
        })))
    }
}
