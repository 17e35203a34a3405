//! The options of a runtime.

use std::path::PathBuf;
use std::sync::Arc;

use haft_ledger::{Ledger, LedgerListener, SessionChoice};
use haft_policy::{Behavior, Mode, NetworkPresets, Preset, RuleText};
use haft_tool::{AnyTool, Dialect, EffectKind, Host, Network, Tool, TraceContext};

use crate::ToolSource;
use crate::commands::CommandOptions;
use crate::hooks::Hooks;
use crate::steps::ask::Asker;

/// A rule that has not been parsed yet.
pub(crate) struct WrittenRule {
    pub(crate) behavior: Behavior,
    pub(crate) text: RuleText,
    pub(crate) origin: String,
    /// Whether it was written for another program, which may have other tools.
    pub(crate) is_foreign: bool,
}

/// Collects the options of a [`Runtime`](crate::Runtime).
#[must_use = "a builder does nothing until `build`"]
#[derive(Default)]
pub struct Builder {
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) ledger: Option<Ledger>,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) others: Vec<Dialect>,
    pub(crate) tools: Vec<Arc<dyn AnyTool>>,
    pub(crate) sources: Vec<Arc<dyn ToolSource>>,
    pub(crate) ledger_tools: bool,
    pub(crate) only: Option<Vec<String>>,
    pub(crate) rules: Vec<WrittenRule>,
    pub(crate) known_tools: Vec<(String, Vec<EffectKind>)>,
    pub(crate) mode: Mode,
    pub(crate) asker: Option<Arc<dyn Asker>>,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    pub(crate) forbids_bypass: bool,
    pub(crate) host: Option<Arc<dyn Host>>,
    pub(crate) commands: CommandOptions,
    pub(crate) network: Network,
    pub(crate) network_presets: NetworkPresets,
    pub(crate) endpoints: Vec<String>,
    pub(crate) sandbox: Preset,
    pub(crate) workspace_reads: bool,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) readable: Vec<String>,
    pub(crate) session: SessionChoice,
    pub(crate) entry_point: Option<String>,
    pub(crate) granted: Vec<(String, PathBuf, String)>,
    pub(crate) any_workspace: bool,
    pub(crate) relative_paths: bool,
    pub(crate) trace_parent: Option<TraceContext>,
    pub(crate) exports_spans: bool,
    pub(crate) ledger_listener: Option<LedgerListener>,
}

impl Builder {
    /// The directory that calls work in and may change; the current one by default.
    pub fn workspace(mut self, path: impl Into<PathBuf>) -> Self {
        self.workspace = Some(path.into());
        self
    }

    /// The directory in the workspace in which commands start; the workspace itself by default.
    pub fn cwd(mut self, path: impl Into<PathBuf>) -> Self {
        self.cwd = Some(path.into());
        self
    }

