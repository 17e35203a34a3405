//! The World of one call on this machine.

use std::sync::{Arc, OnceLock};

use haft_tool::{
    Cancel, Files, Finished, Host, Http, Planning, Processes, Progress, Record, RunRequest, Sandbox, Scope,
    Tasks, ToolError, Value, World,
};

use haft_files::{LocalFiles, Root};
use haft_net::http::{HttpClient, HttpService};
use haft_sandbox::{Desk, Enclosure, Environment, LocalProcesses, TaskRoom};

use crate::live_output::Live;

/// Who hears how far a call has come.
pub(crate) type Watcher = Arc<dyn Fn(Progress) + Send + Sync>;

/// The calls of a session read its tasks as one.
const SESSION: &str = "session";

/// What the Worlds of a session share.
pub(crate) struct Ground {
    /// Where its calls stand.
    pub(crate) planning: Planning,
    /// The roots of its scope, held open.
    pub(crate) roots: Arc<[Arc<Root>]>,
    /// What its commands see.
    pub(crate) environment: Arc<Environment>,
    /// What holds them.
    pub(crate) enclosure: Arc<Enclosure>,
    /// Where they live on.
    pub(crate) tasks: Arc<TaskRoom>,
    /// The network, as its tools reach it.
    pub(crate) http: Arc<HttpService>,
}

/// The World of one call on this machine.
///
/// What most calls do without is made when it is first asked for.
pub(crate) struct LocalWorld {
    ground: Arc<Ground>,
    scope: Arc<Scope>,
    files: LocalFiles,
    processes: OnceLock<ScopedProcesses>,
    tasks: OnceLock<Desk>,
    http: OnceLock<HttpClient>,
    host: Arc<dyn Host>,
    record: Arc<dyn Record>,
    cancel: Cancel,
    watcher: Option<Watcher>,
}

impl LocalWorld {
    /// The World that `scope` describes, on the session's ground; what it changes goes to `record`, and `host` runs its tools.
    pub(crate) fn new(
        ground: &Arc<Ground>,
        scope: Arc<Scope>,
        record: Arc<dyn Record>,
        host: Arc<dyn Host>,
        cancel: Cancel,
        watcher: Option<Watcher>,
    ) -> Self {
        let roots = Arc::clone(&ground.roots);
        let files = LocalFiles::new(Arc::clone(&scope), roots, Arc::clone(&record), cancel.clone());
        Self {
            ground: Arc::clone(ground),
            scope,
            files,
            processes: OnceLock::new(),
            tasks: OnceLock::new(),
            http: OnceLock::new(),
            host,
            record,
            cancel,
            watcher,
        }
    }

    fn local_processes(&self) -> LocalProcesses {
        let environment = Arc::clone(&self.ground.environment);
        let local = LocalProcesses::new(self.scope.workspace.clone(), environment, self.cancel.clone());
        if self.scope.sandbox == Sandbox::Off {
            return local;
        }
        let enclosure = Arc::clone(&self.ground.enclosure);
        local.held(enclosure, Arc::clone(&self.scope), Arc::clone(&self.record))
    }
}

impl World for LocalWorld {
    fn planning(&self) -> &Planning {
        &self.ground.planning
    }

    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn processes(&self) -> &dyn Processes {
        self.processes.get_or_init(|| ScopedProcesses {
            runs: self.scope.runs,
            local: self.local_processes(),
            unwatched: (self.scope.sandbox == Sandbox::Off).then(|| Arc::clone(&self.record)),
            watcher: self.watcher.clone(),
        })
    }

    fn tasks(&self) -> &dyn Tasks {
        self.tasks.get_or_init(|| Desk {
            room: Arc::clone(&self.ground.tasks),
            record: Arc::clone(&self.record),
            processes: self.scope.runs.then(|| self.local_processes()),
            reader: SESSION.to_owned(),
            cancel: self.cancel.clone(),
        })
    }

    fn http(&self) -> &dyn Http {
        self.http.get_or_init(|| {
            HttpClient::new(Arc::clone(&self.ground.http), self.scope.reach.clone(), self.cancel.clone())
        })
    }

    fn host(&self) -> &dyn Host {
        self.host.as_ref()
    }

    fn note(&self, name: &str) -> Result<Option<Value>, ToolError> {
        self.record.note(name)
    }

    fn set_note(&self, name: &str, value: Value) {
        self.record.set_note(name, value);
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
    unwatched: Option<Arc<dyn Record>>,
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
