//! A change of a settings file: shown, confirmed if the file is not Haft's own, and made by a call, so that it is recorded
//! and can be undone.

use std::path::PathBuf;
use std::sync::Arc;

use haft_files::{hash, read_named, real_named};
use haft_runtime::CallOptions;
use haft_tool::{
    AnyTool, Call, Change, Definition, Effect, EffectKind, ErrorKind, FileNode, JsonSchema, Node, Output,
    Perform, Planned, Planning, RestorePlan, RestoreStep, ToolError, Value, World, json,
};
use serde::Deserialize;

use super::super::super::args::WorkspaceArgs;
use super::super::super::diff::{FileDiff, diff};
use super::super::super::exit::{CliExit, code};
use super::super::super::screen::{self, GOOD, escape, styled};
use super::super::super::{CommandResult, terminal};
use super::super::args::ConfirmArgs;

/// Largest settings file; Claude's file contains a history.
const MAX_SETTINGS_BYTES: u64 = 64 << 20;

/// Returns the new text of a file; `None` if nothing changes.
pub(super) type EditText = Box<dyn Fn(Option<&str>) -> Result<Option<String>, ToolError> + Send + Sync>;

/// One change of one file.
pub(super) struct FileEdit {
    /// The name of the call in the ledger.
    pub(super) tool: &'static str,
    pub(super) file: PathBuf,
    /// The setting, if the file is the user's haft.toml.
    pub(super) setting: Option<String>,
    /// The entry that is changed.
    pub(super) entry: String,
    /// The message after the change.
    pub(super) done: String,
    /// Whether the file is removed if nothing is left in it.
    pub(super) removes_empty: bool,
    pub(super) edit_text: EditText,
}

impl FileEdit {
    /// Shows the change, asks, and makes it.
    pub(super) fn run(self, workspace: &WorkspaceArgs, how: ConfirmArgs) -> CommandResult {
        Self::run_all(vec![self], workspace, how, || Ok(()))
    }

    /// The same for several files, with one question for all. `prepare` is called before the first change.
    pub(super) fn run_all(
        edits: Vec<Self>,
        workspace: &WorkspaceArgs,
        how: ConfirmArgs,
        prepare: impl FnOnce() -> Result<(), ToolError>,
    ) -> CommandResult {
        let mut changing = Vec::new();
        for edit in edits {
            if edit.show()? {
                changing.push(edit);
            }
        }
        if changing.is_empty() {
            screen::note("nothing to do");
            return Ok(CliExit::Done);
        }
        if how.dry_run {
            return Ok(CliExit::Done);
        }
        let asks = changing.iter().any(|edit| edit.setting.is_none()) && !how.yes;
        let files: Vec<String> =
            changing.iter().map(|edit| escape(&edit.file.display().to_string())).collect();
        if asks && !terminal::confirm_change(&format!("Change {}?", files.join(" and "))) {
            return Ok(CliExit::Denied);
        }
        prepare()?;
        for edit in changing {
            match edit.perform(workspace)? {
                CliExit::Done => {}
                failed => return Ok(failed),
            }
        }
        Ok(CliExit::Done)
    }

    /// Shows the change; returns whether there is one.
    fn show(&self) -> Result<bool, ToolError> {
        let old = match read_named(&self.file, MAX_SETTINGS_BYTES) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind == ErrorKind::FileNotFound => None,
            Err(error) => return Err(error),
        };
        let Some(new) = self.applied(old.as_deref())? else { return Ok(false) };
        let path = escape(&self.file.display().to_string());
        let new = Some(new).filter(|new| !self.is_removal(new));
        screen::out(&diff(&FileDiff {
            path: &path,
            from: (&node(old.as_deref()), old.as_deref()),
            to: (&node(new.as_deref()), new.as_deref()),
        }));
        Ok(true)
    }

    fn is_removal(&self, new: &[u8]) -> bool {
        self.removes_empty && new.is_empty()
    }

    /// The new content of the file; `None` if it would not change.
    fn applied(&self, old: Option<&[u8]>) -> Result<Option<Vec<u8>>, ToolError> {
        let place = self.file.display();
        let text = old.map(std::str::from_utf8).transpose();
        let text =
            text.map_err(|_| ToolError::failed(format!("{place} is not UTF-8; nothing was changed")))?;
        let new = (self.edit_text)(text).map_err(|error| {
            // An error in the file must be fixed there first.
            let hint = if error.kind == ErrorKind::ExecutionFailed { " Fix it first." } else { "" };
            let message = format!("{place}: {}. Nothing was changed.{hint}", error.message);
            error.with_message(message)
        })?;
        Ok(new.filter(|new| Some(new.as_str()) != text).map(String::into_bytes))
    }

    fn perform(self, workspace: &WorkspaceArgs) -> CommandResult {
        let origin = "the command line";
        let mut builder = workspace.builder()?;
        builder = match &self.setting {
            Some(_) => builder.allow(format!("{}(tools.mcp_servers.*)", self.tool), origin),
            None => builder.grant(self.tool, &self.file, origin),
        };
        let runtime = builder.build()?;
        let arguments = json!({"file": self.file, "entry": self.entry});
        let call = Call::new("call_1", self.tool, arguments);
        let options = CallOptions { tool: Some(Arc::new(self)), ..CallOptions::default() };
        let result = runtime.run_blocking(call, options);
        let (text, id) = (escape(&result.output.as_text()), result.receipt.id);
        match result.output.error_kind {
            None => {
                screen::note(&styled(GOOD, &format!("{text} (call {id}; to undo it: haft undo {id})")));
                Ok(CliExit::Done)
            }
            Some(kind) => {
                screen::error(&text);
                Ok(code(kind))
            }
        }
    }
}

