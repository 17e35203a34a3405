//! The commands of a session: their environment, sandbox, background tasks and server processes. `no_commands.rs` replaces this
//! module in builds without the feature `sandbox`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use haft_sandbox::{
    CallTasks, CommandHooks, Environment, HostAsker, LocalProcesses, RefusalSink, SandboxOptions,
    ServerControl, SessionSandbox, TaskTable,
};
use haft_tool::{
    Change, CommandChanges, Denial, Finished, Host, Processes, Record, RunRequest, Sandbox, Scope, Tasks,
    ToolError, TraceContext, lock,
};

pub(crate) use haft_sandbox::FilesInEffect;

use crate::Builder;
use crate::host_questions::{AllowedHosts, HostQuestions};
use crate::live_output::OutputReporter;
use crate::tasks::TaskEndQueue;
use crate::world::{LocalWorld, ProgressSink, SessionEnv};

/// How much of a task's output is kept on disk by default.
const DEFAULT_TASK_BYTES: u64 = 64 << 20;
/// How long to wait for servers to end. The reaper kills them long before that.
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The variables by which programs learn what span they belong to.
const TRACEPARENT: &str = "TRACEPARENT";
const TRACESTATE: &str = "TRACESTATE";

/// The options of [`Builder`] for commands.
#[derive(Default)]
pub(crate) struct CommandOptions {
    environment: Option<Environment>,
    cache: Option<PathBuf>,
    task_bytes: Option<u64>,
    no_tasks: Option<String>,
    sandbox: SandboxOptions,
}

impl Builder {
    /// The environment of commands; a scrubbed copy of this process's by default.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.commands.environment = Some(environment);
        self
    }

    /// Where caches of commands are kept between sessions; `$HAFT_CACHE`, else the user's cache directory, by default.
    pub fn cache(mut self, path: impl Into<PathBuf>) -> Self {
        self.commands.cache = Some(path.into());
        self
    }

    /// What commands see, use and serve.
    pub fn sandbox_options(mut self, options: SandboxOptions) -> Self {
        self.commands.sandbox = options;
        self
    }

    /// How many bytes of each task's output are kept, half from the beginning and half from the end; 64 MiB by default.
    pub fn task_bytes(mut self, bytes: u64) -> Self {
        self.commands.task_bytes = Some(bytes);
        self
    }

    /// Refuses background tasks; `why` is the error.
    pub fn no_tasks(mut self, why: impl Into<String>) -> Self {
        self.commands.no_tasks = Some(why.into());
        self
    }
}

/// The directory of the sessions' temporary files, which belongs to Haft.
pub(crate) fn private_temp_directory() -> Option<PathBuf> {
    haft_sandbox::private_temp_directory()
}

/// The link or git configuration that makes programs outside the sandbox use the file at `path`.
pub(crate) fn leading_to(path: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
    haft_sandbox::leading_to(path, roots)
}

/// Reverts changes of a dead command that would make programs run outside the sandbox, and returns the refusals.
pub(crate) fn restore_guarded_changes(
    command: &CommandChanges,
    changes: &[Change],
    scope: &Scope,
    record: &dyn Record,
    started_at: u64,
) -> Vec<Denial> {
    haft_sandbox::restore_guarded_changes(command, changes, scope, record, started_at)
}

/// What the commands of a session share.
pub(crate) struct SessionCommands {
    pub(crate) environment: Arc<Environment>,
    pub(crate) sandbox: Arc<SessionSandbox>,
    pub(crate) tasks: Arc<TaskTable>,
    pub(crate) task_ends: Arc<TaskEndQueue>,
    /// The hosts that the user allowed until the session ends.
    pub(crate) allowed_hosts: AllowedHosts,
    /// The running server processes.
    pub(crate) servers: Mutex<Vec<Weak<ServerControl>>>,
}

impl SessionCommands {
    pub(crate) fn new(mut options: CommandOptions, home: &Path, workspace_reads: bool) -> Self {
        options.sandbox.workspace_reads |= workspace_reads;
        let task_ends = Arc::<TaskEndQueue>::default();
        let task_bytes = options.task_bytes.unwrap_or(DEFAULT_TASK_BYTES);
        let tasks = TaskTable::new(home, task_bytes, task_ends.sender());
        if let Some(why) = options.no_tasks {
            tasks.close(why);
        }
        Self {
            environment: Arc::new(options.environment.unwrap_or_else(Environment::inherited)),
            sandbox: Arc::new(SessionSandbox::new(
                options.cache.or_else(cache_from_env),
                home,
                options.sandbox,
            )),
            tasks: Arc::new(tasks),
            task_ends,
            allowed_hosts: AllowedHosts::default(),
            servers: Mutex::default(),
        }
    }

    /// Ends every server and task, and waits until they are gone.
    pub(crate) fn end_all(&self) {
        let servers = std::mem::take(&mut *lock(&self.servers));
        let servers: Vec<_> = servers.iter().filter_map(Weak::upgrade).collect();
        for server in &servers {
            server.stop();
        }
        for server in servers {
            server.wait(EXIT_TIMEOUT);
        }
        self.tasks.end_all();
    }

