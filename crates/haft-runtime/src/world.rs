//! The World of one call on this machine.

#[cfg(feature = "web")]
use std::sync::OnceLock;
use std::sync::{Arc, Mutex};

use haft_policy::NetworkPresets;
use haft_tool::{
    CallTrace, Cancel, Files, Host, Planning, Processes, Progress, Record, Scope, Tasks, ToolError, Value,
    World,
};

use haft_files::{LocalFiles, Root};
#[cfg(feature = "web")]
use haft_net::http::{HttpClient, HttpService};

use crate::commands::{self, CallCommands, SessionCommands};
use crate::grants::{self, SessionGrants};
use crate::undo_guard::judge_restore;

/// Receives the progress of a call.
pub(crate) type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// What the Worlds of a session share.
pub(crate) struct SessionEnv {
    /// The workspace.
    pub(crate) planning: Planning,
    /// The roots of its scope, as open directory handles.
    pub(crate) roots: Arc<[Arc<Root>]>,
    /// What the user has allowed since the session began.
    pub(crate) grants: SessionGrants,
    /// Whether the user may be asked.
    #[cfg_attr(not(feature = "sandbox"), expect(dead_code, reason = "only commands use it"))]
    pub(crate) asks: bool,
    /// Held while the user is asked: one question at a time.
    pub(crate) asking: Arc<Mutex<()>>,
    /// Names for lists of domains.
    pub(crate) presets: NetworkPresets,
    /// Its commands, tasks and servers.
    pub(crate) commands: Arc<SessionCommands>,
    /// HTTP for its tools.
    #[cfg(feature = "web")]
    pub(crate) http: Arc<HttpService>,
}

/// The World of one call on this machine.
///
/// Parts that most calls do not need are made on first use.
pub(crate) struct LocalWorld {
    pub(crate) env: Arc<SessionEnv>,
    #[cfg_attr(
        not(any(feature = "sandbox", feature = "web")),
        expect(dead_code, reason = "files have it too")
    )]
    pub(crate) scope: Arc<Scope>,
    files: LocalFiles,
    commands: CallCommands,
    #[cfg(feature = "web")]
    http: OnceLock<HttpClient>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) record: Arc<dyn Record>,
    pub(crate) cancel: Cancel,
    pub(crate) progress_sink: Option<ProgressSink>,
    /// The command that the call declared, for questions about it.
    pub(crate) command: Option<String>,
    /// The call's place in a trace.
    pub(crate) trace: Option<CallTrace>,
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
        let its_env = Arc::clone(env);
        let files = files.as_seen_by_commands(Arc::new(move |path| its_env.commands.session_path(path)));
        let its_scope = Arc::clone(&scope);
        let files =
            files.guarding_what_is_named(Arc::new(move |path| commands::leading_to(path, &its_scope.roots)));
        let (its_scope, its_record) = (Arc::clone(&scope), Arc::clone(&record));
        let files = files
            .judging_restores(Arc::new(move || judge_restore(&its_scope.roots, Arc::clone(&its_record))));
        Self {
            env: Arc::clone(env),
            scope,
            files,
            commands: CallCommands::default(),
            #[cfg(feature = "web")]
            http: OnceLock::new(),
            host,
            record,
            cancel,
            progress_sink,
            command: None,
            trace: None,
        }
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
        self.commands.processes(self)
    }

    fn tasks(&self) -> &dyn Tasks {
        self.commands.tasks(self)
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

    fn approve_plan(&self, tools: &[String]) {
        self.record.set_note(grants::NOTE, self.env.grants.approve_plan(tools));
    }

    fn trace(&self) -> Option<CallTrace> {
        self.trace.clone()
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
