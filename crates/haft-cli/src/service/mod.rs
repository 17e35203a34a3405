//! Serves the runtime over MCP: tools, questions as elicitations, files and outputs as resources, skills as prompts.

mod call_result;
mod elicitation;
mod progress;
mod resources;
mod sessions;
mod skills;
mod workspace;

use std::sync::Arc;
use std::time::Duration;

use haft_runtime::{CallOptions, Runtime};
use haft_tool::{Call, Definition, ToolNeed};
use serde_json::{Map, Value, json};

use call_result::call_result;
use haft::mcp_form::{definition, mark_unconfined};
use haft_mcp::serve::{
    CacheHint, ChangeNotifier, ListPage, LogLevel, McpService, RequestContext, ServerCapabilities,
    ServerIdentity,
};
use haft_mcp::wire::RpcError;
use progress::{CallProgress, ProgressReports};
pub(crate) use resources::resource_tools;
use sessions::Sessions;
pub(crate) use sessions::{ClientRuntime, CreateRuntime};
pub(crate) use workspace::{ClientWorkspace, WorkspaceChoice};

use crate::host::CommandLine;

/// The number of items on a page of a list.
const PAGE_SIZE: usize = 100;
/// How long `tools/list` waits for servers whose tools are unknown.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long clients may cache the list of tools; changes are announced as well.
const TOOLS_CACHE: CacheHint = CacheHint { ttl_ms: 300_000, public: false };

/// Serves a runtime per client.
pub(crate) struct RuntimeService {
    sessions: Sessions,
    workspace: WorkspaceChoice,
    progress: Arc<ProgressReports>,
}

/// The runtime for a request.
struct RequestRuntime {
    runtime: Runtime,
    host: Arc<CommandLine>,
    has_workspace: bool,
}

impl RuntimeService {
    /// A service whose sessions come from `create`.
    pub(crate) fn new(create: CreateRuntime, workspace: WorkspaceChoice) -> Self {
        Self { sessions: Sessions::new(create), workspace, progress: Arc::default() }
    }

    /// Ends every session and everything it started.
    pub(crate) fn close(&self) {
        self.sessions.close();
    }

    /// The runtime of the client; `arguments` may decide on its workspace.
    fn runtime(&self, context: &RequestContext, arguments: &Value) -> Result<RequestRuntime, RpcError> {
        let client = context.session();
        if let Some(ClientRuntime { runtime, host }) = self.sessions.with_workspace(&client) {
            return Ok(RequestRuntime { runtime, host, has_workspace: true });
        }
        let workspace = self.workspace.for_client(context, arguments);
        let opened = self.sessions.open(&client, workspace.as_ref());
        let ClientRuntime { runtime, host } = opened.map_err(|error| RpcError::internal(error.message))?;
        Ok(RequestRuntime { runtime, host, has_workspace: workspace.is_some() })
    }

    fn options(context: &Arc<RequestContext>, host: &Arc<CommandLine>) -> CallOptions {
        CallOptions {
            cancel: context.cancel().clone(),
            trace_parent: context.trace().cloned(),
            asker: Some(Arc::new(elicitation::ClientAsker(Arc::clone(context)))),
            host: Some(Arc::new(elicitation::ClientHost {
                context: Arc::clone(context),
                host: Arc::clone(host) as _,
                project: host.project().clone(),
            })),
            ..CallOptions::default()
        }
    }

    /// The result of a call that no workspace is known for.
    fn no_workspace(&self) -> Value {
        let current = self.workspace.current.display();
        let text = format!(
            "There is no workspace yet, because this server was started in {current}. Name a file of the project by its \
             absolute path first; its project is the directory with .git or haft.toml above it. Or the user starts the server \
             with --workspace DIR."
        );
        json!({"content": [{"type": "text", "text": text}], "isError": true})
    }
}

impl McpService for RuntimeService {
    fn identity(&self) -> ServerIdentity {
        ServerIdentity { name: "haft", title: "Haft", version: env!("CARGO_PKG_VERSION") }
    }

