//! Building a runtime.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use crate::world::Ground;
use haft_files::{Root, real_named};
use haft_ledger::{Ledger, LedgerHandle, NewSession};
use haft_policy::{Behavior, Mode, Policy, Preset, Rule, Rules};
use haft_sandbox::{Enclosure, Environment, TaskRoom};
use haft_tool::net::Authority;
use haft_tool::{
    AnyTool, Dialect, ErrorKind, Host, Network, NoHost, Planning, Reads, Sandbox, Scope, Tool, ToolError,
};

use crate::runtime::RuntimeInner;
use crate::steps::ask::{Asker, DenyAll};
use crate::tasks::News;
use crate::{Registry, Runtime, Source};

/// How much of a task's output is kept on disk unless somebody says otherwise.
const TASK_BYTES: u64 = 64 << 20;

/// Collects what a runtime is made of.
#[must_use = "a builder does nothing until `build`"]
#[derive(Default)]
pub struct Builder {
    workspace: Option<PathBuf>,
    directories: Vec<PathBuf>,
    home: Option<PathBuf>,
    dialect: Option<Dialect>,
    others: Vec<Dialect>,
    tools: Vec<Arc<dyn AnyTool>>,
    sources: Vec<Arc<dyn Source>>,
    only: Option<Vec<String>>,
    rules: Vec<(Behavior, String, String)>,
    mode: Mode,
    asker: Option<Arc<dyn Asker>>,
    host: Option<Arc<dyn Host>>,
    environment: Option<Environment>,
    cache: Option<PathBuf>,
    network: Network,
    endpoints: Vec<String>,
    sandbox: Preset,
    writable: Vec<PathBuf>,
    readable: Vec<String>,
    task_bytes: Option<u64>,
    no_tasks: Option<String>,
    session: Option<String>,
    entry_point: Option<String>,
    granted: Vec<(String, PathBuf, String)>,
    any_workspace: bool,
}

impl Builder {
    /// The folder that calls work in and may change; the current one if nothing is said.
    pub fn workspace(mut self, path: impl Into<PathBuf>) -> Self {
        self.workspace = Some(path.into());
        self
    }

