//! One server: connected when it is first needed, again when it was lost, and not too often when it fails.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use haft_runtime::Order;
use haft_tool::{ErrorKind, Secret, ToolError, lock};
use serde_json::{Value, json};

use super::entry::{Entry, Way};
use super::ground::Ground;
use super::offers::Offers;
use super::process::pipes;
use super::trust::{Known, changed};
use haft_mcp::client::portable::{PortableTool, make_portable};
use haft_mcp::client::{
    ClientError, ClientLimits, ClientOptions, HttpEndpoint, McpClient, McpError, ServerChange, ServerTool,
    ServerTransport,
};

/// How long a server that failed is left alone, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_mins(1));

/// One server.
pub(super) struct Held {
    pub(super) entry: Entry,
    pub(super) ground: Arc<Ground>,
    state: Mutex<State>,
    /// Held by the one who connects; others wait for what comes of it.
    connecting: Mutex<()>,
}

#[derive(Default)]
struct State {
    client: Option<Arc<McpClient>>,
    /// Its tools that the user has seen, as every provider takes them.
    tools: Option<Arc<[PortableTool]>>,
    /// How often it had said that its tools are others when they were looked at.
    heard: u64,
    /// What was strange about it.
    warnings: Vec<String>,
    failures: u32,
    rests_until: Option<Instant>,
    failure: String,
}

impl Held {
    pub(super) fn new(entry: Entry, ground: Arc<Ground>) -> Self {
        Self { entry, ground, state: Mutex::default(), connecting: Mutex::default() }
    }

    /// What the user has said of it.
    pub(super) fn known(&self) -> Result<Known, ToolError> {
        self.ground.trust.known(&self.entry)
    }

    /// Whether it may be used, and nobody knows its tools yet.
    pub(super) fn is_stranger(&self) -> bool {
        self.tools().is_none() && self.known().is_ok_and(|known| known.is_trusted(&self.entry))
    }

    /// What is strange about it so far, each a sentence that names it.
    pub(super) fn warnings(&self) -> Vec<String> {
        let name = &self.entry.name;
        let state = self.state();
        let strange = state.warnings.iter().map(|warning| format!("the server {name}: {warning}"));
        let failure = (!state.failure.is_empty()).then(|| state.failure.clone());
        strange.chain(failure).collect()
    }

    /// Why it may not be used, if its user has not said yes to it.
    pub(super) fn untrusted(&self) -> Option<ToolError> {
        let Entry { name, origin, .. } = &self.entry;
        let trusted = self.known().is_ok_and(|known| known.is_trusted(&self.entry));
        (!trusted).then(|| {
            ToolError::denied(format!(
                "the server {name} comes with {origin}, and nobody has said yes to it: look at it with `haft mcp get {name}` \
                 and allow it with `haft mcp trust {name}`"
            ))
        })
    }

    /// Why one of its tools is not there.
    pub(super) fn without(&self, is_meant: impl Fn(&str) -> bool) -> ToolError {
        if let Some(why) = self.untrusted() {
            return why;
        }
        let name = &self.entry.name;
        let known = self.known().unwrap_or_default();
        let waiting = known.pending.as_ref().map(|pending| changed(&known, pending)).unwrap_or_default();
        if let Some(tool) = waiting.into_iter().find(|tool| is_meant(tool)) {
            return ToolError::denied(format!(
                "the tool {tool} of the server {name} is not as you have seen it, and waits for your yes: `haft mcp get {name}` \
                 shows what changed, `haft mcp trust {name}` allows it"
            ));
        }
        let failure = self.state().failure.clone();
        if !failure.is_empty() {
            return ToolError::failed(failure);
        }
        let tools = self.tools().unwrap_or_default();
        let there: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let message = format!("the server {name} has no such tool; it has: {}", there.join(", "));
        ToolError::new(ErrorKind::NotFound, message)
    }

    /// Its tools, as far as they are known without asking it; nothing if it has never been asked.
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

    /// The connection, made if there is none.
    pub(super) fn client(&self) -> Result<Arc<McpClient>, ToolError> {
        let _one_at_a_time = lock(&self.connecting);
        // One that has ended by itself was asked nothing yet, so that to ask the next one is to ask once.
        let over = self.state().client.take_if(|client| client.is_closed());
        drop(over);
        {
            let state = self.state();
            if let Some(client) = &state.client {
                return Ok(Arc::clone(client));
            }
            if let Some(left) =
                state.rests_until.and_then(|until| until.checked_duration_since(Instant::now()))
            {
                let (name, failure) = (&self.entry.name, &state.failure);
                let again = left.as_secs() + 1;
                return Err(ToolError::failed(format!(
                    "the server {name} failed a moment ago and is tried again in {again} s: {failure}"
                )));
            }
        }
        match self.connect() {
            Ok(client) => {
                let mut state = self.state();
                (state.failures, state.rests_until) = (0, None);
                state.failure.clear();
                state.client = Some(Arc::clone(&client));
                Ok(client)
            }
            Err(error) => {
                let mut state = self.state();
                let pause = PAUSES.0.saturating_mul(1 << state.failures.min(10)).min(PAUSES.1);
                state.failures += 1;
                state.rests_until = Some(Instant::now() + pause);
                state.failure.clone_from(&error.message);
                Err(error)
            }
        }
    }

