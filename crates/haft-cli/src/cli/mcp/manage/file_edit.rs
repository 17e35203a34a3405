//! A change of a settings file: shown, confirmed if the file is not Haft's own, and made by a call, so that it is recorded
//! and can be undone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_files::{hash, names_in, read_named, real_named};
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

/// Returns the new text of a file from the old one; `None` if there is no file.
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
    /// Directories that go with the file if they hold nothing else, the innermost first.
    pub(super) directories: Vec<PathBuf>,
    pub(super) edit_text: EditText,
}

impl FileEdit {
    /// Shows the change, asks, and makes it.
    pub(super) fn run(self, workspace: &WorkspaceArgs, how: ConfirmArgs) -> CommandResult {
        Self::run_all(vec![self], workspace, how, || Ok(())).map(|exit| exit.unwrap_or(CliExit::Done))
    }

    /// The same for several files, with one question for all; `None` if there was nothing to do. `prepare` is called before the
    /// first change.
    pub(super) fn run_all(
        edits: Vec<Self>,
        workspace: &WorkspaceArgs,
        how: ConfirmArgs,
        prepare: impl FnOnce() -> Result<(), ToolError>,
    ) -> Result<Option<CliExit>, ToolError> {
        let mut changing = Vec::new();
        for edit in edits {
            if edit.show()? {
                changing.push(edit);
            }
        }
        if changing.is_empty() {
            screen::note("nothing to do");
            return Ok(None);
        }
        if how.dry_run {
            return Ok(Some(CliExit::Done));
        }
        let asks = changing.iter().any(|edit| edit.setting.is_none()) && !how.yes;
        let files: Vec<String> =
            changing.iter().map(|edit| escape(&edit.file.display().to_string())).collect();
        if asks && !terminal::confirm_change(&format!("Change {}?", files.join(" and "))) {
            return Ok(Some(CliExit::Denied));
        }
        prepare()?;
        for edit in changing {
            match edit.perform(workspace)? {
                CliExit::Done => {}
                failed => return Ok(Some(failed)),
            }
        }
        Ok(Some(CliExit::Done))
    }

    /// Shows the change; returns whether there is one.
    fn show(&self) -> Result<bool, ToolError> {
        let old = read_settings(&self.file)?;
        let new = self.applied(old.as_deref())?;
        if new == old {
            return Ok(false);
        }
        let path = escape(&self.file.display().to_string());
        screen::out(&diff(&FileDiff {
            path: &path,
            from: (&node(old.as_deref()), old.as_deref()),
            to: (&node(new.as_deref()), new.as_deref()),
        }));
        Ok(true)
    }

    /// The new content of the file; `None` if there is none.
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
        Ok(new.map(String::into_bytes))
    }

    fn perform(self, workspace: &WorkspaceArgs) -> CommandResult {
        let origin = "the command line";
        let mut builder = workspace.builder()?;
        builder = match &self.setting {
            Some(_) => builder.allow(format!("{}(tools.mcp_servers.*)", self.tool), origin),
            None => self.paths().fold(builder, |builder, path| builder.grant(self.tool, path, origin)),
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
        let effects: Vec<Effect> = match &self.setting {
            Some(setting) => vec![Effect::Configure { setting: setting.clone(), value: None }],
            None => self.paths().map(|path| Effect::Write { path: path.to_owned() }).collect(),
        };
        Ok(Planned::new(effects, Box::new(move |world| self.write(world))))
    }
}

impl FileEdit {
    /// The file, and the directories that may go with it.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.file).chain(&self.directories).map(PathBuf::as_path)
    }

    fn write(&self, world: &dyn World) -> Result<Output, ToolError> {
        if let Some(old) = read_settings(&self.file)?
            && self.applied(Some(&old))?.is_none()
        {
            return self.remove(&old, world);
        }
        world.files().update(&self.file, &mut |old| {
            let new = self.applied(old)?;
            Ok(new.unwrap_or_else(|| old.unwrap_or_default().to_vec()))
        })?;
        Ok(Output::text(self.done.as_str()))
    }

    /// Removes the file, unless it has changed since `old` was read, and the directories that hold nothing else.
    fn remove(&self, old: &[u8], world: &dyn World) -> Result<Output, ToolError> {
        let is_last = |(path, directory): &(&Path, &PathBuf)| matches!(names_in(directory, 2).as_slice(), [only] if Some(only.as_os_str()) == path.file_name());
        let emptied = self.paths().zip(&self.directories).take_while(is_last).count();
        let mut plan = RestorePlan::default();
        for path in self.paths().take(1 + emptied) {
            let before = world.files().observe(path)?;
            if path == self.file && !matches!(&before, Node::File(file) if file.hash == hash(old)) {
                let why = format!("{} has changed meanwhile; nothing was changed", path.display());
                return Err(ToolError::new(ErrorKind::Conflict, why));
            }
            let (path, to) = (path.to_owned(), Node::Absent);
            plan.changes.push(Change::new(path.clone(), before.clone(), Node::Absent));
            plan.steps.push(RestoreStep::Set { path, expect: before, to });
        }
        let no_content = |_: &FileNode| Err(ToolError::internal("a removal restores no content"));
        world.files().restore(&plan, &no_content)?;
        Ok(Output::text(self.done.as_str()))
    }
}

/// The content of a settings file; `None` if there is no file.
pub(super) fn read_settings(file: &Path) -> Result<Option<Vec<u8>>, ToolError> {
    match read_named(file, MAX_SETTINGS_BYTES) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind == ErrorKind::FileNotFound => Ok(None),
        Err(error) => Err(error),
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
