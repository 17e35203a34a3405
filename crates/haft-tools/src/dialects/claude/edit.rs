//! `Edit`: one text for another.

use std::path::PathBuf;

use haft_tool::{
    Effect, EffectKind, ErrorKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value, World,
    json, path_to_text,
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

/// A checked input and its resolved path.
pub(super) struct EditPlan {
    path: PathBuf,
    input: Input,
}

impl Tool for Edit {
    const NAME: &'static str = "Edit";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    type Input = Input;
    type Plan = EditPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<EditPlan>, ToolError> {
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
        let path = at.only_absolute("file_path", &input.file_path)?;
        Ok(Planned::new([Effect::Write { path: path.clone() }], EditPlan { path, input }))
    }

    fn perform(&self, plan: EditPlan, world: &dyn World) -> Result<Output, ToolError> {
        let EditPlan { path, input } = plan;
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
