//! The runtime of one session: its tools, policy and ledger.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::world::SessionEnv;
use haft_ledger::{Ledger, LedgerHandle};
#[cfg(feature = "web")]
use haft_net::http::HttpService;
use haft_policy::Policy;
use haft_tool::{
    AnyTool, Call, Definition, ErrorKind, Host, Network, Receipt, Sandbox, ToolError, TraceContext, lock,
};

use crate::agent_runtime::AgentOwner;
use crate::history::History;
use crate::hooks::Hooks;
use crate::registry::{RegisteredTool, ToolSource};
use crate::steps::ask::Asker;
use crate::write_order::WriteOrder;
use crate::{Builder, Registry};

pub(crate) struct RuntimeInner {
    pub(crate) registry: Arc<Registry>,
    pub(crate) sources: Vec<Arc<dyn ToolSource>>,
    pub(crate) policy: Policy,
    pub(crate) env: Arc<SessionEnv>,
    pub(crate) asker: Arc<dyn Asker>,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) write_order: Arc<WriteOrder>,
    pub(crate) ledger: Arc<LedgerHandle>,
    pub(crate) history: Arc<History>,
    pub(crate) calls: AtomicU64,
    pub(crate) warnings: Vec<String>,
    /// The subagent that makes the calls, if it is one.
    pub(crate) agent: Option<AgentOwner>,
    pub(crate) trace: SessionTrace,
}

/// The place of a session's calls in a trace.
#[derive(Debug, Default)]
pub(crate) struct SessionTrace {
    /// The span that they belong to now.
    pub(crate) parent: Mutex<Option<TraceContext>>,
    /// Whether their spans are sent somewhere.
    pub(crate) is_exported: bool,
}

impl RuntimeInner {
    pub(crate) fn ledger(&self) -> Arc<LedgerHandle> {
        Arc::clone(&self.ledger)
    }

    pub(crate) fn blank_receipt(&self, call: &Call, started_at: u64) -> Receipt {
        let mut receipt = Receipt::new(&call.id, &call.tool, &self.env.planning.workspace, started_at);
        receipt.trace_parent.clone_from(&lock(&self.trace.parent));
        receipt
    }

    /// The tool for a call, or the error for the caller. The runtime's own tools take precedence over those of sources.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<RegisteredTool>, ToolError> {
        let own = self.registry.find(name);
        if own.is_ok() || self.registry.get(name).is_some() || !self.offers(name) {
            return own;
        }
        let found = self.sources.iter().find_map(|source| source.find(name));
        match found {
            Some(tool) => Ok(Arc::new(RegisteredTool::of(tool))),
            None => own.map_err(|unknown| self.why_missing(name).unwrap_or(unknown)),
        }
    }

    /// Why the tool of a source is not available.
    fn why_missing(&self, name: &str) -> Option<ToolError> {
        self.sources.iter().find_map(|source| source.why_missing(name))
    }

    /// The sources that may have an unknown tool once they are connected.
    pub(crate) fn undiscovered_sources(&self, tool: &str) -> Vec<Arc<dyn ToolSource>> {
        if self.sources.is_empty() || self.find(tool).is_ok() {
            return Vec::new();
        }
        self.sources.iter().filter(|source| source.may_have(tool)).map(Arc::clone).collect()
    }

    /// The tools of sources that are offered.
    fn source_tools(&self) -> impl Iterator<Item = Arc<dyn AnyTool>> {
        let all = self.sources.iter().flat_map(|source| source.tools());
        all.filter(|tool| self.offers(tool.name()))
    }

    /// Whether a source's tool of this name is offered.
    fn offers(&self, name: &str) -> bool {
        self.registry.get(name).is_none()
            && self.registry.is_allowed(name)
            && self.policy.rules.removing(name).is_none()
    }
}

impl Drop for RuntimeInner {
    fn drop(&mut self) {
        // The commands of a subagent are those of its parent.
        if self.agent.is_none() {
            self.env.commands.end_all();
        }
    }
}

/// Holds the tools, the policy and the ledger of one session in one workspace. Clones share them.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<RuntimeInner>,
}

/// A reference to a runtime that does not keep it alive.
#[derive(Clone)]
pub struct WeakRuntime(Weak<RuntimeInner>);