    fn connect(&self) -> Result<Arc<McpClient>, ToolError> {
        let Entry { name, origin, .. } = &self.entry;
        let known = self.known()?;
        if let Some(why) = self.untrusted() {
            return Err(why);
        }
        let runtime = self.ground.runtime()?;
        let transport = match &self.entry.way {
            Way::Process { argv, environment, cwd } => {
                let grants = known.grants(&self.entry);
                let order = Order {
                    name: name.clone(),
                    argv: argv.clone(),
                    cwd: cwd.clone(),
                    environment: environment.clone(),
                    writes: grants.writes,
                    network: grants.network.clone(),
                    unheld: grants.unheld,
                    origin: origin.to_string(),
                };
                ServerTransport::Stdio(pipes(runtime.accompany(&order)?))
            }
            Way::Http { url, headers, .. } => ServerTransport::Http(HttpEndpoint {
                url: url.clone(),
                headers: headers
                    .iter()
                    .map(|(key, value)| (key.clone(), Secret::new(value.clone())))
                    .collect(),
                http: runtime.http_service().streams_for(self.entry.host().into_iter().collect()),
                tokens: self.ground.authorize(&self.entry, &runtime)?,
            }),
        };
        drop(runtime);
        let mut limits = ClientLimits::default();
        if let Some(timeout) = self.entry.timeout {
            (limits.call_timeout, limits.max_call_time) = (timeout, limits.max_call_time.max(timeout));
        }
        let handler = Offers::of(&self.entry.offers, &self.ground);
        let options = ClientOptions { limits, handler, ..ClientOptions::default() };
        let client = McpClient::connect(transport, options).map_err(|error| self.told(&error))?;
        let client = Arc::new(client);
        self.look(&client)?;
        let (weak, ground) = (Arc::downgrade(&client), Arc::downgrade(&self.ground));
        let name = name.clone();
        client.on_change(move |change| {
            if change == ServerChange::Tools
                && let (Some(client), Some(ground)) = (weak.upgrade(), ground.upgrade())
            {
                // Whoever calls one of them meanwhile hears of a failure; there is nobody here to tell.
                let _ = ground.catch_up(&name, &client);
            }
        });
        Ok(client)
    }

    /// Looks at its tools again if it has said since that they are others; whether it has.
    pub(super) fn catch_up(&self, client: &McpClient) -> Result<bool, ToolError> {
        let behind = self.state().heard != client.tool_list_changes();
        if behind {
            self.look(client)?;
        }
        Ok(behind)
    }

    /// Asks for its tools, and holds back those that are not as the user has seen them.
    fn look(&self, client: &McpClient) -> Result<(), ToolError> {
        let heard = client.tool_list_changes();
        let listed = client.list_tools().map_err(|error| self.told(&error))?;
        let now: BTreeMap<String, Value> =
            listed.items.iter().map(|tool| (tool.name.clone(), pin(tool))).collect();
        let waiting = self.ground.trust.saw(&self.entry, &now)?;
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
                "{} of its tools are not as you have seen them and wait for your yes ({}): `haft mcp get {name}` shows what \
                 changed, `haft mcp trust {name}` allows it",
                waiting.len(),
                waiting.join(", ")
            ));
        }
        let mut state = self.state();
        state.heard = heard;
        state.warnings = warnings;
        state.tools = Some(Arc::from(self.offered(good)));
        Ok(())
    }

    fn offered(&self, tools: impl IntoIterator<Item = PortableTool>) -> Vec<PortableTool> {
        let only = self.entry.only.as_ref();
        let offered = tools.into_iter().filter(|tool| only.is_none_or(|only| only.contains(&tool.name)));
        let mut offered: Vec<_> = offered.collect();
        // One order, whoever told of them: a model's provider remembers what it has seen as long as it stays the same.
        offered.sort_by(|a, b| a.name.cmp(&b.name));
        offered
    }

    /// Lets a connection go that came to its end; the next call makes a new one.
    pub(super) fn lost(&self, client: &Arc<McpClient>) {
        let mut state = self.state();
        if state.client.as_ref().is_some_and(|held| Arc::ptr_eq(held, client)) {
            state.client = None;
        }
    }

    /// Whether there is a connection to end.
    pub(super) fn is_open(&self) -> bool {
        self.state().client.is_some()
    }

    /// Ends the connection, and the server if it is a process.
    pub(super) fn close(&self) {
        let client = self.state().client.take();
        if let Some(client) = client {
            client.close();
        }
    }

    /// What a tool's caller is told of trouble with the server.
    pub(super) fn told(&self, error: &ClientError) -> ToolError {
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

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// What of a tool the user has seen: everything that a model or a client may be led by.
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
