//! The World of one call on this machine.

use std::sync::{Arc, OnceLock};

use haft_tool::{
    Cancel, Files, Finished, Host, Planning, Processes, Progress, Record, RunRequest, Sandbox, Scope, Tasks,
    ToolError, Value, World,
};

use haft_files::{LocalFiles, Root};
#[cfg(feature = "web")]
use haft_net::http::{HttpClient, HttpService};
use haft_sandbox::{CallTasks, Environment, LocalProcesses, SessionSandbox, TaskTable};

use crate::live_output::OutputReporter;

/// Receives the progress of a call.
pub(crate) type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// What the Worlds of a session share.
pub(crate) struct SessionEnv {
    /// The workspace.
    pub(crate) planning: Planning,
    /// The roots of its scope, as open directory handles.
    pub(crate) roots: Arc<[Arc<Root>]>,
    /// The environment variables of its commands.
    pub(crate) environment: Arc<Environment>,
    /// The sandbox of its commands.
    pub(crate) sandbox: Arc<SessionSandbox>,
    /// The background tasks.
    pub(crate) tasks: Arc<TaskTable>,
    /// HTTP for its tools.
    #[cfg(feature = "web")]
    pub(crate) http: Arc<HttpService>,
}

/// The World of one call on this machine.
///
/// Parts that most calls do not use are made on first use.
pub(crate) struct LocalWorld {
    env: Arc<SessionEnv>,
    scope: Arc<Scope>,
    files: LocalFiles,
    processes: OnceLock<ScopedProcesses>,
    tasks: OnceLock<CallTasks>,
    #[cfg(feature = "web")]
    http: OnceLock<HttpClient>,
    host: Arc<dyn Host>,
    record: Arc<dyn Record>,
    cancel: Cancel,
    progress_sink: Option<ProgressSink>,
}

impl LocalWorld {
    /// The World for `scope`; its changes go to `record`.
    pub(crate) fn new(
        env: &Arc<SessionEnv>,
        scope: Arc<Scope>,
        record: Arc<dyn Record>,
        host: Arc<dyn Host>,
        cancel: Cancel,
        progress_sink: Option<ProgressSink>,
    ) -> Self {
        let roots = Arc::clone(&env.roots);
        let files = LocalFiles::new(Arc::clone(&scope), roots, Arc::clone(&record), cancel.clone());
        Self {
            env: Arc::clone(env),
            scope,
            files,
            processes: OnceLock::new(),
            tasks: OnceLock::new(),
            #[cfg(feature = "web")]
            http: OnceLock::new(),
            host,
            record,
            cancel,
            progress_sink,
        }
    }

    fn local_processes(&self) -> LocalProcesses {
        let environment = Arc::clone(&self.env.environment);
        let local = LocalProcesses::new(self.scope.workspace.clone(), environment, self.cancel.clone());
        if self.scope.sandbox == Sandbox::Off {
            return local;
        }
        let sandbox = Arc::clone(&self.env.sandbox);
        local.sandboxed(sandbox, Arc::clone(&self.scope), Arc::clone(&self.record))
    }
}

impl World for LocalWorld {
    fn planning(&self) -> &Planning {
        &self.env.planning
    }

    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn processes(&self) -> &dyn Processes {
        self.processes.get_or_init(|| ScopedProcesses {
            runs: self.scope.runs,
            local: self.local_processes(),
            unsandboxed: (self.scope.sandbox == Sandbox::Off).then(|| Arc::clone(&self.record)),
            progress_sink: self.progress_sink.clone(),
        })
    }

    fn tasks(&self) -> &dyn Tasks {
        self.tasks.get_or_init(|| CallTasks {
            table: Arc::clone(&self.env.tasks),
            record: Arc::clone(&self.record),
            processes: self.scope.runs.then(|| self.local_processes()),
            cancel: self.cancel.clone(),
        })
    }

    #[cfg(feature = "web")]
    fn http(&self) -> &dyn haft_tool::Http {
        self.http.get_or_init(|| {
            HttpClient::new(Arc::clone(&self.env.http), self.scope.reach.clone(), self.cancel.clone())
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
        if let Some(progress_sink) = &self.progress_sink {
            progress_sink(progress);
        }
    }

    fn cancelled(&self) -> &Cancel {
        &self.cancel
    }
}

/// Processes, refused unless the call declared that it would run one.
struct ScopedProcesses {
    runs: bool,
    local: LocalProcesses,
    /// The record of a call whose commands run without the sandbox.
    unsandboxed: Option<Arc<dyn Record>>,
    /// Receives the output of a command while it runs.
    progress_sink: Option<ProgressSink>,
}

impl Processes for ScopedProcesses {
    fn run(&self, request: &RunRequest) -> Result<Finished, ToolError> {
        if self.runs {
            if let Some(record) = &self.unsandboxed {
                record.enforced("off: the command ran without the sandbox".to_owned());
                record.not_reversible("the changes of the command were not recorded".to_owned());
            }
            match &self.progress_sink {
                Some(progress_sink) if !request.inherit => {
                    let reporter = OutputReporter::new(progress_sink);
                    self.local.run_with_output(request, &|bytes| reporter.push(bytes))
                }
                _ => self.local.run(request),
            }
        } else {
            Err(ToolError::denied("This call may not start processes, because it declared none"))
        }
    }
}
