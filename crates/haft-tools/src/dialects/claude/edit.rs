//! `Edit`: replaces text in a file.

use std::path::PathBuf;

use haft_tool::path_to_text;
use haft_tool::prelude::*;

use crate::ops::edit::{Occurrence, Replacement, edit_file};
use crate::ops::hunks::{Hunk, hunks};

/// How many hunks of the diff are shown.
const MAX_HUNKS: usize = 20;

/// Replace text in a file. `old_string` must be the file's exact text and occur once, unless `replace_all` is set. Line numbers from Read are not part of the text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Absolute path of the file.
    #[schemars(extend("format" = "path"))]
    file_path: String,
    /// The text to replace.
    old_string: String,
    /// The new text; may be empty.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

pub(super) struct Edit;

impl Tool for Edit {
    const NAME: &'static str = "Edit";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write, EffectKind::Read];
    const HAS_PREVIEW: bool = true;
    type Input = Input;
    type Plan = (PathBuf, Input);

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<(PathBuf, Input)>, ToolError> {
        let invalid = |message: &str| Err(ToolError::invalid_arguments(message));
        if input.old_string.is_empty() {
            return invalid("old_string: it is empty; to make a new file use Write");
        }
        if input.old_string == input.new_string {
            return invalid("new_string: it is the same as old_string; there is nothing to change");
        }
        let path = at.only_absolute("file_path", &input.file_path)?;
        let effects = [Effect::Write { path: path.clone() }, Effect::Read { path: path.clone() }];
        Ok(Planned::new(effects, (path, input)))
    }

    fn perform(&self, (path, input): (PathBuf, Input), world: &dyn World) -> Result<Output, ToolError> {
        let replacement = Replacement {
            old: &input.old_string,
            new: &input.new_string,
            occurrence: if input.replace_all { Occurrence::All } else { Occurrence::UniqueOrAll },
            field: "old_string",
        };
        let (written, edited) = edit_file(world, &path, "Write", &replacement)?;
        let count = edited.spans.len();
        let diff = hunks(&edited.old_text, &edited.spans, MAX_HUNKS);
        let times = if count == 1 { String::new() } else { format!(" ({count} replacements)") };
        let mut text = format!("Edited {}{times}{}\n", written.path.display(), edited.notes());
        text.extend(diff.iter().map(Hunk::to_text));
        Ok(Output::text(text).with_structured(json!({
            "filePath": path_to_text(&written.path),
            "replacements": count,
            "structuredPatch": diff.iter().map(Hunk::to_json).collect::<Vec<Value>>(),
        })))
    }
}