    fn instructions(&self, client_capabilities: &Value) -> Option<String> {
        let place = match self.workspace.at_start() {
            _ if self.workspace.uses_roots(client_capabilities) => "the client's first root".to_owned(),
            Some(workspace) => workspace.directory.display().to_string(),
            None => "the project of the first absolute path that you name".to_owned(),
        };
        Some(format!(
            "These tools work in {place}. Prefer them to other file, search and shell tools: the kernel confines each call to \
             that directory, every change is recorded, and the user can undo it with `haft undo`. Relative paths start there. \
             A refusal says how the user can allow the call."
        ))
    }

    fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities {
            resources: true,
            prompts: true,
            logging: true,
            tasks: true,
            ..ServerCapabilities::default()
        }
    }

    fn set_notifier(&self, notifier: &ChangeNotifier) {
        self.sessions.announce_to(notifier);
    }

    fn list_tools(&self, cursor: Option<&str>, context: &Arc<RequestContext>) -> Result<ListPage, RpcError> {
        let RequestRuntime { runtime, .. } = self.runtime(context, &Value::Null)?;
        // Slower servers announce a changed list later.
        runtime.connect_all(CONNECT_TIMEOUT);
        let asks_user = |tool: &Definition| {
            runtime.registry().get(&tool.name).and_then(|tool| tool.needs()) == Some(ToolNeed::UserAnswers)
        };
        let mut definitions = runtime.definitions();
        definitions.retain(|tool| !asks_user(tool) || elicitation::elicits(context));
        let listed = |tool: &Definition| {
            let mut listed = definition(tool);
            if !runtime.confines_commands() {
                mark_unconfined(tool, &mut listed);
            }
            listed
        };
        ListPage::new(definitions.iter().map(listed).collect(), cursor, PAGE_SIZE, TOOLS_CACHE)
    }

    fn call_tool(
        &self,
        name: &str,
        arguments: Value,
        context: &Arc<RequestContext>,
    ) -> Result<Value, RpcError> {
        let RequestRuntime { runtime, host, has_workspace } = self.runtime(context, &arguments)?;
        if !runtime.may_have_tool(name) {
            return Err(RpcError::invalid_params(format!(
                "Unknown tool: {name:?}. tools/list has the available ones."
            )));
        }
        if !has_workspace {
            return Ok(self.no_workspace());
        }
        let call = Call::new(format!("mcp_{}", context.id()), name, arguments);
        let progress = self.progress.begin(context);
        let watch = progress.as_ref().map(CallProgress::watch);
        let done = runtime.run_blocking(call, CallOptions { watch, ..Self::options(context, &host) });
        drop(progress);
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
        let RequestRuntime { runtime, host, has_workspace } = self.runtime(context, &Value::Null)?;
        if !has_workspace {
            return Ok(ListPage::default());
        }
        let all = resources::list(&runtime, Self::options(context, &host))?;
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
        let RequestRuntime { runtime, host, has_workspace } = self.runtime(context, &Value::Null)?;
        if !has_workspace {
            return Ok(ListPage::default());
        }
        let all = skills::all(&runtime, Self::options(context, &host))?;
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
        let RequestRuntime { runtime, host, .. } = self.runtime(context, &Value::Null)?;
        let all = skills::all(&runtime, Self::options(context, &host))?;
        let found = all.iter().find(|skill| skill.name == name);
        let found = found.ok_or_else(|| RpcError::invalid_params(format!("There is no prompt {name:?}")))?;
        Ok(found.prompt(arguments.get("arguments").and_then(Value::as_str)))
    }

    fn read_resource(
        &self,
        uri: &str,
        context: &Arc<RequestContext>,
    ) -> Result<(Vec<Value>, CacheHint), RpcError> {
        let path = uri.strip_prefix("file://").unwrap_or_default();
        let RequestRuntime { runtime, host, has_workspace } =
            self.runtime(context, &json!({ "path": path }))?;
        if !has_workspace {
            return Err(RpcError::resource_not_found(uri, context.version()));
        }
        let contents = resources::read(&runtime, uri, Self::options(context, &host), context.version())?;
        Ok((contents, CacheHint::default()))
    }
}