impl WeakRuntime {
    /// The runtime, if it still exists.
    pub fn upgrade(&self) -> Option<Runtime> {
        self.0.upgrade().map(|inner| Runtime { inner })
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("workspace", &self.inner.env.planning.workspace)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// Starts building a runtime.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn next_call_id(&self) -> String {
        format!("call_{}", self.inner.calls.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The tools that are offered, as callers see them.
    pub fn definitions(&self) -> Vec<Definition> {
        let registry = &self.inner.registry;
        let mut definitions = registry.definitions();
        let last: Vec<_> =
            definitions.extract_if(.., |definition| registry.is_listed_last(&definition.name)).collect();
        definitions.extend(self.inner.source_tools().map(|tool| tool.definition()));
        definitions.extend(last);
        definitions
    }

    /// Connects the sources that are not connected yet, for at most `limit`. Blocks.
    pub fn connect_all(&self, limit: Duration) {
        for source in &self.inner.sources {
            source.connect_all(limit);
        }
    }

    /// The same for the sources that may have a tool of that name.
    pub fn connect_for_tool(&self, tool: &str, limit: Duration) {
        for source in self.inner.undiscovered_sources(tool) {
            source.connect_for_tool(tool, limit);
        }
    }

    /// Calls `listener` whenever the list of tools has changed.
    pub fn on_tools_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        let listener: Arc<dyn Fn() + Send + Sync> = Arc::new(listener);
        for source in &self.inner.sources {
            let listener = Arc::clone(&listener);
            source.on_change(Box::new(move || listener()));
        }
    }

    /// Whether there is a tool of that name, or a source that may have one or has one that may not be used.
    pub fn may_have_tool(&self, tool: &str) -> bool {
        self.inner.find(tool).is_ok()
            || !self.inner.undiscovered_sources(tool).is_empty()
            || self.inner.why_missing(tool).is_some_and(|why| why.kind != ErrorKind::NotFound)
    }

    /// Why a tool is missing that one of the sources should have.
    pub fn why_missing(&self, tool: &str) -> Option<ToolError> {
        self.inner.why_missing(tool)
    }

    /// The tools.
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// A reference that does not keep the runtime alive.
    pub fn downgrade(&self) -> WeakRuntime {
        WeakRuntime(Arc::downgrade(&self.inner))
    }

    /// The HTTP service of the session.
    #[cfg(feature = "web")]
    pub fn http_service(&self) -> &Arc<HttpService> {
        &self.inner.env.http
    }

    /// The folder the calls work in.
    pub fn workspace(&self) -> &std::path::Path {
        &self.inner.env.planning.workspace
    }

    /// Whether commands run in the sandbox and without network, so that undo can restore everything they do.
    pub fn confines_commands(&self) -> bool {
        let scope = &self.inner.policy.scope;
        scope.sandbox == Sandbox::On && scope.network == Network::None
    }

    /// What the user should know about the rules: those that allow a tool that is not known.
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings
    }

    /// The ledger that the calls are recorded in.
    pub fn ledger(&self) -> Result<Ledger, ToolError> {
        self.inner.ledger.ledger().cloned()
    }

    /// The span that calls belong to, unless their caller names another.
    pub fn trace_parent(&self) -> Option<TraceContext> {
        lock(&self.inner.trace.parent).clone()
    }

    /// Changes that span, for the calls that begin from now on.
    pub fn set_trace_parent(&self, parent: Option<TraceContext>) {
        *lock(&self.inner.trace.parent) = parent;
    }

    /// The id of the session that the calls are recorded under.
    pub fn session(&self) -> Result<String, ToolError> {
        self.inner.ledger.session().map(str::to_owned)
    }

    /// Writes back logins that commands have renewed in their copies.
    #[cfg(feature = "sandbox")]
    pub fn keep_logins(&self) -> Vec<std::path::PathBuf> {
        self.inner.env.commands.sandbox.keep_logins()
    }

    /// Removes what commands left in the session's own directories, even if some still run.
    pub fn clear_session_directories(&self) {
        self.inner.env.commands.clear_directories();
    }

    /// Ends every server and task, and removes what commands left in the session's own directories.
    pub fn end(&self) {
        for source in &self.inner.sources {
            source.close();
        }
        self.inner.env.commands.end_all();
        self.inner.env.commands.clear_directories();
    }

    /// Waits until every call has ended, then ends every task and server.
    pub async fn shutdown(self) {
        let (send, ended) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            self.inner.write_order.wait_until_idle();
            self.end();
            let _ = send.send(());
        });
        let _ = ended.await;
    }
}