/// Change one entry of a settings file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file.
    #[expect(dead_code, reason = "kept in the receipt; values may be secret, so the entry itself is not")]
    file: String,
    /// The entry's name.
    #[expect(dead_code, reason = "kept in the receipt; values may be secret, so the entry itself is not")]
    entry: String,
}

impl AnyTool for FileEdit {
    fn name(&self) -> &str {
        self.tool
    }

    fn effects(&self) -> &[EffectKind] {
        &[EffectKind::Configure, EffectKind::Write]
    }

    fn definition(&self) -> Definition {
        Definition::of::<Input>(self.tool, self.effects())
    }

    fn plan(self: Arc<Self>, _arguments: Value, _at: &Planning) -> Result<Planned<Perform>, ToolError> {
        let effect = match &self.setting {
            Some(setting) => Effect::Configure { setting: setting.clone(), value: None },
            None => Effect::Write { path: self.file.clone() },
        };
        Ok(Planned::new([effect], Box::new(move |world| self.write(world))))
    }
}

impl FileEdit {
    fn write(&self, world: &dyn World) -> Result<Output, ToolError> {
        if self.removes_empty {
            let old = read_named(&self.file, MAX_SETTINGS_BYTES)?;
            if self.applied(Some(&old))?.is_some_and(|new| self.is_removal(&new)) {
                return self.remove(&old, world);
            }
        }
        world.files().update(&self.file, &mut |old| {
            let new = self.applied(old)?;
            Ok(new.unwrap_or_else(|| old.unwrap_or_default().to_vec()))
        })?;
        Ok(Output::text(self.done.as_str()))
    }
}

impl FileEdit {
    /// Removes the file, unless it has changed since `old` was read.
    fn remove(&self, old: &[u8], world: &dyn World) -> Result<Output, ToolError> {
        let before = world.files().observe(&self.file)?;
        if !matches!(&before, Node::File(file) if file.hash == hash(old)) {
            let why = format!("{} has changed meanwhile; nothing was changed", self.file.display());
            return Err(ToolError::new(ErrorKind::Conflict, why));
        }
        let (path, expect, to) = (self.file.clone(), before.clone(), Node::Absent);
        let change = Change::new(path.clone(), before, Node::Absent);
        let plan = RestorePlan { steps: vec![RestoreStep::Set { path, expect, to }], changes: vec![change] };
        let no_content = |_: &FileNode| Err(ToolError::internal("a removal restores no content"));
        world.files().restore(&plan, &no_content)?;
        Ok(Output::text(self.done.as_str()))
    }
}

/// A file of the project; a symbolic link must not lead out of it.
pub(super) fn in_project(workspace: &WorkspaceArgs, name: &str) -> Result<PathBuf, ToolError> {
    let folder = real_named(&workspace.folder()?)?;
    let file = real_named(&folder.join(name))?;
    if file.starts_with(&folder) {
        return Ok(file);
    }
    Err(ToolError::invalid_path(format!(
        "{} leads out of the workspace, to {}. Nothing was changed",
        folder.join(name).display(),
        file.display()
    )))
}

fn node(bytes: Option<&[u8]>) -> Node {
    let Some(bytes) = bytes else { return Node::Absent };
    Node::File(FileNode {
        hash: hash(bytes),
        size: bytes.len() as u64,
        mode: 0o644,
        owner: None,
        xattrs: Vec::new(),
        linked: None,
        modified: None,
    })
}
