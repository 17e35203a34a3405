//! All servers of a session, and their tools as tools of its runtime.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_runtime::{Source, WeakRuntime};
use haft_tool::{AnyTool, Cancel, ErrorKind, Host, Output, Resource, ToolError, lock};
use serde_json::{Value, json};

use super::entry::Entry;
use super::ground::{Ground, OnChange};
use super::held::Held;
use super::result::piece;
use super::tool::RemoteTool;
use haft_mcp::client::oauth::BrowserOpener;
use haft_mcp::client::portable::{ToolNames, clean};
use haft_mcp::client::{McpClient, ServerInfo};

/// What a tool of a server would be called if everything were allowed.
pub type Naming = fn(server: &str, tool: &str) -> String;

/// `mcp__server__tool`, as most dialects have it.
pub fn with_prefix(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// `server__tool`, as clawft has it.
pub fn without_prefix(server: &str, tool: &str) -> String {
    format!("{server}__{tool}")
}

/// What holding servers needs.
pub struct Setup {
    /// Which servers there are.
    pub entries: Vec<Entry>,
    /// What their tools are called.
    pub naming: Naming,
    /// Where Haft keeps its state.
    pub home: PathBuf,
    /// Who answers what servers ask, where that is offered to them.
    pub host: Arc<dyn Host>,
    /// Who brings the user to a place to log in.
    pub opener: Arc<dyn BrowserOpener>,
}

/// All servers of a session. Clones are the same.
#[derive(Clone)]
pub struct Servers(Arc<Inner>);

pub(super) struct Inner {
    held: Vec<Arc<Held>>,
    naming: Naming,
    ground: Arc<Ground>,
    /// Names of the runtime's own tools, which nobody takes.
    taken: Mutex<BTreeSet<String>>,
    catalog: Mutex<Option<Arc<Catalog>>>,
    on_change: Mutex<Vec<OnChange>>,
}

/// Every tool that is known now, under its name.
struct Catalog {
    names: ToolNames,
    tools: Vec<Arc<RemoteTool>>,
}

impl Servers {
    /// These servers. None is started before it is needed.
    pub fn new(setup: Setup) -> Self {
        let Setup { entries, naming, home, host, opener } = setup;
        let ground = Arc::new(Ground::new(home, host, opener));
        let held = entries.into_iter().map(|entry| Arc::new(Held::new(entry, Arc::clone(&ground)))).collect();
        let inner = Arc::new(Inner {
            held,
            naming,
            ground,
            taken: Mutex::default(),
            catalog: Mutex::default(),
            on_change: Mutex::default(),
        });
        *lock(&inner.ground.servers) = Arc::downgrade(&inner);
        Self(inner)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.held.is_empty()
    }

    /// Meets, side by side, every server that is trusted and that nobody has met yet; waits so long at most. Those that take
    /// longer go on, and are told when they are there.
    pub fn meet(&self, limit: Duration) {
        self.0.tell(self.0.held.iter().filter_map(|held| held.untrusted()).map(|why| why.message));
        self.meet_those(|_| true, true, limit);
    }

    /// The same with those that may have a tool of that name.
    fn meet_for(&self, name: &str, limit: Duration) {
        // Whoever asked for the tool hears in its result why it is not there.
        self.meet_those(|held| self.0.may_be_of(held, name) != Some(false), false, limit);
    }

    fn meet_those(&self, are_meant: impl Fn(&Held) -> bool, told: bool, limit: Duration) {
        let strangers = self.0.held.iter().filter(|held| held.is_stranger() && are_meant(held));
        let strangers: Vec<_> = strangers.map(Arc::clone).collect();
        let (met, meeting) = channel();
        let count = strangers.len();
        for held in strangers {
            let (inner, met) = (Arc::clone(&self.0), met.clone());
            let work = move || {
                if held.client().is_ok() {
                    inner.forget_catalog();
                }
                if told {
                    inner.tell(held.warnings());
                }
                // Whoever waited may have gone on.
                let _ = met.send(());
            };
            drop(std::thread::Builder::new().name("mcp-meet".to_owned()).spawn(work));
        }
        let until = Instant::now() + limit;
        for _ in 0..count {
            if meeting.recv_timeout(until.saturating_duration_since(Instant::now())).is_err() {
                break;
            }
        }
    }

    /// Connects one server, if it is not, and tells who it is and what it offers.
    pub fn try_out(&self, name: &str) -> Result<Trial, ToolError> {
        let held = self.0.find(name)?;
        let start = Instant::now();
        let client = held.client()?;
        let connected = start.elapsed();
        self.0.forget_catalog();
        let tools = held
            .tools()
            .map(|tools| tools.iter().map(|tool| tool.name.clone()).collect())
            .unwrap_or_default();
        let left_out = held.tools().map(|tools| {
            let each = tools.iter().filter(|tool| !tool.left_out.is_empty());
            each.map(|tool| (tool.name.clone(), tool.left_out.clone())).collect()
        });
        let count = |listed: Result<usize, haft_mcp::client::ClientError>| listed.unwrap_or_default();
        let start = Instant::now();
        client.list_tools().map_err(|error| held.told(&error))?;
        Ok(Trial {
            info: client.info(),
            connected,
            round_trip: start.elapsed(),
            tools,
            left_out: left_out.unwrap_or_default(),
            resources: count(client.list_resources().map(|listed| listed.items.len())),
            prompts: count(client.list_prompts().map(|listed| listed.items.len())),
            warnings: held.warnings(),
        })
    }

    /// Brings the user to where the server's tokens are given out.
    pub fn login(&self, name: &str) -> Result<(), ToolError> {
        let held = self.0.find(name)?;
        let runtime = self.0.ground.runtime()?;
        match self.0.ground.authorizer(&held.entry, &runtime)? {
            Some(authorizer) => authorizer.login(&Cancel::new()).map_err(|error| held.told(&error)),
            None => Err(ToolError::invalid_arguments(format!("the server {name} takes no tokens from Haft"))),
        }
    }

    /// Forgets the tokens of a server.
    pub fn logout(&self, name: &str) -> Result<(), ToolError> {
        let held = self.0.find(name)?;
        let runtime = self.0.ground.runtime()?;
        match self.0.ground.authorizer(&held.entry, &runtime)? {
            Some(authorizer) => authorizer.forget().map_err(|error| held.told(&error)),
            None => Ok(()),
        }
    }

    /// What a tool of a server is called here.
    pub fn name(&self, server: &str, tool: &str) -> Option<String> {
        self.0.catalog().names.name(server, tool).map(str::to_owned)
    }

    /// The resources of one server, or of all that can be reached.
    pub fn resources(&self, server: Option<&str>) -> Result<Vec<Resource>, ToolError> {
        let chosen = match server {
            Some(name) => vec![self.0.find(name)?],
            None => self.0.held.iter().map(Arc::clone).collect(),
        };
        let mut all = Vec::new();
        let listed = side_by_side(&chosen, |held| {
            held.client().and_then(|client| client.list_resources().map_err(|error| held.told(&error)))
        });
        for (held, listed) in chosen.iter().zip(listed) {
            match listed {
                Ok(listed) => all.extend(listed.items.into_iter().map(|resource| Resource {
                    server: held.entry.name.clone(),
                    uri: resource.uri,
                    name: clean(&resource.name, 500),
                    description: resource.description.map(|words| clean(&words, 2_000)),
                    media_type: resource.mime_type,
                })),
                // One that fails does not hide the others, unless it was the one that was asked for.
                Err(error) if server.is_some() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(all)
    }

    /// What a resource of a server holds.
    pub fn resource(&self, server: &str, uri: &str) -> Result<Output, ToolError> {
        let held = self.0.find(server)?;
        let client = held.client()?;
        let contents = client.read_resource(uri, &Cancel::new()).map_err(|error| held.told(&error))?;
        let part = |part: &Value| piece(json!({"type": "resource", "resource": part}));
        let content = contents.as_array().into_iter().flatten().map(part).collect();
        Ok(Output { content, ..Output::default() })
    }

    /// Ends every connection, and every server that is a process.
    pub fn close(&self) {
        let open: Vec<_> = self.0.held.iter().filter(|held| held.is_open()).map(Arc::clone).collect();
        side_by_side(&open, Held::close);
    }
}

/// Does the same with each of them, at the same time: one that is slow keeps nobody waiting but whoever waits for all.
fn side_by_side<T: Send>(held: &[Arc<Held>], work: impl Fn(&Held) -> T + Sync) -> Vec<T> {
    let work = &work;
    match held {
        [one] => vec![work(one)],
        many => std::thread::scope(|scope| {
            let started: Vec<_> = many.iter().map(|held| scope.spawn(move || work(held))).collect();
            let done = started.into_iter().map(std::thread::ScopedJoinHandle::join);
            done.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        }),
    }
}

/// What came of trying a server out.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Who it says it is, and what it offers.
    pub info: ServerInfo,
    /// How long it took until it was there.
    pub connected: Duration,
    /// How long one list of its tools took.
    pub round_trip: Duration,
    /// Its tools that are offered, by their own names.
    pub tools: Vec<String>,
    /// What had to be left out of their schemas.
    pub left_out: Vec<(String, Vec<String>)>,
    /// How many resources it lists.
    pub resources: usize,
    /// How many prompts.
    pub prompts: usize,
    /// What is strange about it.
    pub warnings: Vec<String>,
}

impl Inner {
    fn find(&self, name: &str) -> Result<Arc<Held>, ToolError> {
        let found = self.held.iter().find(|held| held.entry.name == name);
        found.map(Arc::clone).ok_or_else(|| {
            let known: Vec<&str> = self.held.iter().map(|held| held.entry.name.as_str()).collect();
            let hint = match known.as_slice() {
                [] => "none is configured; add one with `haft mcp add`".to_owned(),
                known => format!("there are {}", known.join(", ")),
            };
            ToolError::new(ErrorKind::TargetNotFound, format!("there is no server {name:?}; {hint}"))
        })
    }

    /// Looks at a server's tools again if it has said since that they are others, and tells what came of it.
    pub(super) fn catch_up(&self, name: &str, client: &McpClient) -> Result<(), ToolError> {
        let held = self.find(name)?;
        if held.catch_up(client)? {
            self.tell(held.warnings());
            self.forget_catalog();
        }
        Ok(())
    }

    fn forget_catalog(&self) {
        *lock(&self.catalog) = None;
        for told in lock(&self.on_change).iter() {
            told();
        }
    }

    /// Every tool that is known without asking anybody.
    fn catalog(&self) -> Arc<Catalog> {
        let mut catalog = lock(&self.catalog);
        if let Some(catalog) = &*catalog {
            return Arc::clone(catalog);
        }
        let known: Vec<_> = self.held.iter().filter_map(|held| Some((held, held.tools()?))).collect();
        let pairs = known.iter().flat_map(|(held, tools)| {
            tools.iter().map(|tool| (held.entry.name.as_str(), tool.name.as_str()))
        });
        let names = ToolNames::new(pairs, self.naming, &lock(&self.taken));
        let mut tools = Vec::new();
        for (held, known) in &known {
            for tool in known.iter() {
                if let Some(name) = names.name(&held.entry.name, &tool.name) {
                    tools.push(Arc::new(RemoteTool::new(name, held, tool)));
                }
            }
        }
        let made = Arc::new(Catalog { names, tools });
        *catalog = Some(Arc::clone(&made));
        made
    }

    /// Whether somebody whom nobody has met yet may have a tool of this name.
    fn may_be_a_strangers(&self, name: &str) -> bool {
        self.held
            .iter()
            .filter(|held| held.is_stranger())
            .any(|held| self.may_be_of(held, name) != Some(false))
    }

    /// Whether a tool of this name would be that server's; nothing if its names do not tell.
    fn may_be_of(&self, held: &Held, name: &str) -> Option<bool> {
        let begins = self.alone(held, "x");
        Some(name.starts_with(begins.as_deref()?.strip_suffix('x')?))
    }

    /// What a tool of a server would be called if there were no other.
    fn alone(&self, held: &Held, tool: &str) -> Option<String> {
        let server = held.entry.name.as_str();
        ToolNames::new([(server, tool)], self.naming, &BTreeSet::new()).name(server, tool).map(str::to_owned)
    }

    /// Tells whoever runs this what is strange about servers that nobody asked for by name.
    fn tell(&self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            self.ground.host.notify("server", &json!({"warning": warning}));
        }
    }
}

impl Source for Servers {
    fn join(&self, runtime: WeakRuntime) {
        if let Some(held) = runtime.upgrade() {
            *lock(&self.0.taken) = held.registry().names().into_iter().collect();
        }
        self.0.ground.join(runtime);
    }

    fn tools(&self) -> Vec<Arc<dyn AnyTool>> {
        self.0.catalog().tools.iter().map(|tool| Arc::clone(tool) as Arc<dyn AnyTool>).collect()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn AnyTool>> {
        if self.0.held.is_empty() {
            return None;
        }
        let catalog = self.0.catalog();
        let found = catalog.tools.iter().find(|tool| tool.name() == name);
        found.map(|tool| Arc::clone(tool) as Arc<dyn AnyTool>)
    }

    fn may_have(&self, name: &str) -> bool {
        self.0.may_be_a_strangers(name)
    }

    fn absent(&self, name: &str) -> Option<ToolError> {
        let held = self.0.held.iter().find(|held| self.0.may_be_of(held, name) == Some(true))?;
        Some(held.without(|tool| self.0.alone(held, tool).as_deref() == Some(name)))
    }

    fn meet(&self, limit: Duration) {
        Self::meet(self, limit);
    }

    fn meet_for(&self, name: &str, limit: Duration) {
        Self::meet_for(self, name, limit);
    }

    fn on_change(&self, told: OnChange) {
        lock(&self.0.on_change).push(told);
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
