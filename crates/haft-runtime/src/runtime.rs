//! The runtime: the one way in.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::world::Ground;
use haft_ledger::{Ledger, LedgerHandle};
use haft_net::http::Web;
use haft_policy::Policy;
use haft_sandbox::Life;
use haft_tool::{
    AnyTool, Arguments, Call, Cancel, Definition, ErrorKind, Execution, Host, Output, Receipt, SideEffect,
    ToolError, lock, now_ms,
};
use tokio::runtime::Handle;

use crate::registry::{Entry, Source};
use crate::schedule::Schedule;
use crate::steps::ask::Asker;
use crate::steps::perform::before;
use crate::tasks::News;
use crate::walk::{Lifeline, Walk};
use crate::{Builder, Registry};

/// How long servers that nobody has met may take when one of their tools is called.
const MEETING: Duration = Duration::from_secs(30);
/// How long a cancelled call may take to stop before it is given up.
const PATIENCE: Duration = Duration::from_secs(3);

/// Hears where a call stands: pending, running with its progress, completed.
pub type Watch = Arc<dyn Fn(&Execution) + Send + Sync>;

pub(crate) struct Inner {
    pub(crate) registry: Registry,
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) policy: Policy,
    pub(crate) ground: Arc<Ground>,
    pub(crate) news: Arc<News>,
    pub(crate) asker: Arc<dyn Asker>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) asking: tokio::sync::Mutex<()>,
    pub(crate) schedule: Schedule,
    pub(crate) ledger: Arc<LedgerHandle>,
    pub(crate) calls: AtomicU64,
    /// The servers that live beside the session.
    pub(crate) companions: Mutex<Vec<Weak<Life>>>,
}

