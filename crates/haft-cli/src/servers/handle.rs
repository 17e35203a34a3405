//! One server: connected on first use, reconnected after it was lost, with a growing delay after failures.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use haft_runtime::ServerLaunch;
use haft_tool::{ErrorKind, Network, Secret, ToolError, lock};
use serde_json::{Value, json};

use super::client_features::ClientFeatures;
use super::context::ServerContext;
use super::entry::{ServerEntry, ServerLocation};
use super::package_runner::PackageRunner;
use super::process::{EndIfRefused, pipes};
use super::refusals::{ServerRefusals, ServerRemedies};
use super::trust::{KnownServer, changed_tools};
use haft_mcp::client::portable::{PortableTool, make_portable};
use haft_mcp::client::{
    ClientError, ClientLimits, ClientOptions, HttpEndpoint, McpClient, McpError, ServerChange, ServerTool,
    ServerTransport,
};

/// The first and the longest delay before a failed server is started again.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_mins(1));

/// How long a server may take to start if its program downloads it first.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_mins(3);

/// One server.
pub(super) struct ServerHandle {
    pub(super) entry: ServerEntry,
    pub(super) context: Arc<ServerContext>,
    state: Mutex<ConnectionState>,
    /// Locked while one caller connects; the others wait for its result.
    connecting: Mutex<()>,
}

#[derive(Default)]
struct ConnectionState {
    client: Option<Arc<McpClient>>,
    /// What the sandbox refuses to its process.
    refusals: Option<ServerRefusals>,
    /// The tools that the user has accepted, adapted to every provider.
    tools: Option<Arc<[PortableTool]>>,
    /// The server's count of tool list changes when `tools` was loaded.
    tool_list_version: u64,
    /// Problems found while loading its tools.
    warnings: Vec<String>,
    failures: u32,
    retry_after: Option<Instant>,
    failure: String,
}

impl ServerHandle {
    pub(super) fn new(entry: ServerEntry, context: Arc<ServerContext>) -> Self {
        Self { entry, context, state: Mutex::default(), connecting: Mutex::default() }
    }

    /// The stored consent and tools of the server.
    pub(super) fn known(&self) -> Result<KnownServer, ToolError> {
        self.context.trust.known(&self.entry)
    }

    /// Whether the server is trusted and its tools have never been listed.
    pub(super) fn is_undiscovered(&self) -> bool {
        self.tools().is_none() && self.known().is_ok_and(|known| known.is_trusted(&self.entry))
    }

    /// Warnings about the server, each a sentence that names it.
    pub(super) fn warnings(&self) -> Vec<String> {
        let name = &self.entry.name;
        let state = self.state();
        let warnings = state.warnings.iter().map(|warning| format!("the server {name}: {warning}"));
        let failure = (!state.failure.is_empty()).then(|| state.failure.clone());
        warnings.chain(failure).collect()
    }

    /// The error for a server that the user has not consented to.
    pub(super) fn untrusted(&self) -> Option<ToolError> {
        let ServerEntry { name, origin, .. } = &self.entry;
        let trusted = self.known().is_ok_and(|known| known.is_trusted(&self.entry));
        (!trusted).then(|| {
            ToolError::denied(format!(
                "The server {name} comes with {origin} and is not trusted yet. Review it with `haft mcp get {name}`, then allow \
                 it with `haft mcp trust {name}`."
            ))
        })
    }

    /// The error for a call of a tool that the server does not offer.
    pub(super) fn missing_tool_error(&self, is_meant: impl Fn(&str) -> bool) -> ToolError {
        if let Some(why) = self.untrusted() {
            return why;
        }
        let name = &self.entry.name;
        let known = self.known().unwrap_or_default();
        let waiting =
            known.pending.as_ref().map(|pending| changed_tools(&known, pending)).unwrap_or_default();
        if let Some(tool) = waiting.into_iter().find(|tool| is_meant(tool)) {
            return ToolError::denied(format!(
                "The tool {tool} of the server {name} has changed and needs your consent. `haft mcp get {name}` shows what \
                 changed, `haft mcp trust {name}` allows it."
            ));
        }
        let failure = self.state().failure.clone();
        if !failure.is_empty() {
            return ToolError::failed(failure);
        }
        let Some(tools) = self.tools() else {
            return ToolError::failed(self.not_connected_yet());
        };
        let there: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let message = format!("The server {name} has no such tool. It has: {}", there.join(", "));
        ToolError::new(ErrorKind::NotFound, message)
    }

    /// Says that the server is still connecting.
    pub(super) fn not_connected_yet(&self) -> String {
        format!("the server {} has not answered yet, so its tools are not known", self.entry.name)
    }

    /// Whether the last attempt to connect has failed.
    pub(super) fn has_failed(&self) -> bool {
        !self.state().failure.is_empty()
    }