    /// One more folder that calls may change.
    pub fn add_directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directories.push(path.into());
        self
    }

    /// Where the ledger lies; `$HAFT_HOME` or the user's state directory if nothing is said.
    pub fn home(mut self, path: impl Into<PathBuf>) -> Self {
        self.home = Some(path.into());
        self
    }

    /// The tools of a dialect, and its ways.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// The tools of one more dialect, which keep its ways beside those of the first. See [`Dialect::only`] for a part
    /// of them.
    pub fn also(mut self, dialect: Dialect) -> Self {
        self.others.push(dialect);
        self
    }

    /// One more tool. One of the same name, the dialect's too, is replaced.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.any_tool(Arc::new(tool))
    }

    /// One more tool whose input type is not known here.
    pub fn any_tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Tools that come and go while the runtime lives. Those of the dialect keep their names.
    pub fn source(mut self, source: Arc<dyn Source>) -> Self {
        self.sources.push(source);
        self
    }

    /// Offers only these tools.
    pub fn only(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.only = Some(names.into_iter().collect());
        self
    }

    /// A rule that lets calls run, for example `Bash` or `Edit(src/**)`; `origin` is cited in decisions.
    pub fn allow(self, rule: impl Into<String>, origin: impl Into<String>) -> Self {
        self.rule(Behavior::Allow, rule, origin)
    }

    /// A rule, whatever it says.
    pub fn rule(mut self, behavior: Behavior, rule: impl Into<String>, origin: impl Into<String>) -> Self {
        self.rules.push((behavior, rule.into(), origin.into()));
        self
    }

    /// How much runs without a question.
    pub fn permission_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Lets `tool` change one path, wherever it lies; `origin` is cited in decisions.
    pub fn grant(
        mut self,
        tool: impl Into<String>,
        path: impl Into<PathBuf>,
        origin: impl Into<String>,
    ) -> Self {
        self.granted.push((tool.into(), path.into(), origin.into()));
        self
    }

    /// Calls change nothing but what is granted path by path, so that the workspace may be any folder: the user's home too,
    /// where the ledger and the settings lie.
    pub fn any_workspace(mut self) -> Self {
        self.any_workspace = true;
        self
    }

    /// Who answers questions; nobody if nothing is said, and then each is answered with no.
    pub fn asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Whoever runs the tools, for what they need beyond a machine; nobody if nothing is said. The file of its
    /// settings is protected.
    pub fn host(mut self, host: Arc<dyn Host>) -> Self {
        self.host = Some(host);
        self
    }

    /// What commands see of the environment; a scrubbed copy of this process's if nothing is said.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Where the caches of commands live on; `$HAFT_CACHE` or the user's cache directory if nothing is said.
    pub fn cache(mut self, path: impl Into<PathBuf>) -> Self {
        self.cache = Some(path.into());
        self
    }

    /// What commands may reach; nothing if nothing is said.
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// One host, as `host` or `host:port`, that the user's own configuration names: tools that are set up to use it reach it
    /// without a question, also where it is a private address.
    pub fn endpoint(mut self, host: impl Into<String>) -> Self {
        self.endpoints.push(host.into());
        self
    }

    /// What may be written, in one word; the kernel holds commands to it.
    pub fn sandbox(mut self, sandbox: Preset) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// One path that may be written although it is guarded or lies outside.
    pub fn allow_write(mut self, path: impl Into<PathBuf>) -> Self {
        self.writable.push(path.into());
        self
    }

    /// One entry of the list of secrets that commands may read all the same, as the list has it: `.env`, `~/.aws`.
    pub fn allow_read(mut self, secret: impl Into<String>) -> Self {
        self.readable.push(secret.into());
        self
    }

    /// How many bytes of each task's output are kept, half from its beginning and half from its end; 64 MiB if nothing is
    /// said.
    pub fn task_bytes(mut self, bytes: u64) -> Self {
        self.task_bytes = Some(bytes);
        self
    }

    /// Nothing may live on after its call, because of `why`.
    pub fn no_tasks(mut self, why: impl Into<String>) -> Self {
        self.no_tasks = Some(why.into());
        self
    }

    /// Goes on with an earlier session instead of starting one.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.session = Some(id.into());
        self
    }

    /// The entry point of the calls, for the ledger; `library` by default.
    pub fn entry_point(mut self, entry_point: impl Into<String>) -> Self {
        self.entry_point = Some(entry_point.into());
        self
    }

    /// Builds the runtime. The ledger is opened by the first call.
    pub fn build(self) -> Result<Runtime, ToolError> {
        let spelled = match self.workspace {
            Some(path) => path,
            None => std::env::current_dir()
                .map_err(|error| ToolError::io("find the current directory", &error))?,
        };
        let workspace = Arc::new(Root::open(&spelled)?);
        let planning = Planning {
            spelled: (spelled.is_absolute() && spelled != workspace.path).then(|| spelled.clone()),
            workspace: workspace.path.clone(),
        };
        let mut roots = vec![Arc::clone(&workspace)];
        for path in &self.directories {
            roots.push(Arc::new(Root::open(path)?));
        }
        let home = match self.home {
            Some(home) => home,
            None => Ledger::home_from_env()?,
        };
        let home = resolved(&home)?;
        if !self.any_workspace {
            refuse_inside(&roots, &home, "the ledger", "HAFT_HOME to a directory")?;
        }

        let (dialect_name, reads) = self
            .dialect
            .as_ref()
            .map_or(("none", Reads::Everywhere), |dialect| (dialect.name, dialect.reads.clone()));
        let mut registry = self.dialect.as_ref().map(Registry::of).unwrap_or_default();
        for dialect in &self.others {
            registry.add(dialect)?;
        }
        for tool in self.tools {
            registry.register(tool);
        }
        let dialects = || self.dialect.iter().chain(&self.others);
        let mut rules = Rules::default();
        for (tool, path) in dialects().flat_map(|dialect| &dialect.keeps) {
            rules.push(Rule::grant(tool, path, "the settings of the tool")?);
        }
        for (tool, host) in dialects().flat_map(|dialect| &dialect.asks) {
            let rule = format!("{tool}(domain:{host})");
            rules.push(Rule::parse(Behavior::Allow, &rule, "the dialect itself", &workspace.path)?);
        }
        for (tool, path, origin) in &self.granted {
            rules.push(Rule::grant(tool, path, origin)?);
        }
        for (behavior, text, origin) in &self.rules {
            rules.push(Rule::parse(*behavior, text, origin, &workspace.path)?);
        }
        for definition in registry.names() {
            if rules.removing(&definition).is_some() {
                registry.disable(&definition);
            }
        }
        if let Some(only) = self.only {
            for name in &only {
                registry.find(name)?;
            }
            registry.allow_only(only);
        }
        let mut scope = self.sandbox.apply(Scope {
            roots: roots.iter().map(|root| root.path.clone()).collect(),
            reads,
            protected: vec![home.clone()],
            network: self.network,
            endpoints: listed(&self.endpoints)?,
            ..Scope::of(workspace.path.clone())
        });
        if self.any_workspace {
            scope.blocked.push("/".into());
        }
        scope.blocked.extend(dialects().flat_map(|dialect| dialect.blocked).map(PathBuf::from));
        for root in &scope.roots {
            if !roots.iter().any(|held| held.path == *root) {
                roots.push(Arc::new(Root::open(root)?));
            }
        }
        let host = self.host.unwrap_or_else(|| Arc::new(NoHost));
        if let Some(configuration) = host.configuration() {
            let file = resolved(configuration.file())?;
            // A preset that takes in everything leaves it to the protection alone.
            if !self.any_workspace {
                let roots = &roots[..=self.directories.len()];
                refuse_inside(roots, &file, "the settings", "HAFT_CONFIG to a file")?;
            }
            scope.protected.push(file.clone());
            scope.config = Some(file);
        }
        scope.secrets.retain(|secret| !self.readable.contains(secret));
        for path in &self.writable {
            let path = resolved(&planning.workspace.join(path))?;
            if scope.root_of(&path).is_none() {
                scope.grants.push(path.clone());
            }
            scope.unguarded.push(path);
        }
        let witnessed = scope.sandbox == Sandbox::On && cfg!(target_os = "linux");
        let new = NewSession {
            workspace: workspace.path.clone(),
            dialect: dialect_name.to_owned(),
            entry_point: self.entry_point.unwrap_or_else(|| "library".to_owned()),
        };
        let news = Arc::<News>::default();
        let tasks = TaskRoom::new(&home, self.task_bytes.unwrap_or(TASK_BYTES), news.teller());
        if let Some(why) = self.no_tasks {
            tasks.close(why);
        }
        let runtime = Runtime {
            inner: Arc::new(RuntimeInner {
                registry,
                sources: self.sources,
                policy: Policy {
                    mode: self.mode,
                    rules,
                    scope: Arc::new(scope),
                    commands_reversible: witnessed,
                },
                ground: Arc::new(Ground {
                    planning,
                    roots: roots.into(),
                    environment: Arc::new(self.environment.unwrap_or_else(Environment::inherited)),
                    enclosure: Arc::new(Enclosure::new(self.cache.or_else(cache_from_env))),
                    tasks: Arc::new(tasks),
                    http: Arc::default(),
                }),
                news,
                asker: self.asker.unwrap_or_else(|| Arc::new(DenyAll)),
                host,
                asking: Mutex::default(),
                write_order: Arc::default(),
                ledger: Arc::new(LedgerHandle::new(home, new, self.session)),
                calls: AtomicU64::new(0),
                companions: Mutex::default(),
            }),
        };
        for source in &runtime.inner.sources {
            source.join(runtime.downgrade());
        }
        Ok(runtime)
    }
}

