//! The runtime: the one way in.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::world::Ground;
use haft_ledger::{Ledger, LedgerHandle};
use haft_net::http::HttpService;
use haft_policy::Policy;
use haft_sandbox::Life;
use haft_tool::{AnyTool, Call, Definition, ErrorKind, Host, Receipt, SideEffect, ToolError};

use crate::history::History;
use crate::registry::{Entry, Source};
use crate::steps::ask::Asker;
use crate::tasks::News;
use crate::write_order::WriteOrder;
use crate::{Builder, Registry};

pub(crate) struct RuntimeInner {
    pub(crate) registry: Registry,
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) policy: Policy,
    pub(crate) ground: Arc<Ground>,
    pub(crate) news: Arc<News>,
    pub(crate) asker: Arc<dyn Asker>,
    pub(crate) host: Arc<dyn Host>,
    /// Held while the user is asked: one question at a time.
    pub(crate) asking: Mutex<()>,
    pub(crate) write_order: Arc<WriteOrder>,
    pub(crate) ledger: Arc<LedgerHandle>,
    pub(crate) history: Arc<History>,
    pub(crate) calls: AtomicU64,
    /// The servers that live beside the session.
    pub(crate) companions: Mutex<Vec<Weak<Life>>>,
}

impl RuntimeInner {
    pub(crate) fn ledger(&self) -> Arc<LedgerHandle> {
        Arc::clone(&self.ledger)
    }

    pub(crate) fn blank_receipt(&self, call: &Call, started_at: u64) -> Receipt {
        Receipt {
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            workspace: self.ground.planning.workspace.clone(),
            started_at,
            ..Receipt::default()
        }
    }

    /// The tool for a call, or what to tell the caller instead. The runtime's own come first: nobody takes their names.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Entry>, ToolError> {
        let own = self.registry.find(name);
        if own.is_ok() || self.registry.get(name).is_some() || !self.offers(name) {
            return own;
        }
        let found = self.sources.iter().find_map(|source| source.find(name));
        match found {
            Some(tool) => Ok(Arc::new(Entry::of(tool))),
            None => own.map_err(|unknown| self.absent(name).unwrap_or(unknown)),
        }
    }

    /// Why a tool of somebody else's is not there.
    fn absent(&self, name: &str) -> Option<ToolError> {
        self.sources.iter().find_map(|source| source.absent(name))
    }

    /// Who may have a tool that nobody knows yet.
    pub(crate) fn undiscovered_sources(&self, tool: &str) -> Vec<Arc<dyn Source>> {
        if self.sources.is_empty() || self.find(tool).is_ok() {
            return Vec::new();
        }
        self.sources.iter().filter(|source| source.may_have(tool)).map(Arc::clone).collect()
    }

    /// The tools that come from elsewhere and are offered.
    fn foreign(&self) -> impl Iterator<Item = Arc<dyn AnyTool>> {
        let all = self.sources.iter().flat_map(|source| source.tools());
        all.filter(|tool| self.offers(tool.name()))
    }

    /// Whether a tool that comes from elsewhere is offered.
    fn offers(&self, name: &str) -> bool {
        self.registry.get(name).is_none()
            && self.registry.is_allowed(name)
            && self.policy.rules.removing(name).is_none()
    }
}

impl Drop for RuntimeInner {
    fn drop(&mut self) {
        self.end_companions();
        self.ground.tasks.end_all();
    }
}

/// Holds the tools, the policy and the ledger of one session in one workspace. Clones share them.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<RuntimeInner>,
}

/// A runtime that somebody else holds.
#[derive(Clone)]
pub struct WeakRuntime(Weak<RuntimeInner>);

impl WeakRuntime {
    /// The runtime, if anybody still holds it.
    pub fn upgrade(&self) -> Option<Runtime> {
        self.0.upgrade().map(|inner| Runtime { inner })
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("workspace", &self.inner.ground.planning.workspace)
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
        let foreign = self.inner.foreign().map(|tool| tool.definition());
        self.inner.registry.definitions().into_iter().chain(foreign).collect()
    }

    /// The names of the tools that are offered, and what kind of thing each does. Much cheaper than their definitions.
    pub fn kinds(&self) -> Vec<(String, SideEffect)> {
        let own = self.inner.registry.offered().map(|entry| Arc::clone(&entry.tool));
        let all = own.chain(self.inner.foreign());
        all.map(|tool| (tool.name().to_owned(), tool.side_effect())).collect()
    }

    /// Waits for the servers that nobody has met yet, so long at most. Blocks.
    pub fn meet(&self, limit: Duration) {
        for source in &self.inner.sources {
            source.meet(limit);
        }
    }

    /// Has `told` called whenever the tools are others.
    pub fn on_tools_change(&self, told: impl Fn() + Send + Sync + 'static) {
        let told: Arc<dyn Fn() + Send + Sync> = Arc::new(told);
        for source in &self.inner.sources {
            let told = Arc::clone(&told);
            source.on_change(Box::new(move || told()));
        }
    }

    /// Whether there is a tool of that name, or somebody who may have one, or who has one and may not be used.
    pub fn knows(&self, tool: &str) -> bool {
        self.inner.find(tool).is_ok()
            || !self.inner.undiscovered_sources(tool).is_empty()
            || self.inner.absent(tool).is_some_and(|why| why.kind != ErrorKind::NotFound)
    }

    /// The tools.
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// The same runtime, not held.
    pub fn downgrade(&self) -> WeakRuntime {
        WeakRuntime(Arc::downgrade(&self.inner))
    }

    /// The network of the session.
    pub fn http_service(&self) -> &Arc<HttpService> {
        &self.inner.ground.http
    }

    /// The folder the calls work in.
    pub fn workspace(&self) -> &std::path::Path {
        &self.inner.ground.planning.workspace
    }

    /// The ledger that the calls are recorded in.
    pub fn ledger(&self) -> Result<Ledger, ToolError> {
        self.inner.ledger.ledger().cloned()
    }

    /// The id of the session that the calls are recorded under.
    pub fn session(&self) -> Result<String, ToolError> {
        self.inner.ledger.session().map(str::to_owned)
    }

    /// Removes what commands left in the session's own directories. Those that still run lose them.
    pub fn tidy(&self) {
        self.inner.ground.enclosure.tidy();
    }

    /// Ends every task, and removes what commands left in the session's own directories.
    pub fn end(&self) {
        for source in &self.inner.sources {
            source.close();
        }
        self.inner.end_companions();
        self.inner.ground.tasks.end_all();
        self.inner.ground.enclosure.tidy();
    }

    /// Waits until every call that was made has ended, then ends every task and server.
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
