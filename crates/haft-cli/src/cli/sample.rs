//! A temporary project for `haft doctor` and `haft demo`.

use haft_runtime::Runtime;
use haft_tool::ToolError;
use tempfile::TempDir;

/// An empty workspace with its own ledger and the tools of `claude`. `Bash` needs no approval; every other question is denied.
pub(super) struct SampleProject {
    pub(super) runtime: Runtime,
    pub(super) home: TempDir,
    workspace: TempDir,
}

impl SampleProject {
    pub(super) fn new(entry_point: &'static str) -> Result<Self, ToolError> {
        let directory =
            || tempfile::tempdir().map_err(|error| ToolError::io("create a temporary directory", &error));
        let (workspace, home) = (directory()?, directory()?);
        let runtime = runtime(&workspace, &home, entry_point)?;
        Ok(Self { runtime, home, workspace })
    }

    /// Another session in the same project.
    pub(super) fn sibling(&self, entry_point: &'static str) -> Result<Runtime, ToolError> {
        runtime(&self.workspace, &self.home, entry_point)
    }
}

fn runtime(workspace: &TempDir, home: &TempDir, entry_point: &'static str) -> Result<Runtime, ToolError> {
    Runtime::builder()
        .workspace(workspace.path())
        .home(home.path())
        .entry_point(entry_point)
        .dialect(haft::claude())
        .allow("Bash", format!("haft {entry_point}"))
        .build()
}
