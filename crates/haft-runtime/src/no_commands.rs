//! Replaces `commands.rs` in builds without the feature `sandbox`: commands and tasks are errors.

use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_tool::{
    Change, CommandChanges, Denial, Finished, Processes, Record, RunRequest, Scope, TaskClass, TaskInfo,
    TaskRead, Tasks, ToolError,
};

use crate::world::LocalWorld;

/// Without commands there are no temporary directories of sessions.
pub(crate) fn private_temp_directory() -> Option<PathBuf> {
    None
}

/// Git's configuration is not read in builds without commands.
pub(crate) fn leading_to(_path: &Path, _roots: &[PathBuf]) -> Option<PathBuf> {
    None
}

/// The same.
pub(crate) struct FilesInEffect;

impl FilesInEffect {
    pub(crate) fn find(_roots: &[PathBuf]) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the same signature as with the feature")]
    #[expect(clippy::unnecessary_wraps, reason = "the same signature as with the feature")]
    pub(crate) fn newly_unjudged(&self, _record: &dyn Record) -> Result<Option<PathBuf>, ToolError> {
        Ok(None)
    }
}

/// Nothing is judged in builds without commands.
pub(crate) fn restore_guarded_changes(
    _command: &CommandChanges,
    _changes: &[Change],
    _scope: &Scope,
    _record: &dyn Record,
    _started_at: u64,
) -> Vec<Denial> {
    Vec::new()
}

#[derive(Default)]
pub(crate) struct CommandOptions;

pub(crate) struct SessionCommands;

impl SessionCommands {
    pub(crate) fn new(_options: CommandOptions, _home: &Path, _workspace_reads: bool) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the same signature as with the feature")]
    pub(crate) fn end_all(&self) {}

    #[expect(clippy::unused_self, reason = "the same signature as with the feature")]
    pub(crate) fn session_path(&self, _path: &Path) -> Option<PathBuf> {
        None
    }

    #[expect(clippy::unused_self, reason = "the same signature as with the feature")]
    pub(crate) fn clear_directories(&self) {}
}

#[derive(Default)]
pub(crate) struct CallCommands {}

impl CallCommands {
    pub(crate) fn processes(&self, _world: &LocalWorld) -> &dyn Processes {
        self
    }

    pub(crate) fn tasks(&self, _world: &LocalWorld) -> &dyn Tasks {
        self
    }
}

fn unavailable<T>() -> Result<T, ToolError> {
    Err(ToolError::failed("Commands cannot run: this build of Haft has no sandbox (feature `sandbox`)"))
}

impl Processes for CallCommands {
    fn run(&self, _request: &RunRequest) -> Result<Finished, ToolError> {
        unavailable()
    }
}

impl Tasks for CallCommands {
    fn start(&self, _: &RunRequest, _: &str, _: TaskClass) -> Result<TaskInfo, ToolError> {
        unavailable()
    }

    fn read(&self, _: &str, _: Option<Duration>, _: usize) -> Result<TaskRead, ToolError> {
        unavailable()
    }

    fn stop(&self, _: &str) -> Result<TaskInfo, ToolError> {
        unavailable()
    }

    fn list(&self) -> Vec<TaskInfo> {
        Vec::new()
    }
}
