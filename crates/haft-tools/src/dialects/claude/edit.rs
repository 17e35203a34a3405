//! `Edit`: one text for another.

use haft_tool::{
    Effect, ErrorKind, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, Value, World, json,
    path_to_text,
};
use serde::Deserialize;

use crate::ops::edit::{Edited, Wanted, Which, replace};
use crate::ops::hunk::{Hunk, hunks};

/// How many blocks of the diff are shown.
const MOST_HUNKS: usize = 20;

/// Replace text in a file. `old_string` must be the file's exact text and occur once, unless `replace_all` is set. Line numbers from Read are not part of the text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Absolute path of the file.
    file_path: String,
    /// The text to replace.
    old_string: String,
    /// What to put in its place; may be empty.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

pub(super) struct Edit;

impl Tool for Edit {
    type Input = Input;

    fn name(&self) -> &'static str {
        "Edit"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        if input.old_string.is_empty() {
            return Err(ToolError::invalid_arguments(
                "old_string: it is empty; to make a new file use Write",
            ));
        }
        if input.old_string == input.new_string {
            return Err(ToolError::invalid_arguments(
                "new_string: it is the same as old_string; there is nothing to change",
            ));
        }
        Ok(vec![Effect::Write { path: planning.only_absolute("file_path", &input.file_path)? }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let path = world.planning().only_absolute("file_path", &input.file_path)?;
        let which = if input.replace_all { Which::All } else { Which::Only };
        let mut done: Option<Edited> = None;
        let written = world.files().update(&path, &mut |current| {
            let Some(bytes) = current else {
                let message = format!("{} does not exist; to make a new file use Write", path.display());
                return Err(ToolError::new(ErrorKind::FileNotFound, message));
            };
            let (old, new, field) = (&input.old_string, &input.new_string, "old_string");
            let mut edited = replace(bytes, &path, &Wanted { old, new, which, field })?;
            let bytes = std::mem::take(&mut edited.bytes);
            done = Some(edited);
            Ok(bytes)
        })?;
        let Some(done) = done else { return Err(ToolError::internal("the edit was not made")) };
        let count = done.spans.len();
        let diff = hunks(&done.old_text, &done.spans, MOST_HUNKS);
        let times = if count == 1 { String::new() } else { format!(" ({count} replacements)") };
        let notes: String = done.notes.iter().map(|note| format!("; {note}")).collect();
        let mut text = format!("Edited {}{times}{notes}\n", written.path.display());
        text.extend(diff.iter().map(Hunk::to_text));
        Ok(Output::text(text).with_structured(json!({
            "filePath": path_to_text(&written.path),
            "replacements": count,
            "structuredPatch": diff.iter().map(Hunk::to_json).collect::<Vec<Value>>(),
        })))
    }
}