    /// Where the file is that commands see at `path`, if that is not the one that Haft sees.
    pub(crate) fn session_path(&self, path: &Path) -> Option<PathBuf> {
        self.sandbox.session_path(path)
    }

    /// Removes what commands left in the session's own directories.
    pub(crate) fn clear_directories(&self) {
        self.sandbox.tidy();
    }
}

/// The default directory for caches of commands: `$HAFT_CACHE`, else `haft` in the user's cache directory.
pub fn cache_from_env() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("HAFT_CACHE")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|cache| cache.join("haft")))
        .or_else(|| absolute("HOME").map(|home| home.join(".cache/haft")))
}

/// The commands of one call, made on first use.
#[derive(Default)]
pub(crate) struct CallCommands {
    processes: OnceLock<ScopedProcesses>,
    tasks: OnceLock<CallTasks>,
}

impl CallCommands {
    pub(crate) fn processes(&self, world: &LocalWorld) -> &dyn Processes {
        self.processes.get_or_init(|| ScopedProcesses {
            runs: world.scope.runs,
            local: local_processes(world),
            record: Arc::clone(&world.record),
            is_sandboxed: world.scope.sandbox != Sandbox::Off,
            progress_sink: world.progress_sink.clone(),
            env: Arc::clone(&world.env),
            host: Arc::clone(&world.host),
            command: world.command.clone(),
        })
    }

    pub(crate) fn tasks(&self, world: &LocalWorld) -> &dyn Tasks {
        self.tasks.get_or_init(|| CallTasks {
            table: Arc::clone(&world.env.commands.tasks),
            record: Arc::clone(&world.record),
            processes: world.scope.runs.then(|| local_processes(world)),
            cancel: world.cancel.clone(),
        })
    }
}

fn local_processes(world: &LocalWorld) -> LocalProcesses {
    let commands = &world.env.commands;
    let environment = match world.trace.as_ref().and_then(|trace| trace.passed_on.as_ref()) {
        Some(trace) => Arc::new(traced(&commands.environment, trace)),
        None => Arc::clone(&commands.environment),
    };
    let local = LocalProcesses::new(world.env.planning.cwd.clone(), environment, world.cancel.clone());
    if world.scope.sandbox == Sandbox::Off {
        return local;
    }
    local.sandboxed(Arc::clone(&commands.sandbox), Arc::clone(&world.scope), Arc::clone(&world.record))
}

/// The environment with the variables of the trace, except for those that the user set for commands.
fn traced(environment: &Environment, trace: &TraceContext) -> Environment {
    if environment.get(TRACEPARENT).is_some() {
        return environment.clone();
    }
    let environment = environment.clone().with(TRACEPARENT, trace.to_string());
    if trace.state.is_empty() { environment } else { environment.with(TRACESTATE, &trace.state) }
}

/// Runs processes, if the call declared that it would run one.
struct ScopedProcesses {
    runs: bool,
    local: LocalProcesses,
    record: Arc<dyn Record>,
    is_sandboxed: bool,
    /// Receives the output of a command while it runs.
    progress_sink: Option<ProgressSink>,
    env: Arc<SessionEnv>,
    /// Asks the user about hosts.
    host: Arc<dyn Host>,
    /// The command that the call declared.
    command: Option<String>,
}

impl ScopedProcesses {
    /// What is reported and asked while a command runs.
    fn hooks(&self, request: &RunRequest, on_refused: Option<RefusalSink>) -> CommandHooks {
        let asker = self.env.asks.then(|| {
            let (env, host) = (Arc::clone(&self.env), Arc::clone(&self.host));
            let command = self
                .command
                .clone()
                .unwrap_or_else(|| request.argv.join(OsStr::new(" ")).to_string_lossy().into_owned());
            Arc::new(HostQuestions::new(env, host, command)) as Arc<dyn HostAsker>
        });
        CommandHooks { on_refused, on_refused_host: None, asker }
    }
}

impl Processes for ScopedProcesses {
    fn run(&self, request: &RunRequest) -> Result<Finished, ToolError> {
        if !self.runs {
            return Err(ToolError::denied("This call may not start processes, because it declared none"));
        }
        if !self.is_sandboxed {
            self.record.unwitnessed()?;
            self.record.enforced("off: the command ran without the sandbox".to_owned());
            self.record.not_reversible("the changes of the command were not recorded".to_owned());
        }
        let (record, inherits) = (Arc::clone(&self.record), request.inherit);
        let open_live = Box::new(move || if inherits { None } else { record.live_output() });
        let reporter = OutputReporter::new(self.progress_sink.clone(), open_live);
        let on_refused = self.progress_sink.as_ref().map(|_| reporter.refusal_sink());
        let local = self.local.with_hooks(self.hooks(request, on_refused));
        let ran = if inherits {
            local.run(request)
        } else {
            local.run_with_output(request, &|bytes| reporter.push(bytes))
        };
        ran.inspect(|finished| self.record.exited(finished.exit))
    }
}