    /// The tools as last listed, without connecting; `None` if they were never listed.
    pub(super) fn tools(&self) -> Option<Arc<[PortableTool]>> {
        if let Some(tools) = &self.state().tools {
            return Some(Arc::clone(tools));
        }
        let known = self.known().ok().filter(|known| known.seen && known.is_trusted(&self.entry))?;
        let seen = known.tools.iter().filter_map(|(name, pin)| make_portable(&pinned(name, pin)).ok());
        let tools: Arc<[PortableTool]> = Arc::from(self.offered(seen));
        self.state().tools = Some(Arc::clone(&tools));
        Some(tools)
    }

    /// The connection, opened if there is none.
    pub(super) fn client(&self) -> Result<Arc<McpClient>, ToolError> {
        let _one_at_a_time = lock(&self.connecting);
        // A connection that ended by itself has not received this request, so sending it to a new one is safe.
        let over = self.state().client.take_if(|client| client.is_closed());
        drop(over);
        {
            let state = self.state();
            if let Some(client) = &state.client {
                return Ok(Arc::clone(client));
            }
            if let Some(left) =
                state.retry_after.and_then(|until| until.checked_duration_since(Instant::now()))
            {
                let (name, failure) = (&self.entry.name, &state.failure);
                let again = left.as_secs() + 1;
                return Err(ToolError::failed(format!(
                    "The server {name} failed and is tried again in {again} s: {failure}"
                )));
            }
        }
        match self.connect() {
            Ok(client) => {
                tracing::debug!(server = %self.entry.name, "connected");
                let mut state = self.state();
                (state.failures, state.retry_after) = (0, None);
                state.failure.clear();
                state.client = Some(Arc::clone(&client));
                Ok(client)
            }
            Err(error) => {
                tracing::warn!(server = %self.entry.name, kind = ?error.kind, "connecting failed");
                let mut state = self.state();
                let pause = RETRY_DELAYS.0.saturating_mul(1 << state.failures.min(10)).min(RETRY_DELAYS.1);
                state.failures += 1;
                state.retry_after = Some(Instant::now() + pause);
                state.failure.clone_from(&error.message);
                Err(error)
            }
        }
    }

    fn connect(&self) -> Result<Arc<McpClient>, ToolError> {
        let ServerEntry { name, origin, .. } = &self.entry;
        let known = self.known()?;
        if let Some(why) = self.untrusted() {
            return Err(why);
        }
        let runtime = self.context.runtime()?;
        let mut starting = None;
        let transport = match &self.entry.location {
            ServerLocation::Process { argv, environment, cwd } => {
                let grants = known.grants(&self.entry);
                let remedies = ServerRemedies::new(&self.entry, grants, runtime.workspace());
                let (mut network, mut environment) = (grants.network.clone(), environment.clone());
                match PackageRunner::of(argv) {
                    Some(runner) if self.entry.downloads => network = runner.download_network(&network),
                    Some(runner) if network == Network::None => {
                        environment.extend(runner.offline(&environment));
                    }
                    _ => {}
                }
                let launch = ServerLaunch {
                    name: name.clone(),
                    argv: argv.clone(),
                    cwd: cwd.clone(),
                    environment,
                    writes: grants.writes,
                    network,
                    own_caches: PackageRunner::of(argv).is_some(),
                    unsandboxed: grants.unsandboxed,
                    origin: origin.to_string(),
                };
                let process = runtime.start_server(&launch)?;
                starting = Some(EndIfRefused::watch(&process.control));
                let control = Arc::clone(&process.control);
                self.state().refusals = Some(ServerRefusals { control, remedies: remedies.clone() });
                ServerTransport::Stdio(pipes(process, remedies))
            }
            ServerLocation::Http { url, headers, .. } => ServerTransport::Http(HttpEndpoint {
                url: url.clone(),
                headers: headers
                    .iter()
                    .map(|(key, value)| (key.clone(), Secret::new(value.clone())))
                    .collect(),
                http: runtime.http_service().streams_for(self.entry.host().into_iter().collect()),
                tokens: self.context.authorize(&self.entry, &runtime)?,
            }),
            ServerLocation::Host => ServerTransport::Linked(self.context.link(name)?),
        };
        drop(runtime);
        let mut limits = ClientLimits::default();
        if self.entry.downloads {
            limits.connect_timeout = DOWNLOAD_TIMEOUT;
        }
        if let Some(timeout) = self.entry.timeout {
            (limits.call_timeout, limits.max_call_time) = (timeout, limits.max_call_time.max(timeout));
        }
        let handler = ClientFeatures::of(&self.entry.offers, &self.context);
        let options = ClientOptions { limits, handler, ..ClientOptions::default() };
        let client = McpClient::connect(transport, options);
        drop(starting);
        let client = client.map_err(|error| self.start_error(&error))?;
        let client = Arc::new(client);
        self.load_tools(&client)?;
        let (weak, context) = (Arc::downgrade(&client), Arc::downgrade(&self.context));
        let name = name.clone();
        client.on_change(move |change| {
            if change == ServerChange::Tools
                && let (Some(client), Some(context)) = (weak.upgrade(), context.upgrade())
            {
                // A failure is reported by the next call of one of the server's tools.
                let _ = context.refresh_tools(&name, &client);
            }
        });
        Ok(client)
    }

