//! `NotebookEdit`: replaces, inserts or deletes a cell of a notebook.

use std::path::PathBuf;

use haft_tool::path_to_text;
use haft_tool::prelude::*;

use crate::ops::edit::update_existing;
use crate::ops::notebook::{CellChange, CellType, EditedNotebook, edit};

/// Change one cell of a Jupyter notebook. Read shows the cells and their ids; cells without an id are `cell-0`, `cell-1`, …
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Absolute path of the notebook.
    #[schemars(extend("format" = "path"))]
    notebook_path: String,
    /// The cell's new source; ignored by delete.
    new_source: String,
    /// The cell; insert puts the new one after it, or first if none is given.
    cell_id: Option<String>,
    /// Needed by insert.
    cell_type: Option<CellType>,
    #[serde(default)]
    edit_mode: CellEditMode,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CellEditMode {
    #[default]
    Replace,
    Insert,
    Delete,
}

impl Input {
    fn change(&self) -> Result<CellChange<'_>, ToolError> {
        let missing = |message: &str| ToolError::invalid_arguments(message);
        let cell = self
            .cell_id
            .as_deref()
            .ok_or_else(|| missing("cell_id: it is needed to replace or delete a cell; Read shows the ids"));
        let source = self.new_source.as_str();
        Ok(match self.edit_mode {
            CellEditMode::Replace => CellChange::Replace { cell: cell?, source, to: self.cell_type },
            CellEditMode::Delete => CellChange::Delete { cell: cell? },
            CellEditMode::Insert => {
                let needed = || missing("cell_type: it is needed to insert a cell: code or markdown");
                let kind = self.cell_type.ok_or_else(needed)?;
                CellChange::Insert { after: self.cell_id.as_deref(), source, kind }
            }
        })
    }
}

pub(super) struct NotebookEdit;

impl Tool for NotebookEdit {
    const NAME: &'static str = "NotebookEdit";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write, EffectKind::Read];
    const HAS_PREVIEW: bool = true;
    type Input = Input;
    type Plan = (PathBuf, Input);

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<(PathBuf, Input)>, ToolError> {
        input.change()?;
        let path = at.only_absolute("notebook_path", &input.notebook_path)?;
        let effects = [Effect::Write { path: path.clone() }, Effect::Read { path: path.clone() }];
        Ok(Planned::new(effects, (path, input)))
    }

    fn perform(&self, (path, input): (PathBuf, Input), world: &dyn World) -> Result<Output, ToolError> {
        let change = input.change()?;
        let name = path.display().to_string();
        let (written, edited) = update_existing(world, &path, "Write", |bytes| edit(bytes, &name, change))?;
        let EditedNotebook { cell, kind, language } = edited;
        let did = match (input.edit_mode, &input.cell_id) {
            (CellEditMode::Replace, _) => format!("Replaced {kind} cell {cell}"),
            (CellEditMode::Delete, _) => format!("Deleted {kind} cell {cell}"),
            (CellEditMode::Insert, Some(after)) => format!("Inserted {kind} cell {cell} after {after}"),
            (CellEditMode::Insert, None) => format!("Inserted {kind} cell {cell} as the first"),
        };
        Ok(Output::text(format!("{did} in {}", written.path.display())).with_structured(json!({
            "notebook_path": path_to_text(&written.path), "cell_id": cell, "cell_type": kind,
            "language": language, "edit_mode": input.edit_mode, "new_source": input.new_source,
        })))
    }
}
