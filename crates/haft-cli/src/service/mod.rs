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
use haft_mcp::serve::{
    CacheHint, ChangeNotifier, ListPage, LogLevel, McpService, RequestContext, ServerCapabilities,
    ServerIdentity,
};
use haft_mcp::wire::RpcError;
use sessions::Sessions;
pub(crate) use skills::{FOLDERS as SKILL_FOLDERS, front_matter};

/// How many tools or resources are on a page.
const PAGE: usize = 100;
/// How long a list of tools waits for servers that nobody has met yet.
const MEETING: Duration = Duration::from_secs(2);
/// For how long a list of tools holds; that it changed is told, too.
const TOOLS_HOLD: CacheHint = CacheHint { ttl_ms: 300_000, public: false };

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

    fn runtime(&self, context: &RequestContext) -> Result<Runtime, RpcError> {
        self.sessions.get(&context.session()).map_err(|error| RpcError::internal(error.message))
    }

    fn options(&self, runtime: &Runtime, context: &Arc<RequestContext>) -> CallOptions {
        CallOptions {
            cancel: context.cancel().clone(),
            watch: context.wants_progress().then(|| watch(context)),
            asker: Some(Arc::new(asking::Client(Arc::clone(context)))),
            host: Some(Arc::new(asking::ClientHost {
                context: Arc::clone(context),
                host: Arc::clone(&self.host),
                runtime: runtime.clone(),
            })),
            ..CallOptions::default()
        }
    }
}

impl McpService for Hands {
    fn identity(&self) -> ServerIdentity {
        ServerIdentity {
            name: "haft",
            title: "Haft",
            version: env!("CARGO_PKG_VERSION"),
            instructions: self.instructions.clone(),
        }
    }

    fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities { resources: true, prompts: true, logging: true, ..ServerCapabilities::default() }
    }

    fn set_notifier(&self, notifier: &ChangeNotifier) {
        self.sessions.tell(notifier);
    }

    fn list_tools(&self, cursor: Option<&str>, context: &Arc<RequestContext>) -> Result<ListPage, RpcError> {
        let runtime = self.runtime(context)?;
        // Who takes longer is told when they are there.
        runtime.meet(MEETING);
        let tools = runtime.definitions().iter().map(definition).collect();
        ListPage::new(tools, cursor, PAGE, TOOLS_HOLD)
    }

    fn call_tool(
        &self,
        name: &str,
        arguments: Value,
        context: &Arc<RequestContext>,
    ) -> Result<Value, RpcError> {
        let runtime = self.runtime(context)?;
        if !runtime.knows(name) {
            return Err(RpcError::invalid_params(format!(
                "Unknown tool: {name:?}; tools/list has those that there are"
            )));
        }
        let call = Call::new(format!("mcp_{}", context.id()), name, arguments);
        let done = runtime.run_blocking(call, self.options(&runtime, context));
        for denial in &done.receipt.denials {
            context.log(LogLevel::Notice, "haft", &json!(denial));
        }
        Ok(result(done, context.version()))
    }

    fn list_resources(
        &self,
        cursor: Option<&str>,
        context: &Arc<RequestContext>,
    ) -> Result<ListPage, RpcError> {
        let runtime = self.runtime(context)?;
        let all = resources::list(&runtime, self.options(&runtime, context))?;
        ListPage::new(all, cursor, PAGE, CacheHint::default())
    }

    fn list_resource_templates(
        &self,
        cursor: Option<&str>,
        _context: &Arc<RequestContext>,
    ) -> Result<ListPage, RpcError> {
        ListPage::new(resources::templates(), cursor, PAGE, CacheHint { ttl_ms: 3_600_000, public: true })
    }

    fn list_prompts(
        &self,
        cursor: Option<&str>,
        context: &Arc<RequestContext>,
    ) -> Result<ListPage, RpcError> {
        let runtime = self.runtime(context)?;
        let all = skills::all(&runtime, self.options(&runtime, context))?;
        ListPage::new(all.iter().map(skills::Skill::listed).collect(), cursor, PAGE, CacheHint::default())
    }

    fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        context: &Arc<RequestContext>,
    ) -> Result<Value, RpcError> {
        let runtime = self.runtime(context)?;
        let all = skills::all(&runtime, self.options(&runtime, context))?;
        let found = all.iter().find(|skill| skill.name == name);
        let found = found.ok_or_else(|| RpcError::invalid_params(format!("There is no prompt {name:?}")))?;
        Ok(found.prompt(arguments.get("arguments").and_then(Value::as_str)))
    }

    fn read_resource(
        &self,
        uri: &str,
        context: &Arc<RequestContext>,
    ) -> Result<(Vec<Value>, CacheHint), RpcError> {
        let runtime = self.runtime(context)?;
        let contents = resources::read(&runtime, uri, self.options(&runtime, context), context.version())?;
        Ok((contents, CacheHint::default()))
    }
}

/// Tells the client how far its call has come: each report is one step, with the newest of what the call has written.
fn watch(context: &Arc<RequestContext>) -> Watch {
    let (context, steps) = (Arc::clone(context), std::sync::atomic::AtomicU32::new(0));
    Arc::new(move |state: &Execution| {
        let Execution::Running { progress: Some(progress), .. } = state else { return };
        let message = progress.output.as_deref().or(progress.message.as_deref());
        let step = steps.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        context.progress(f64::from(step), None, message);
    })
}