    /// Lists the tools again if the server has announced a change; returns whether it has.
    pub(super) fn refresh_tools(&self, client: &McpClient) -> Result<bool, ToolError> {
        let behind = self.state().tool_list_version != client.tool_list_changes();
        if behind {
            self.load_tools(client)?;
        }
        Ok(behind)
    }

    /// Lists the tools and holds back those that differ from what the user has accepted.
    fn load_tools(&self, client: &McpClient) -> Result<(), ToolError> {
        let tool_list_version = client.tool_list_changes();
        let listed = client.list_tools().map_err(|error| self.tool_error(&error))?;
        let now: BTreeMap<String, Value> =
            listed.items.iter().map(|tool| (tool.name.clone(), pin(tool))).collect();
        let waiting = self.context.trust.record_tools(&self.entry, &now)?;
        let mut warnings = listed.warnings;
        let mut good = Vec::new();
        for tool in listed.items.iter().filter(|tool| !waiting.contains(&tool.name)) {
            match make_portable(tool) {
                Ok(tool) => good.push(tool),
                Err(why) => warnings.push(format!("the tool {:?} is left out: {why}", tool.name)),
            }
        }
        if !waiting.is_empty() {
            let name = &self.entry.name;
            warnings.push(format!(
                "tools that changed need your consent ({} of them: {}): `haft mcp get {name}` shows what changed, `haft mcp \
                 trust {name}` allows it",
                waiting.len(),
                waiting.join(", ")
            ));
        }
        let mut state = self.state();
        state.tool_list_version = tool_list_version;
        state.warnings = warnings;
        state.tools = Some(Arc::from(self.offered(good)));
        Ok(())
    }

    fn offered(&self, tools: impl IntoIterator<Item = PortableTool>) -> Vec<PortableTool> {
        let only = self.entry.only.as_ref();
        let offered = tools.into_iter().filter(|tool| only.is_none_or(|only| only.contains(&tool.name)));
        let mut offered: Vec<_> = offered.collect();
        // A stable order, because a change in the tool list invalidates the provider's prompt cache.
        offered.sort_by(|a, b| a.name.cmp(&b.name));
        offered
    }

    /// Drops a connection that ended; the next call opens a new one.
    pub(super) fn lost(&self, client: &Arc<McpClient>) {
        let mut state = self.state();
        if state.client.as_ref().is_some_and(|handle| Arc::ptr_eq(handle, client)) {
            state.client = None;
        }
    }

    /// What the sandbox refuses to the server, if it is a process.
    pub(super) fn refusals(&self) -> Option<ServerRefusals> {
        self.state().refusals.clone()
    }

    /// Whether there is a connection.
    pub(super) fn is_open(&self) -> bool {
        self.state().client.is_some()
    }

    /// Closes the connection, and ends the server if it is a process.
    pub(super) fn close(&self) {
        let client = self.state().client.take();
        if let Some(client) = client {
            client.close();
        }
    }

    /// The error of a server that did not start. One that its program must download first says how.
    fn start_error(&self, error: &ClientError) -> ToolError {
        let mut error = self.tool_error(error);
        if let ServerLocation::Process { argv, .. } = &self.entry.location
            && PackageRunner::of(argv).is_some()
            && !self.entry.downloads
            && self.known().is_ok_and(|known| known.grants(&self.entry).network == Network::None)
        {
            let name = &self.entry.name;
            let said = error.message.trim_end_matches('.');
            error.message = format!(
                "{said}. It has no network; if it was not downloaded yet: haft mcp test {name} --download"
            );
        }
        error
    }

    /// Converts an error of the connection to the error of a call.
    pub(super) fn tool_error(&self, error: &ClientError) -> ToolError {
        let kind = match &error.kind {
            McpError::TimedOut => ErrorKind::Timeout,
            McpError::Cancelled => ErrorKind::Interrupted,
            McpError::Rpc(answer) if answer.code == haft_mcp::wire::INVALID_PARAMS => {
                ErrorKind::InvalidArguments
            }
            McpError::Unauthorized => ErrorKind::PermissionDenied,
            _ => ErrorKind::ExecutionFailed,
        };
        ToolError::new(kind, format!("the server {}: {}", self.entry.name, error.message))
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        lock(&self.state)
    }
}

/// The parts of a tool's definition that consent covers: everything that can influence a model or client.
fn pin(tool: &ServerTool) -> Value {
    json!({
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": tool.annotations,
    })
}

fn pinned(name: &str, pin: &Value) -> ServerTool {
    let word = |field: &str| pin.get(field).and_then(Value::as_str).map(str::to_owned);
    ServerTool {
        name: name.to_owned(),
        title: word("title"),
        description: word("description").unwrap_or_default(),
        input_schema: pin.get("inputSchema").cloned().unwrap_or_default(),
        output_schema: pin.get("outputSchema").cloned().filter(|schema| !schema.is_null()),
        annotations: pin.get("annotations").cloned().unwrap_or_default(),
    }
}
