//! A change of a settings file: shown, confirmed if the file is not Haft's own, and made by a call, so that it is recorded
//! and can be undone.

use std::path::PathBuf;
use std::sync::Arc;

use haft_files::{hash, read_named, real_named};
use haft_runtime::CallOptions;
use haft_tool::{
    AnyTool, Call, Definition, Effect, EffectKind, ErrorKind, FileNode, JsonSchema, Node, Output, Perform,
    Planned, Planning, ToolError, Value, World, json,
};
use serde::Deserialize;

use super::super::super::args::Workspace;
use super::super::super::diff::{Sides, diff};
use super::super::super::exit::{Exit, code};
use super::super::super::screen::{self, GOOD, painted, visible};
use super::super::super::{Done, terminal};
use super::super::args::Change;

/// No settings are longer than this; Claude's hold a history.
const MOST_BYTES: u64 = 64 << 20;

/// Makes the new text of a file of the old one; nothing if there is nothing to change. The error says why it cannot be done.
pub(super) type Splice = Box<dyn Fn(Option<&str>) -> Result<Option<String>, ToolError> + Send + Sync>;

/// One change of one file.
pub(super) struct Rewrite {
    /// What it is called in the ledger.
    pub(super) tool: &'static str,
    pub(super) file: PathBuf,
    /// The setting, if the file is the user's haft.toml.
    pub(super) setting: Option<String>,
    /// The entry that is changed.
    pub(super) entry: String,
    /// What was done, when it is done.
    pub(super) done: String,
    pub(super) splice: Splice,
}

impl Rewrite {
    /// Shows the change, asks, and makes it.
    pub(super) fn run(self, workspace: &Workspace, how: Change) -> Done {
        let old = match read_named(&self.file, MOST_BYTES) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind == ErrorKind::FileNotFound => None,
            Err(error) => return Err(error),
        };
        let Some(new) = self.applied(old.as_deref())? else {
            screen::note("it already is so; nothing to do");
            return Ok(Exit::Done);
        };
        let path = visible(&self.file.display().to_string());
        screen::out(&diff(&Sides {
            path: &path,
            from: (&node(old.as_deref()), old.as_deref()),
            to: (&node(Some(&new)), Some(&new)),
        }));
        if how.dry_run {
            return Ok(Exit::Done);
        }
        if self.setting.is_none() && !how.yes {
            let question = format!("Change {path}?");
            if !terminal::is_there() {
                screen::error(&format!("{question} Nobody is here to be asked; --yes says yes"));
                return Ok(Exit::Denied);
            }
            if !terminal::confirm(&question) {
                screen::note("nothing was changed");
                return Ok(Exit::Denied);
            }
        }
        self.perform(workspace)
    }

    /// The file's new bytes; nothing if they would be the old ones.
    fn applied(&self, old: Option<&[u8]>) -> Result<Option<Vec<u8>>, ToolError> {
        let place = self.file.display();
        let text = old.map(std::str::from_utf8).transpose();
        let text =
            text.map_err(|_| ToolError::failed(format!("{place} is not UTF-8, so it is left alone")))?;
        let new = (self.splice)(text).map_err(|error| {
            // What the file itself is to blame for has to be put right in it.
            let next = if error.kind == ErrorKind::ExecutionFailed { "; put that right first" } else { "" };
            let message = format!("{place}: {}{next}; nothing was changed", error.message);
            error.with_message(message)
        })?;
        Ok(new.filter(|new| Some(new.as_str()) != text).map(String::into_bytes))
    }

    fn perform(self, workspace: &Workspace) -> Done {
        let origin = "the command that was typed";
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
        let (text, id) = (visible(&result.output.as_text()), result.receipt.id);
        match result.output.error_kind {
            None => {
                screen::note(&painted(GOOD, &format!("{text} (call {id}; haft undo {id} takes this back)")));
                Ok(Exit::Done)
            }
            Some(kind) => {
                screen::error(&text);
                Ok(code(kind))
            }
        }
    }
}

/// Change one entry of a file of settings.
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

impl AnyTool for Rewrite {
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
            Some(setting) => Effect::Configure { setting: setting.clone() },
            None => Effect::Write { path: self.file.clone() },
        };
        Ok(Planned::new([effect], Box::new(move |world| self.write(world))))
    }
}

impl Rewrite {
    fn write(&self, world: &dyn World) -> Result<Output, ToolError> {
        world.files().update(&self.file, &mut |old| {
            let new = self.applied(old)?;
            Ok(new.unwrap_or_else(|| old.unwrap_or_default().to_vec()))
        })?;
        Ok(Output::text(self.done.as_str()))
    }
}

/// A file of the project, which must not lead out of it.
pub(super) fn in_project(workspace: &Workspace, name: &str) -> Result<PathBuf, ToolError> {
    let folder = real_named(&workspace.folder()?)?;
    let file = real_named(&folder.join(name))?;
    if file.starts_with(&folder) {
        return Ok(file);
    }
    Err(ToolError::invalid_path(format!(
        "{} leads out of the workspace, to {}; it is left alone",
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
    })
}