    /// Adds a directory that calls may change.
    pub fn add_directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directories.push(path.into());
        self
    }

    /// The directory of the ledger; `$HAFT_HOME`, else the user's state directory, by default.
    pub fn home(mut self, path: impl Into<PathBuf>) -> Self {
        self.home = Some(path.into());
        self
    }

    /// An open ledger, which several runtimes of a process can share: each connection to a ledger has memory of its own.
    pub fn ledger(mut self, ledger: Ledger) -> Self {
        self.home = Some(ledger.home().to_owned());
        self.ledger = Some(ledger);
        self
    }

    /// The dialect: its tools, and where they may read and write.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Adds the tools of another dialect, which read where that dialect may. See [`Dialect::only`] for a part of them.
    pub fn add_dialect(mut self, dialect: Dialect) -> Self {
        self.others.push(dialect);
        self
    }

    /// Adds a tool. It replaces a tool of the same name.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.any_tool(Arc::new(tool))
    }

    /// Adds a tool whose input type is erased.
    pub fn any_tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds tools that come and go while the runtime lives. They never replace a tool of the dialect.
    pub fn source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.sources.push(source);
        self
    }

    /// Adds `haft_log` and `haft_undo`, with which a model reads the ledger and undoes calls of its own session.
    pub fn ledger_tools(mut self) -> Self {
        self.ledger_tools = true;
        self
    }

    /// Offers only these tools.
    pub fn only(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.only = Some(names.into_iter().collect());
        self
    }

    /// Adds a rule that allows calls, for example `Bash` or `Edit(src/**)`. `origin` is cited in decisions.
    pub fn allow(self, rule: impl Into<RuleText>, origin: impl Into<String>) -> Self {
        self.rule(Behavior::Allow, rule, origin)
    }

    /// Adds a rule with any behavior. Its examples must hold.
    pub fn rule(self, behavior: Behavior, rule: impl Into<RuleText>, origin: impl Into<String>) -> Self {
        self.written_rule(behavior, rule.into(), origin.into(), false)
    }

    /// Adds a rule that was written for another program. If it names a tool that does not exist here, or allows something that
    /// is not understood, it becomes one of [`Runtime::warnings`](crate::Runtime::warnings).
    pub fn foreign_rule(
        self,
        behavior: Behavior,
        rule: impl Into<RuleText>,
        origin: impl Into<String>,
    ) -> Self {
        self.written_rule(behavior, rule.into(), origin.into(), true)
    }

    fn written_rule(mut self, behavior: Behavior, text: RuleText, origin: String, is_foreign: bool) -> Self {
        self.rules.push(WrittenRule { behavior, text, origin, is_foreign });
        self
    }

    /// Adds tools that rules may name although they are not offered, with the effects that they may have. A rule that names no
    /// known tool is an error if it denies or asks, and one of [`Runtime::warnings`](crate::Runtime::warnings) if it allows.
    pub fn known_tools(mut self, tools: impl IntoIterator<Item = (String, Vec<EffectKind>)>) -> Self {
        self.known_tools.extend(tools);
        self
    }

    /// Keeps the mode from becoming `bypassPermissions` while the session runs.
    pub fn forbid_bypass(mut self) -> Self {
        self.forbids_bypass = true;
        self
    }

    /// Runs the user's hooks before and after calls.
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks = Some(hooks);
        self
    }

    /// Which calls run without a question.
    pub fn permission_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Lets `tool` change one path, wherever it lies; `origin` is cited in decisions.
    pub fn grant(
        mut self,
        tool: impl Into<String>,
        path: impl Into<PathBuf>,
        origin: impl Into<String>,
    ) -> Self {
        self.granted.push((tool.into(), path.into(), origin.into()));
        self
    }

    /// Lets calls change only what is granted path by path. Then the workspace may be any directory, even one that holds the
    /// ledger and the settings.
    pub fn any_workspace(mut self) -> Self {
        self.any_workspace = true;
        self
    }

    /// Answers questions about calls; [`DenyAll`](crate::DenyAll) by default.
    pub fn asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// What tools need beyond a machine; nothing by default. The file of its settings is protected.
    pub fn host(mut self, host: Arc<dyn Host>) -> Self {
        self.host = Some(host);
        self
    }

    /// What commands may reach over the network; nothing by default.
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// The names that stand for lists of domains; those of [`haft_policy::NETWORK_PRESETS`] by default.
    pub fn network_presets(mut self, presets: NetworkPresets) -> Self {
        self.network_presets = presets;
        self
    }

    /// Adds a host, as `host` or `host:port`, that the user's configuration names: tools reach it without a question, even
    /// at a private address.
    pub fn endpoint(mut self, host: impl Into<String>) -> Self {
        self.endpoints.push(host.into());
        self
    }

    /// What may be written; the kernel enforces it for commands.
    pub fn sandbox(mut self, sandbox: Preset) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Adds a path that may be written although it is guarded or outside the workspace.
    pub fn allow_write(mut self, path: impl Into<PathBuf>) -> Self {
        self.writable.push(path.into());
        self
    }

    /// Lets tools read only the workspace, and commands only the workspace, system directories and toolchains.
    pub fn workspace_reads(mut self) -> Self {
        self.workspace_reads = true;
        self
    }

    /// Removes an entry from the list of secrets, for example `.env` or `~/.aws`: commands and tools may read it.
    pub fn allow_read(mut self, secret: impl Into<String>) -> Self {
        self.readable.push(secret.into());
        self
    }

    /// Accepts paths relative to the workspace, even for tools of a dialect that requires absolute ones.
    pub fn relative_paths(mut self) -> Self {
        self.relative_paths = true;
        self
    }

    /// Continues an earlier session instead of starting one.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.session = SessionChoice::Existing(id.into());
        self
    }

    /// Continues the session with this id or name; a name that no session of the workspace has starts one.
    pub fn named_session(mut self, name: impl Into<String>) -> Self {
        self.session = SessionChoice::ExistingOrNew(name.into());
        self
    }

    /// The span that calls belong to, which commands and servers are told.
    pub fn trace_parent(mut self, parent: Option<TraceContext>) -> Self {
        self.trace_parent = parent;
        self
    }

    /// Declares that the spans of calls are exported, so that commands and servers are told the span of their call.
    pub fn exports_spans(mut self) -> Self {
        self.exports_spans = true;
        self
    }

    /// Tells `listener` about every ended call and every appended event, unless an open ledger was given.
    pub fn ledger_listener(mut self, listener: LedgerListener) -> Self {
        self.ledger_listener = Some(listener);
        self
    }

    /// The entry point of the calls, for the ledger: `cli`, `mcp`, …; `library` by default.
    pub fn entry_point(mut self, name: impl Into<String>) -> Self {
        self.entry_point = Some(name.into());
        self
    }
}
