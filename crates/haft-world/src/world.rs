//! The World of one call on this machine.

use std::sync::Arc;

use haft_tool::{
    Cancel, Files, Finished, Planning, Processes, Progress, RunRequest, Sandbox, Scope, ToolError, World,
};

use crate::process::{Environment, LocalProcesses};
use crate::{Enclosure, Journal, LocalFiles, Root};

/// Who hears how far a call has come.
pub type Watcher = Arc<dyn Fn(Progress) + Send + Sync>;

/// The World of one call on this machine.
pub struct LocalWorld {
    planning: Planning,
    files: LocalFiles,
    processes: ScopedProcesses,
    cancel: Cancel,
    watcher: Option<Watcher>,
}

impl LocalWorld {
    /// The World that `scope` describes; `roots` are its roots, held open.
    pub fn new(
        scope: &Arc<Scope>,
        roots: Vec<Arc<Root>>,
        planning: Planning,
        journal: Arc<dyn Journal>,
        environment: Arc<Environment>,
        enclosure: Arc<Enclosure>,
        cancel: Cancel,
        watcher: Option<Watcher>,
    ) -> Self {
        let files = LocalFiles::new(Arc::clone(scope), roots, Arc::clone(&journal), cancel.clone());
        let mut local = LocalProcesses::new(scope.workspace.clone(), environment, cancel.clone());
        if scope.sandbox == Sandbox::On {
            local = local.held(enclosure, Arc::clone(scope), journal);
        }
        let processes = ScopedProcesses { runs: scope.runs, local };
        Self { planning, files, processes, cancel, watcher }
    }
}

impl World for LocalWorld {
    fn planning(&self) -> &Planning {
        &self.planning
    }

    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn processes(&self) -> &dyn Processes {
        &self.processes
    }

    fn progress(&self, progress: Progress) {
        if let Some(watcher) = &self.watcher {
            watcher(progress);
        }
    }

    fn cancelled(&self) -> &Cancel {
        &self.cancel
    }
}

/// Processes for calls that declared that they would run one.
struct ScopedProcesses {
    runs: bool,
    local: LocalProcesses,
}

impl Processes for ScopedProcesses {
    fn run(&self, request: &RunRequest) -> Result<Finished, ToolError> {
        if self.runs {
            self.local.run(request)
        } else {
            Err(ToolError::denied("this call may not start processes"))
        }
    }
}
