//! Serves the runtime over MCP: tools, questions as elicitations, files and outputs as resources, skills as prompts.

mod call_result;
mod elicitation;
mod resources;
mod sessions;
mod skills;

use std::sync::Arc;
use std::time::Duration;

use haft_runtime::{CallOptions, Runtime, Watch};
use haft_tool::{Call, Execution, ToolError};
use serde_json::{Map, Value, json};

use call_result::call_result;
use haft::mcp_form::definition;
use haft_mcp::serve::{
    CacheHint, ChangeNotifier, ListPage, LogLevel, McpService, RequestContext, ServerCapabilities,
    ServerIdentity,
};
use haft_mcp::wire::RpcError;

use crate::host::CommandLine;
pub(crate) use resources::resource_tools;
use sessions::Sessions;
pub(crate) use skills::{FOLDERS as SKILL_FOLDERS, front_matter};

/// The number of items on a page of a list.
const PAGE_SIZE: usize = 100;
/// How long `tools/list` waits for servers whose tools are unknown.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long clients may cache the list of tools; changes are announced as well.
const TOOLS_CACHE: CacheHint = CacheHint { ttl_ms: 300_000, public: false };

/// Creates the runtime of one client, with its own session in the ledger.
pub(crate) type CreateRuntime = Box<dyn Fn() -> Result<Runtime, ToolError> + Send + Sync>;

/// Serves a runtime per client.
pub(crate) struct RuntimeService {
    sessions: Sessions,
    host: Arc<CommandLine>,
    instructions: Option<String>,
}

impl RuntimeService {
    /// A service whose sessions come from `create`; `host` does what the client cannot.
    pub(crate) fn new(create: CreateRuntime, host: Arc<CommandLine>, instructions: Option<String>) -> Self {
        Self { sessions: Sessions::new(create), host, instructions }
    }

    /// Ends every session and everything it started.
    pub(crate) fn close(&self) {
        self.sessions.close();
    }

    fn runtime(&self, context: &RequestContext) -> Result<Runtime, RpcError> {
        self.sessions.get(&context.session()).map_err(|error| RpcError::internal(error.message))
    }

    fn options(&self, context: &Arc<RequestContext>) -> CallOptions {
        CallOptions {
            cancel: context.cancel().clone(),
            watch: context.wants_progress().then(|| report_progress(context)),
            asker: Some(Arc::new(elicitation::ClientAsker(Arc::clone(context)))),
            host: Some(Arc::new(elicitation::ClientHost {
                context: Arc::clone(context),
                host: Arc::clone(&self.host) as _,
                project: self.host.project().clone(),
            })),
            ..CallOptions::default()
        }
    }
}

impl McpService for RuntimeService {
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
        self.sessions.announce_to(notifier);
    }

    fn list_tools(&self, cursor: Option<&str>, context: &Arc<RequestContext>) -> Result<ListPage, RpcError> {
        let runtime = self.runtime(context)?;
        // Slower servers announce a changed list later.
        runtime.connect_all(CONNECT_TIMEOUT);
        let tools = runtime.definitions().iter().map(definition).collect();
        ListPage::new(tools, cursor, PAGE_SIZE, TOOLS_CACHE)
    }

    fn call_tool(
        &self,
        name: &str,
        arguments: Value,
        context: &Arc<RequestContext>,
    ) -> Result<Value, RpcError> {
        let runtime = self.runtime(context)?;
        if !runtime.may_have_tool(name) {
            return Err(RpcError::invalid_params(format!(
                "Unknown tool: {name:?}. tools/list has the available ones."
            )));
        }
        let call = Call::new(format!("mcp_{}", context.id()), name, arguments);
        let done = runtime.run_blocking(call, self.options(context));
        for denial in &done.receipt.denials {
            context.log(LogLevel::Notice, "haft", &json!(denial));
        }
        Ok(call_result(done, context.version()))
    }

    fn list_resources(
        &self,
        cursor: Option<&str>,
        context: &Arc<RequestContext>,
    ) -> Result<ListPage, RpcError> {
        let runtime = self.runtime(context)?;
        let all = resources::list(&runtime, self.options(context))?;
        ListPage::new(all, cursor, PAGE_SIZE, CacheHint::default())
    }

    fn list_resource_templates(
        &self,
        cursor: Option<&str>,
        _context: &Arc<RequestContext>,
    ) -> Result<ListPage, RpcError> {
        ListPage::new(
            resources::templates(),
            cursor,
            PAGE_SIZE,
            CacheHint { ttl_ms: 3_600_000, public: true },
        )
    }

    fn list_prompts(
        &self,
        cursor: Option<&str>,
        context: &Arc<RequestContext>,
    ) -> Result<ListPage, RpcError> {
        let runtime = self.runtime(context)?;
        let all = skills::all(&runtime, self.options(context))?;
        ListPage::new(
            all.iter().map(skills::Skill::listed).collect(),
            cursor,
            PAGE_SIZE,
            CacheHint::default(),
        )
    }

    fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        context: &Arc<RequestContext>,
    ) -> Result<Value, RpcError> {
        let runtime = self.runtime(context)?;
        let all = skills::all(&runtime, self.options(context))?;
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
        let contents = resources::read(&runtime, uri, self.options(context), context.version())?;
        Ok((contents, CacheHint::default()))
    }
}

/// Sends progress to the client: each report is one step, with the newest output.
fn report_progress(context: &Arc<RequestContext>) -> Watch {
    let (context, steps) = (Arc::clone(context), std::sync::atomic::AtomicU32::new(0));
    Arc::new(move |state: &Execution| {
        let Execution::Running { progress: Some(progress), .. } = state else { return };
        let message = progress.output.as_deref().or(progress.message.as_deref());
        let step = steps.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        context.progress(f64::from(step), None, message);
    })
}
