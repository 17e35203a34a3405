//! The World of one call on this machine.

use std::sync::Arc;

use haft_tool::{
    Cancel, Files, Finished, Host, Http, Notes, Planning, Processes, Progress, RunRequest, Sandbox, Scope,
    Tasks, ToolError, World,
};

use crate::http::{Door, Web};
use crate::live::Live;
use crate::process::{Environment, LocalProcesses};
use crate::tasks::{Desk, TaskBook, TaskRoom};
use crate::{Enclosure, Journal, LocalFiles, Root};

/// Who hears how far a call has come.
pub type Watcher = Arc<dyn Fn(Progress) + Send + Sync>;

/// The calls of a session read its tasks as one.
const SESSION: &str = "session";

/// What the Worlds of a session share.
pub struct Ground {
    /// Where its calls stand.
    pub planning: Planning,
    /// The roots of its scope, held open.
    pub roots: Vec<Arc<Root>>,
    /// What its commands see.
    pub environment: Arc<Environment>,
    /// What holds them.
    pub enclosure: Arc<Enclosure>,
    /// Where they live on.
    pub tasks: Arc<TaskRoom>,
    /// The network, as its tools reach it.
    pub web: Arc<Web>,
    /// Whoever runs its tools.
    pub host: Arc<dyn Host>,
}

/// The World of one call on this machine.
pub struct LocalWorld {
    planning: Planning,
    files: LocalFiles,
    processes: ScopedProcesses,
    tasks: Desk,
    http: Door,
    host: Arc<dyn Host>,
    notes: Arc<dyn Notes>,
    cancel: Cancel,
    watcher: Option<Watcher>,
}

impl LocalWorld {
    /// The World that `scope` describes, on the session's ground; what it changes goes to `page`.
    pub fn new<Page: Journal + TaskBook + Notes + 'static>(
        ground: Ground,
        scope: &Arc<Scope>,
        page: &Arc<Page>,
        cancel: Cancel,
        watcher: Option<Watcher>,
    ) -> Self {
        let Ground { planning, roots, environment, enclosure, tasks: room, web, host } = ground;
        let journal: Arc<dyn Journal> = Arc::<Page>::clone(page);
        let files = LocalFiles::new(Arc::clone(scope), roots, Arc::clone(&journal), cancel.clone());
        let mut local = LocalProcesses::new(scope.workspace.clone(), environment, cancel.clone());
        if scope.sandbox == Sandbox::On {
            local = local.held(enclosure, Arc::clone(scope), Arc::clone(&journal));
        }
        let tasks = Desk {
            room,
            book: Arc::<Page>::clone(page),
            processes: scope.runs.then(|| local.clone()),
            reader: SESSION.to_owned(),
            cancel: cancel.clone(),
        };
        let http = Door::new(web, scope.reach.clone(), cancel.clone());
        let unwatched = (scope.sandbox == Sandbox::Off).then_some(journal);
        let processes = ScopedProcesses { runs: scope.runs, local, unwatched, watcher: watcher.clone() };
        let notes: Arc<dyn Notes> = Arc::<Page>::clone(page);
        Self { planning, files, processes, tasks, http, host, notes, cancel, watcher }
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

    fn tasks(&self) -> &dyn Tasks {
        &self.tasks
    }

    fn http(&self) -> &dyn Http {
        &self.http
    }

    fn host(&self) -> &dyn Host {
        self.host.as_ref()
    }

    fn notes(&self) -> &dyn Notes {
        self.notes.as_ref()
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
    /// Who is told of commands that nobody watches.
    unwatched: Option<Arc<dyn Journal>>,
    /// Who sees what a command writes while it runs.
    watcher: Option<Watcher>,
}

impl Processes for ScopedProcesses {
    fn run(&self, request: &RunRequest) -> Result<Finished, ToolError> {
        if self.runs {
            if let Some(journal) = &self.unwatched {
                journal.enforced("off: nobody held the command to its scope".to_owned());
                journal.not_reversible("what the command changed was not watched".to_owned());
            }
            match &self.watcher {
                Some(watcher) if !request.inherit => {
                    let live = Live::to(watcher);
                    self.local.run_heard(request, &|bytes| live.hear(bytes))
                }
                _ => self.local.run(request),
            }
        } else {
            Err(ToolError::denied("this call may not start processes"))
        }
    }
}
