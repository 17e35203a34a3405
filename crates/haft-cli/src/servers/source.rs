//! All servers of a session as a source of tools for its runtime.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_runtime::{ToolSource, WeakRuntime};
use haft_tool::{AnyTool, Cancel, ErrorKind, Host, Output, Resource, ToolError, lock};
use serde_json::{Value, json};

use super::context::{HostLinks, OnChange, ServerContext};
use super::entry::ServerEntry;
use super::handle::ServerHandle;
use super::state::ServerSnapshot;
use super::tool::RemoteTool;
use super::tool_result::content_block;
use haft_mcp::client::oauth::BrowserOpener;
use haft_mcp::client::portable::{ToolNames, clean};
use haft_mcp::client::{McpClient, ServerInfo};

/// Makes the name of a server's tool, before it is adapted to the providers' limits.
pub type Naming = fn(server: &str, tool: &str) -> String;

/// `mcp__server__tool`, as most dialects have it.
pub fn with_prefix(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// `server__tool`, as clawft has it.
pub fn without_prefix(server: &str, tool: &str) -> String {
    format!("{server}__{tool}")
}

/// The parameters of [`Servers::new`].
pub struct ServersSetup {
    /// The configured servers.
    pub entries: Vec<ServerEntry>,
    /// How their tools are named.
    pub naming: Naming,
    /// Haft's state directory.
    pub home: PathBuf,
    /// Answers the requests that servers are allowed to make.
    pub host: Arc<dyn Host>,
    /// Opens the login page for the user.
    pub opener: Arc<dyn BrowserOpener>,
    /// Leads to the servers inside the program that drives this one, if one does.
    pub links: Option<HostLinks>,
}

/// All servers of a session. Clones share state.
#[derive(Clone)]
pub struct Servers(Arc<ServersInner>);

pub(super) struct ServersInner {
    handles: Vec<Arc<ServerHandle>>,
    naming: Naming,
    context: Arc<ServerContext>,
    /// The names of the runtime's own tools, which servers cannot take.
    taken: Mutex<BTreeSet<String>>,
    catalog: Mutex<Option<Arc<ToolCatalog>>>,
    on_change: Mutex<Vec<OnChange>>,
}

/// All tools listed so far, by name.
struct ToolCatalog {
    names: ToolNames,
    tools: Vec<Arc<RemoteTool>>,
}

impl Servers {
    /// Creates the set of servers. None is started before it is needed.
    pub fn new(setup: ServersSetup) -> Self {
        let ServersSetup { entries, naming, home, host, opener, links } = setup;
        let context = Arc::new(ServerContext::new(home, host, opener, links));
        let handles = entries
            .into_iter()
            .map(|entry| Arc::new(ServerHandle::new(entry, Arc::clone(&context))))
            .collect();
        let inner = Arc::new(ServersInner {
            handles,
            naming,
            context,
            taken: Mutex::default(),
            catalog: Mutex::default(),
            on_change: Mutex::default(),
        });
        *lock(&inner.context.servers) = Arc::downgrade(&inner);
        Self(inner)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.handles.is_empty()
    }

    /// The state of each server, in the order of their configuration.
    pub fn states(&self) -> Vec<ServerSnapshot> {
        self.0.handles.iter().map(|handle| ServerSnapshot::of(handle)).collect()
    }

    /// Connects in parallel to every trusted server whose tools are unknown, waiting at most `limit`. Slower servers finish
    /// in the background and announce a changed tool list.
    pub fn connect_all(&self, limit: Duration) {
        self.0.warn(self.0.handles.iter().filter_map(|handle| handle.untrusted()).map(|why| why.message));
        self.connect_where(|_| true, true, limit);
    }

    /// The same for the servers that may have a tool of that name.
    fn connect_for_tool(&self, name: &str, limit: Duration) {
        // The result of the call says why the tool is missing, so no warning is needed.
        self.connect_where(|handle| self.0.may_belong_to(handle, name) != Some(false), false, limit);
    }

    fn connect_where(&self, matches: impl Fn(&ServerHandle) -> bool, warn: bool, limit: Duration) {
        let undiscovered = self.0.handles.iter().filter(|handle| handle.is_undiscovered() && matches(handle));
        let undiscovered: Vec<_> = undiscovered.map(Arc::clone).collect();
        let (done, finished) = channel();
        let count = undiscovered.len();
        for handle in undiscovered.iter().map(Arc::clone) {
            let (inner, done) = (Arc::clone(&self.0), done.clone());
            let work = move || {
                if handle.client().is_ok() {
                    inner.invalidate_catalog();
                }
                if warn {
                    inner.warn(handle.warnings());
                }
                // The caller may have stopped waiting.
                let _ = done.send(());
            };
            drop(std::thread::Builder::new().name("mcp-connect".to_owned()).spawn(work));
        }
        let until = Instant::now() + limit;
        for _ in 0..count {
            if finished.recv_timeout(until.saturating_duration_since(Instant::now())).is_err() {
                break;
            }
        }
        if warn {
            let waiting =
                undiscovered.iter().filter(|handle| handle.is_undiscovered() && !handle.has_failed());
            self.0.warn(waiting.map(|handle| handle.not_connected_yet()));
        }
    }

    /// Connects to one server and reports its identity, tools and latency.
    pub fn test_server(&self, name: &str) -> Result<ServerReport, ToolError> {
        let handle = self.0.find(name)?;
        let start = Instant::now();
        let client = handle.client()?;
        let connected = start.elapsed();
        self.0.invalidate_catalog();
        let tools = handle
            .tools()
            .map(|tools| tools.iter().map(|tool| tool.name.clone()).collect())
            .unwrap_or_default();
        let left_out = handle.tools().map(|tools| {
            let each = tools.iter().filter(|tool| !tool.left_out.is_empty());
            each.map(|tool| (tool.name.clone(), tool.left_out.clone())).collect()
        });
        let count = |listed: Result<usize, haft_mcp::client::ClientError>| listed.unwrap_or_default();
        let start = Instant::now();
        client.list_tools().map_err(|error| handle.tool_error(&error))?;
        Ok(ServerReport {
            info: client.info(),
            connected,
            round_trip: start.elapsed(),
            tools,
            left_out: left_out.unwrap_or_default(),
            resources: count(client.list_resources().map(|listed| listed.items.len())),
            prompts: count(client.list_prompts().map(|listed| listed.items.len())),
            warnings: handle.warnings(),
        })
    }

    /// Runs the login for a server.
    pub fn login(&self, name: &str) -> Result<(), ToolError> {
        let handle = self.0.find(name)?;
        let runtime = self.0.context.runtime()?;
        match self.0.context.authorizer(&handle.entry, &runtime)? {
            Some(authorizer) => authorizer.login(&Cancel::new()).map_err(|error| handle.tool_error(&error)),
            None => Err(ToolError::invalid_arguments(format!("The server {name} uses no OAuth tokens"))),
        }
    }

    /// Deletes the tokens of a server.
    pub fn logout(&self, name: &str) -> Result<(), ToolError> {
        let handle = self.0.find(name)?;
        let runtime = self.0.context.runtime()?;
        match self.0.context.authorizer(&handle.entry, &runtime)? {
            Some(authorizer) => authorizer.forget().map_err(|error| handle.tool_error(&error)),
            None => Ok(()),
        }
    }

    /// The name of a server's tool in the runtime.
    pub fn name(&self, server: &str, tool: &str) -> Option<String> {
        self.0.catalog().names.name(server, tool).map(str::to_owned)
    }

    /// The resources of one server, or of all that answer.
    pub fn resources(&self, server: Option<&str>) -> Result<Vec<Resource>, ToolError> {
        let chosen = match server {
            Some(name) => vec![self.0.find(name)?],
            None => self.0.handles.iter().map(Arc::clone).collect(),
        };
        let mut all = Vec::new();
        let listed = in_parallel(&chosen, |handle| {
            handle
                .client()
                .and_then(|client| client.list_resources().map_err(|error| handle.tool_error(&error)))
        });
        for (handle, listed) in chosen.iter().zip(listed) {
            match listed {
                Ok(listed) => all.extend(listed.items.into_iter().map(|resource| Resource {
                    server: handle.entry.name.clone(),
                    uri: resource.uri,
                    name: clean(&resource.name, 500),
                    description: resource.description.map(|words| clean(&words, 2_000)),
                    media_type: resource.mime_type,
                })),
                // A failing server hides no other, unless it was asked for by name.
                Err(error) if server.is_some() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(all)
    }

    /// Reads a resource of a server.
    pub fn resource(&self, server: &str, uri: &str) -> Result<Output, ToolError> {
        let handle = self.0.find(server)?;
        let client = handle.client()?;
        let contents =
            client.read_resource(uri, &Cancel::new()).map_err(|error| handle.tool_error(&error))?;
        let part = |part: &Value| content_block(json!({"type": "resource", "resource": part}));
        let content = contents.as_array().into_iter().flatten().map(part).collect();
        Ok(Output::pieces(content))
    }

    /// Closes every connection and ends every server process.
    pub fn close(&self) {
        let open: Vec<_> = self.0.handles.iter().filter(|handle| handle.is_open()).map(Arc::clone).collect();
        in_parallel(&open, ServerHandle::close);
    }
}

/// Runs `work` for each server in parallel and waits for all.
fn in_parallel<T: Send>(handles: &[Arc<ServerHandle>], work: impl Fn(&ServerHandle) -> T + Sync) -> Vec<T> {
    let work = &work;
    match handles {
        [one] => vec![work(one)],
        many => std::thread::scope(|scope| {
            let started: Vec<_> = many.iter().map(|handle| scope.spawn(move || work(handle))).collect();
            let done = started.into_iter().map(std::thread::ScopedJoinHandle::join);
            done.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        }),
    }
}

/// The result of a test of a server.
#[derive(Debug, Clone)]
pub struct ServerReport {
    /// What the server reports about itself.
    pub info: ServerInfo,
    /// The time to connect.
    pub connected: Duration,
    /// The time of one `tools/list` request.
    pub round_trip: Duration,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// The parts of their schemas that were removed, by tool.
    pub left_out: Vec<(String, Vec<String>)>,
    /// The number of its resources.
    pub resources: usize,
    /// The number of its prompts.
    pub prompts: usize,
    /// Problems with the server.
    pub warnings: Vec<String>,
}

impl ServersInner {
    fn find(&self, name: &str) -> Result<Arc<ServerHandle>, ToolError> {
        let found = self.handles.iter().find(|handle| handle.entry.name == name);
        found.map(Arc::clone).ok_or_else(|| {
            let known: Vec<&str> = self.handles.iter().map(|handle| handle.entry.name.as_str()).collect();
            let hint = match known.as_slice() {
                [] => "None is configured; add one with `haft mcp add`.".to_owned(),
                known => format!("The configured servers are: {}", known.join(", ")),
            };
            ToolError::new(ErrorKind::TargetNotFound, format!("There is no server {name:?}. {hint}"))
        })
    }

    /// Lists a server's tools again if it has announced a change, and reports warnings.
    pub(super) fn refresh_tools(&self, name: &str, client: &McpClient) -> Result<(), ToolError> {
        let handle = self.find(name)?;
        if handle.refresh_tools(client)? {
            self.warn(handle.warnings());
            self.invalidate_catalog();
        }
        Ok(())
    }

    fn invalidate_catalog(&self) {
        *lock(&self.catalog) = None;
        for callback in lock(&self.on_change).iter() {
            callback();
        }
    }

    /// All tools that are known without connecting.
    fn catalog(&self) -> Arc<ToolCatalog> {
        let mut catalog = lock(&self.catalog);
        if let Some(catalog) = &*catalog {
            return Arc::clone(catalog);
        }
        let known: Vec<_> =
            self.handles.iter().filter_map(|handle| Some((handle, handle.tools()?))).collect();
        let pairs = known.iter().flat_map(|(handle, tools)| {
            tools.iter().map(|tool| (handle.entry.name.as_str(), tool.name.as_str()))
        });
        let names = ToolNames::new(pairs, self.naming, &lock(&self.taken));
        let mut tools = Vec::new();
        for (handle, known) in &known {
            for tool in known.iter() {
                if let Some(name) = names.name(&handle.entry.name, &tool.name) {
                    tools.push(Arc::new(RemoteTool::new(name, handle, tool)));
                }
            }
        }
        let made = Arc::new(ToolCatalog { names, tools });
        *catalog = Some(Arc::clone(&made));
        made
    }

    /// Whether an undiscovered server may have a tool of this name.
    fn may_be_undiscovered(&self, name: &str) -> bool {
        self.handles
            .iter()
            .filter(|handle| handle.is_undiscovered())
            .any(|handle| self.may_belong_to(handle, name) != Some(false))
    }

    /// Whether the name has the server's prefix; `None` if the server's names have no prefix.
    fn may_belong_to(&self, handle: &ServerHandle, name: &str) -> Option<bool> {
        let begins = self.name_if_alone(handle, "x");
        Some(name.starts_with(begins.as_deref()?.strip_suffix('x')?))
    }

    /// The name of a server's tool if it were the only tool.
    fn name_if_alone(&self, handle: &ServerHandle, tool: &str) -> Option<String> {
        let server = handle.entry.name.as_str();
        ToolNames::new([(server, tool)], self.naming, &BTreeSet::new()).name(server, tool).map(str::to_owned)
    }

    /// Sends warnings about servers to the host.
    fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            self.context.host.notify("server", &json!({"warning": warning}));
        }
    }
}

impl ToolSource for Servers {
    fn attach(&self, runtime: WeakRuntime) {
        if let Some(handle) = runtime.upgrade() {
            *lock(&self.0.taken) = handle.registry().names().into_iter().collect();
        }
        self.0.context.join(runtime);
    }

    fn tools(&self) -> Vec<Arc<dyn AnyTool>> {
        self.0.catalog().tools.iter().map(|tool| Arc::clone(tool) as Arc<dyn AnyTool>).collect()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn AnyTool>> {
        if self.0.handles.is_empty() {
            return None;
        }
        let catalog = self.0.catalog();
        let found = catalog.tools.iter().find(|tool| tool.name() == name);
        found.map(|tool| Arc::clone(tool) as Arc<dyn AnyTool>)
    }

    fn may_have(&self, name: &str) -> bool {
        self.0.may_be_undiscovered(name)
    }

    fn why_missing(&self, name: &str) -> Option<ToolError> {
        let handle = self.0.handles.iter().find(|handle| self.0.may_belong_to(handle, name) == Some(true))?;
        Some(handle.missing_tool_error(|tool| self.0.name_if_alone(handle, tool).as_deref() == Some(name)))
    }

    fn connect_all(&self, limit: Duration) {
        Self::connect_all(self, limit);
    }

    fn connect_for_tool(&self, name: &str, limit: Duration) {
        Self::connect_for_tool(self, name, limit);
    }

    fn on_change(&self, callback: OnChange) {
        lock(&self.0.on_change).push(callback);
    }

    fn resources(&self, of: Option<&str>) -> Result<Vec<Resource>, ToolError> {
        Self::resources(self, of)
    }

    fn resource(&self, of: &str, uri: &str) -> Result<Output, ToolError> {
        Self::resource(self, of, uri)
    }

    fn close(&self) {
        Self::close(self);
    }
}