impl Inner {
    pub(crate) fn ledger(&self) -> Arc<LedgerHandle> {
        Arc::clone(&self.ledger)
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
    fn strangers(&self, tool: &str) -> Vec<Arc<dyn Source>> {
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

impl Drop for Inner {
    fn drop(&mut self) {
        self.end_companions();
        self.ground.tasks.end_all();
    }
}

/// Holds the tools, the policy and the ledger of one session in one workspace. Clones share them.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

/// A runtime that somebody else holds.
#[derive(Clone)]
pub struct WeakRuntime(Weak<Inner>);

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

/// How a call is made, apart from what it asks for.
#[derive(Clone, Default)]
pub struct CallOptions {
    /// Stops the call.
    pub cancel: Cancel,
    /// Hears where the call stands.
    pub watch: Option<Watch>,
    /// Who answers this call's questions, if not whoever answers the others.
    pub asker: Option<Arc<dyn Asker>>,
    /// Who runs this call's tool, if not whoever runs the others.
    pub host: Option<Arc<dyn Host>>,
}

/// The one result of a call.
#[derive(Debug, Clone)]
pub struct CallResult {
    /// The caller's id for the call.
    pub call_id: String,
    /// What the caller sees.
    pub output: Output,
    /// What the call did.
    pub receipt: Receipt,
}

impl Runtime {
    /// Starts building a runtime.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Calls a tool by name and waits for its one result: also when it is denied, fails, times out or is interrupted.
    ///
    /// Must run inside a Tokio runtime. Calls whose effects cannot conflict run together; others in the order made.
    pub async fn call(&self, tool: &str, arguments: impl Into<Arguments>) -> CallResult {
        let number = self.inner.calls.fetch_add(1, Ordering::Relaxed) + 1;
        self.run(Call::new(format!("call_{number}"), tool, arguments), CallOptions::default()).await
    }

    /// Makes a call under the caller's own id, with a way to stop and to watch it.
    ///
    /// Dropping the future cancels the call; its receipt is written all the same.
    pub async fn run(&self, call: Call, options: CallOptions) -> CallResult {
        for source in self.inner.strangers(&call.tool) {
            // If Tokio is shutting down, the call will hear of it.
            let tool = call.tool.clone();
            let _ = tokio::task::spawn_blocking(move || source.meet_for(&tool, MEETING)).await;
        }
        self.send(self.walk(call, options, None)).await
    }

    /// Like [`Runtime::run`], on this thread, which may block: where calls come in on threads of their own, another one would
    /// cost more than most of them.
    pub fn run_here(&self, call: Call, options: CallOptions) -> CallResult {
        for source in self.inner.strangers(&call.tool) {
            source.meet_for(&call.tool, MEETING);
        }
        Self::go_here(self.walk(call, options, None))
    }

    /// Makes a call of a tool that is not offered: what a door needs for itself, by the same eight steps.
    pub fn run_tool(&self, tool: Arc<dyn AnyTool>, call: Call, options: CallOptions) -> CallResult {
        Self::go_here(self.walk(call, options, Some(tool)))
    }

    pub(crate) fn walk(&self, call: Call, options: CallOptions, tool: Option<Arc<dyn AnyTool>>) -> Walk {
        Walk { inner: Arc::clone(&self.inner), call, options, tool, undoes: Vec::new(), started_at: now_ms() }
    }

    pub(crate) fn go_here(walk: Walk) -> CallResult {
        let cancel = walk.options.cancel.clone();
        let started = match walk.start() {
            Ok(started) => started,
            Err(result) => return *result,
        };
        let lifeline = Mutex::new(Some(started.lifeline()));
        // Whoever cancels wants no result; what is left to do is to close the page of a call that does not stop.
        let _listening = cancel.on_cancel(move || {
            let lifeline = lock(&lifeline).take();
            std::thread::spawn(move || {
                patience();
                lifeline.and_then(Lifeline::pull)
            });
        });
        block_on(started.go())
    }

    /// Sends a call on its way on a thread of its own, where a tool may block and where the call reaches its end
    /// whatever its caller does.
    pub(crate) async fn send(&self, walk: Walk) -> CallResult {
        let cancel = walk.options.cancel.clone();
        let started = match walk.start() {
            Ok(started) => started,
            Err(result) => return *result,
        };
        let stop = StopOnDrop(Some(cancel.clone()));
        let lifeline = started.lifeline();
        let handle = Handle::current();
        let mut task = tokio::task::spawn_blocking(move || handle.block_on(started.go()));
        let result = match before(&mut task, given_up(&cancel)).await {
            Some(result) => result,
            None => match lifeline.pull() {
                Some(result) => Ok(result),
                None => task.await,
            },
        };
        stop.defuse();
        match result {
            Ok(result) => result,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // Tokio is shutting down, and with it whoever waits for this.
            Err(_) => std::future::pending().await,
        }
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
            || !self.inner.strangers(tool).is_empty()
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
    pub fn web(&self) -> &Arc<Web> {
        &self.inner.ground.web
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

    /// Waits until every call that was made has ended, ends every task, and lets go of everything.
    pub async fn shutdown(self) {
        // A place behind every other: it conflicts with all that touch anything.
        let last = self.inner.schedule.enter(&[haft_tool::Effect::Run { command: String::new() }]);
        last.turn().await;
        let ended = tokio::task::spawn_blocking(move || self.end());
        // If Tokio is shutting down itself, the last one who lets go of the runtime ends them.
        let _ = ended.await;
    }
}

/// Cancels a call whose caller has gone away.
struct StopOnDrop(Option<Cancel>);

impl StopOnDrop {
    fn defuse(mut self) {
        self.0 = None;
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.cancel();
        }
    }
}

/// Comes when a call was cancelled and has had time enough to stop.
async fn given_up(cancel: &Cancel) {
    cancel.cancelled().await;
    let (tell, told) = tokio::sync::oneshot::channel();
    // A thread and not Tokio's timer, which the caller's runtime may not have.
    std::thread::spawn(move || {
        patience();
        let _ = tell.send(());
    });
    let _ = told.await;
}

fn patience() {
    let (_open, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(PATIENCE);
}

/// Waits for `work` on this thread, which may block.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    if let Ok(handle) = Handle::try_current() {
        return handle.block_on(work);
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}
