//! `NotebookEdit`: one cell of a notebook replaced, added or removed.

use std::path::PathBuf;

use haft_tool::{
    Effect, EffectKind, ErrorKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, World, json,
    path_to_text,
};
use serde::{Deserialize, Serialize};

use crate::ops::notebook::{CellType, Change, Edited, edit};

/// Change one cell of a Jupyter notebook. Read shows the cells and their ids; cells without an id are `cell-0`, `cell-1`, …
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Absolute path of the notebook.
    notebook_path: String,
    /// The cell's new source; ignored by delete.
    new_source: String,
    /// The cell; insert puts the new one behind it, or first if none is given.
    cell_id: Option<String>,
    /// Needed by insert.
    cell_type: Option<CellType>,
    #[serde(default)]
    edit_mode: Mode,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Replace,
    Insert,
    Delete,
}

impl Input {
    fn change(&self) -> Result<Change<'_>, ToolError> {
        let cell = || {
            self.cell_id.as_deref().ok_or_else(|| {
                ToolError::invalid_arguments(
                    "cell_id: it is needed to replace or delete a cell; Read shows the ids",
                )
            })
        };
        let source = self.new_source.as_str();
        Ok(match self.edit_mode {
            Mode::Replace => Change::Replace { cell: cell()?, source, to: self.cell_type },
            Mode::Delete => Change::Delete { cell: cell()? },
            Mode::Insert => {
                let kind = self.cell_type.ok_or_else(|| {
                    ToolError::invalid_arguments("cell_type: it is needed to insert a cell: code or markdown")
                })?;
                Change::Insert { after: self.cell_id.as_deref(), source, kind }
            }
        })
    }
}

pub(super) struct NotebookEdit;

/// A checked input and its resolved path.
pub(super) struct NotebookPlan {
    path: PathBuf,
    input: Input,
}

impl Tool for NotebookEdit {
    const NAME: &'static str = "NotebookEdit";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    type Input = Input;
    type Plan = NotebookPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<NotebookPlan>, ToolError> {
        input.change()?;
        let path = at.only_absolute("notebook_path", &input.notebook_path)?;
        Ok(Planned::new([Effect::Write { path: path.clone() }], NotebookPlan { path, input }))
    }

    fn perform(&self, plan: NotebookPlan, world: &dyn World) -> Result<Output, ToolError> {
        let NotebookPlan { path, input } = plan;
        let change = input.change()?;
        let what = path.display().to_string();
        let mut done: Option<Edited> = None;
        let written = world.files().update(&path, &mut |current| {
            let Some(bytes) = current else {
                let message = format!("{what} does not exist; to make a new notebook use Write");
                return Err(ToolError::new(ErrorKind::FileNotFound, message));
            };
            let mut edited = edit(bytes, &what, change)?;
            let bytes = std::mem::take(&mut edited.bytes);
            done = Some(edited);
            Ok(bytes)
        })?;
        let Some(Edited { cell, kind, language, .. }) = done else {
            return Err(ToolError::internal("the edit was not made"));
        };
        let did = match (input.edit_mode, &input.cell_id) {
            (Mode::Replace, _) => format!("Replaced {kind} cell {cell}"),
            (Mode::Delete, _) => format!("Deleted {kind} cell {cell}"),
            (Mode::Insert, Some(after)) => format!("Inserted {kind} cell {cell} behind {after}"),
            (Mode::Insert, None) => format!("Inserted {kind} cell {cell} as the first"),
        };
        Ok(Output::text(format!("{did} in {}", written.path.display())).with_structured(json!({
            "notebook_path": path_to_text(&written.path),
            "cell_id": cell,
            "cell_type": kind,
            "language": language,
            "edit_mode": input.edit_mode,
            "new_source": input.new_source,
        })))
    }
}
