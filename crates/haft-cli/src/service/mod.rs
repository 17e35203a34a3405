//! The runtime as a service: its tools for any client, its questions as elicitations, its files and outputs as resources.

mod asking;
mod form;
mod past;
mod resources;
mod sessions;
mod skills;

use std::sync::Arc;
use std::time::Duration;

use haft_runtime::{CallOptions, Runtime, Watch};
use haft_tool::{Call, Execution, Host, ToolError};
use serde_json::{Map, Value, json};

use form::result;
use haft::mcp_form::definition;
use haft_mcp::serve::{Cached, Exchange, Hub, Identity, Level, Offers, Page, Service};
use haft_mcp::wire::RpcError;
use sessions::Sessions;
pub(crate) use skills::{FOLDERS as SKILL_FOLDERS, front_matter};

/// How many tools or resources are on a page.
const PAGE: usize = 100;
/// How long a list of tools waits for servers that nobody has met yet.
const MEETING: Duration = Duration::from_secs(2);
/// For how long a list of tools holds; that it changed is told, too.
const TOOLS_HOLD: Cached = Cached { ttl_ms: 300_000, public: false };

/// Makes the runtime of one client: a session of its own in the ledger.
pub(crate) type Make = Box<dyn Fn() -> Result<Runtime, ToolError> + Send + Sync>;

/// The runtime as a service.
pub(crate) struct Hands {
    sessions: Sessions,
    host: Arc<dyn Host>,
    instructions: Option<String>,
}

impl Hands {
    /// Hands whose sessions `make` makes; `host` does for its tools whatever the client cannot.
    pub(crate) fn new(make: Make, host: Arc<dyn Host>, instructions: Option<String>) -> Self {
        Self { sessions: Sessions::new(make), host, instructions }
    }

    /// Lets every session go, and everything that it has started.
    pub(crate) fn close(&self) {
        self.sessions.close();
    }

    fn runtime(&self, exchange: &Exchange) -> Result<Runtime, RpcError> {
        self.sessions.get(&exchange.session()).map_err(|error| RpcError::internal(error.message))
    }

    fn options(&self, runtime: &Runtime, exchange: &Arc<Exchange>) -> CallOptions {
        CallOptions {
            cancel: exchange.cancel().clone(),
            watch: exchange.wants_progress().then(|| watch(exchange)),
            asker: Some(Arc::new(asking::Client(Arc::clone(exchange)))),
            host: Some(Arc::new(asking::ClientHost {
                exchange: Arc::clone(exchange),
                host: Arc::clone(&self.host),
                runtime: runtime.clone(),
            })),
            ..CallOptions::default()
        }
    }
}

impl Service for Hands {
    fn identity(&self) -> Identity {
        Identity {
            name: "haft",
            title: "Haft",
            version: env!("CARGO_PKG_VERSION"),
            instructions: self.instructions.clone(),
        }
    }

    fn offers(&self) -> Offers {
        Offers { resources: true, prompts: true, logging: true, ..Offers::default() }
    }

    fn listen(&self, hub: &Hub) {
        self.sessions.tell(hub);
    }

    fn tools(&self, cursor: Option<&str>, exchange: &Arc<Exchange>) -> Result<Page, RpcError> {
        let runtime = self.runtime(exchange)?;
        // Who takes longer is told when they are there.
        runtime.meet(MEETING);
        let tools = runtime.definitions().iter().map(definition).collect();
        Page::of(tools, cursor, PAGE, TOOLS_HOLD)
    }

    fn call(&self, name: &str, arguments: Value, exchange: &Arc<Exchange>) -> Result<Value, RpcError> {
        let runtime = self.runtime(exchange)?;
        if !runtime.knows(name) {
            return Err(RpcError::params(format!(
                "Unknown tool: {name:?}; tools/list has those that there are"
            )));
        }
        let call = Call::new(format!("mcp_{}", exchange.id()), name, arguments);
        let done = runtime.run_blocking(call, self.options(&runtime, exchange));
        for denial in &done.receipt.denials {
            exchange.log(Level::Notice, "haft", &json!(denial));
        }
        Ok(result(done, exchange.version()))
    }

    fn resources(&self, cursor: Option<&str>, exchange: &Arc<Exchange>) -> Result<Page, RpcError> {
        let runtime = self.runtime(exchange)?;
        let all = resources::list(&runtime, self.options(&runtime, exchange))?;
        Page::of(all, cursor, PAGE, Cached::default())
    }

    fn templates(&self, cursor: Option<&str>, _exchange: &Arc<Exchange>) -> Result<Page, RpcError> {
        Page::of(resources::templates(), cursor, PAGE, Cached { ttl_ms: 3_600_000, public: true })
    }

    fn prompts(&self, cursor: Option<&str>, exchange: &Arc<Exchange>) -> Result<Page, RpcError> {
        let runtime = self.runtime(exchange)?;
        let all = skills::all(&runtime, self.options(&runtime, exchange))?;
        Page::of(all.iter().map(skills::Skill::listed).collect(), cursor, PAGE, Cached::default())
    }

    fn prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        exchange: &Arc<Exchange>,
    ) -> Result<Value, RpcError> {
        let runtime = self.runtime(exchange)?;
        let all = skills::all(&runtime, self.options(&runtime, exchange))?;
        let found = all.iter().find(|skill| skill.name == name);
        let found = found.ok_or_else(|| RpcError::params(format!("There is no prompt {name:?}")))?;
        Ok(found.prompt(arguments.get("arguments").and_then(Value::as_str)))
    }

    fn read(&self, uri: &str, exchange: &Arc<Exchange>) -> Result<(Vec<Value>, Cached), RpcError> {
        let runtime = self.runtime(exchange)?;
        let contents = resources::read(&runtime, uri, self.options(&runtime, exchange), exchange.version())?;
        Ok((contents, Cached::default()))
    }
}

/// Tells the client how far its call has come: each report is one step, with the newest of what the call has written.
fn watch(exchange: &Arc<Exchange>) -> Watch {
    let (exchange, steps) = (Arc::clone(exchange), std::sync::atomic::AtomicU32::new(0));
    Arc::new(move |state: &Execution| {
        let Execution::Running { progress: Some(progress), .. } = state else { return };
        let message = progress.output.as_deref().or(progress.message.as_deref());
        let step = steps.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        exchange.progress(f64::from(step), None, message);
    })
}