/// `home` with the links of its existing part resolved, so that it is recognised under any name.
fn resolved(home: &Path) -> Result<PathBuf, ToolError> {
    if !home.is_absolute() {
        return Err(ToolError::invalid_path(format!(
            "HAFT_HOME: {} is not an absolute path",
            home.display()
        )));
    }
    // A file may be a link itself, and then the one that it leads to is meant.
    if let Ok(real) = real_named(home) {
        return Ok(real);
    }
    let mut missing = Vec::new();
    let mut here = home;
    loop {
        if let Ok(root) = Root::open(here) {
            return Ok(missing.iter().rev().fold(root.path, |path, name| path.join(name)));
        }
        match (here.parent(), here.file_name()) {
            (Some(parent), Some(name)) => (missing.push(name.to_owned()), here = parent).1,
            _ => return Ok(home.to_owned()),
        }
    }
}

/// Endpoints as a list of hosts writes them.
fn listed(endpoints: &[String]) -> Result<Vec<String>, ToolError> {
    let read = |endpoint: &String| {
        Authority::parse(endpoint).map_err(|why| {
            ToolError::invalid_arguments(format!("the configured host {endpoint:?} cannot be reached: {why}"))
        })
    };
    Ok(endpoints
        .iter()
        .map(read)
        .collect::<Result<Vec<_>, _>>()?
        .iter()
        .flat_map(Authority::entries)
        .collect())
}

/// Where commands keep their caches if nobody says otherwise.
fn cache_from_env() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("HAFT_CACHE")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|cache| cache.join("haft")))
        .or_else(|| absolute("HOME").map(|home| home.join(".cache/haft")))
}

/// A ledger that calls could write to would prove nothing, and settings that they could move away would hold nothing.
fn refuse_inside(roots: &[Arc<Root>], path: &Path, what: &str, elsewhere: &str) -> Result<(), ToolError> {
    match roots.iter().find(|root| path.starts_with(&root.path)) {
        None => Ok(()),
        Some(root) => Err(ToolError::new(
            ErrorKind::InvalidPath,
            format!(
                "{what} {} lies inside {}, which calls may change; choose a narrower workspace or set {elsewhere} outside it",
                path.display(),
                root.path.display()
            ),
        )),
    }
}
