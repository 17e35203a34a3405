//! Building a runtime from its options.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use haft_files::{Root, link_targets, mounted_elsewhere, read_named, real_named};
use haft_ledger::{Ledger, LedgerHandle, NewSession, SessionChoice};
use haft_policy::{
    Behavior, NetworkPresets, Policy, Preset, Rule, RuleTools, Rules, Secrets, default_secrets,
};
use haft_tool::net::Authority;
use haft_tool::{
    Dialect, ErrorKind, Host, Network, NoHost, Planning, Reads, Sandbox, Scope, Tool, ToolError, close_names,
    lies_in,
};

use crate::builder::WrittenRule;
use crate::commands::{SessionCommands, private_temp_directory};
use crate::grants::{self, SessionGrants};
use crate::history::History;
use crate::log_tool::HaftLog;
use crate::runtime::{RuntimeInner, SessionTrace};
use crate::steps::ask::DenyAll;
use crate::undo_tools::HaftUndo;
use crate::world::SessionEnv;
use crate::{Builder, Registry, Runtime};

impl Builder {
    /// Builds the runtime. The ledger is opened by the first call, or here to continue an earlier session.
    pub fn build(mut self) -> Result<Runtime, ToolError> {
        if self.workspace_reads {
            for dialect in self.dialect.iter_mut().chain(&mut self.others) {
                dialect.reads = Reads::Roots;
            }
        }
        let given = match &self.workspace {
            Some(path) => path.clone(),
            None => std::env::current_dir()
                .map_err(|error| ToolError::io("find the current directory", &error))?,
        };
        let workspace = Arc::new(Root::open(&given)?);
        let mut planning = Planning::new(workspace.path.clone());
        planning.spelled = (given.is_absolute() && given != workspace.path).then_some(given);
        planning.home = std::env::home_dir().filter(|home| home.is_absolute());
        planning.accepts_relative = self.relative_paths;
        if let Some(cwd) = self.cwd.take().filter(|cwd| cwd.starts_with(&workspace.path)) {
            planning.cwd = cwd;
        }
        let mut roots = vec![workspace];
        for path in &self.directories {
            roots.push(Arc::new(Root::open(path)?));
        }
        let home = resolved(&match &self.home {
            Some(home) => home.clone(),
            None => Ledger::home_from_env()?,
        })?;
        if !self.any_workspace {
            refuse_inside(&roots, &home, "the ledger", "HAFT_HOME to a directory")?;
        }
        let host = self.host.clone().unwrap_or_else(|| Arc::new(NoHost));
        let scope = Arc::new(self.scope(&planning, &mut roots, &home, host.as_ref())?);
        let roots: Arc<[Arc<Root>]> = roots.into();
        let new_session = NewSession {
            workspace: planning.workspace.clone(),
            dialect: self.dialect.as_ref().map_or("none", |dialect| dialect.name).to_owned(),
            entry_point: self.entry_point.clone().unwrap_or_else(|| "library".to_owned()),
        };
        let ledger = LedgerHandle::new(home.clone(), new_session, self.session.clone());
        let ledger = match self.ledger_listener.take() {
            Some(listener) => ledger.with_listener(listener),
            None => ledger,
        };
        let ledger = match self.ledger.take() {
            Some(open) => ledger.with_ledger(open),
            None => ledger,
        };
        let ledger = Arc::new(ledger.with_content_reader(|path, limit| read_named(path, limit).ok()));
        let mut granted = None;
        if self.session != SessionChoice::New {
            // Opened here, so that an unknown session is an error before anything is done.
            granted = ledger.ledger()?.note(ledger.session()?, grants::NOTE)?;
        }
        let grants =
            SessionGrants::new(self.rule_tools(), planning.workspace.clone(), granted, self.forbids_bypass);
        let history = Arc::new(History::new(Arc::clone(&ledger), &scope, Arc::clone(&roots)));
        let (rules, mut warnings) = self.rules(&planning.workspace)?;
        warnings.extend(self.unlisted_secrets());
        let registry = self.registry(&rules, &history)?;
        // On macOS this works by comparing the workspace before and after.
        let commands_reversible = scope.sandbox == Sandbox::On;
        let runtime = Runtime {
            inner: Arc::new(RuntimeInner {
                registry: Arc::new(registry),
                sources: self.sources,
                policy: Policy { mode: self.mode, rules, scope, commands_reversible, user_request: false },
                env: Arc::new(SessionEnv {
                    planning,
                    roots,
                    grants,
                    asks: self.mode.asks(),
                    asking: Arc::default(),
                    presets: self.network_presets,
                    commands: Arc::new(SessionCommands::new(self.commands, &home, self.workspace_reads)),
                    #[cfg(feature = "web")]
                    http: Arc::default(),
                }),
                asker: self.asker.unwrap_or_else(|| Arc::new(DenyAll)),
                hooks: self.hooks,
                host,
                write_order: Arc::default(),
                ledger,
                history,
                calls: AtomicU64::new(0),
                warnings,
                agent: None,
                trace: SessionTrace {
                    parent: Mutex::new(self.trace_parent),
                    is_exported: self.exports_spans,
                },
            }),
        };
        for source in &runtime.inner.sources {
            source.attach(runtime.downgrade());
        }
        Ok(runtime)
    }

    fn dialects(&self) -> impl Iterator<Item = &Dialect> {
        self.dialect.iter().chain(&self.others)
    }

    fn reads(&self) -> Reads {
        if self.workspace_reads {
            return Reads::Roots;
        }
        self.dialect.as_ref().map_or(Reads::Everywhere, |dialect| dialect.reads.clone())
    }

    /// The scope of calls without further grants. Roots that the sandbox adds are opened, too.
    fn scope(
        &self,
        planning: &Planning,
        roots: &mut Vec<Arc<Root>>,
        home: &Path,
        host: &dyn Host,
    ) -> Result<Scope, ToolError> {
        let own_roots = roots.len();
        let mut scope = self.sandbox.apply(Scope {
            roots: roots.iter().map(|root| root.path.clone()).collect(),
            reads: self.reads(),
            protected: vec![home.to_owned()],
            network: with_presets(&self.network, &self.network_presets),
            endpoints: host_entries(&self.endpoints)?,
            secrets: default_secrets(),
            homes: user_homes(),
            ..Scope::of(planning.workspace.clone())
        });
        if self.any_workspace {
            scope.blocked.push("/".into());
        }
        let writes = self.dialects().flat_map(|dialect| dialect.writes);
        for directory in writes.filter(|_| self.sandbox != Preset::ReadOnly) {
            let directory = resolved(Path::new(directory))?;
            if scope.root_of(&directory).is_none() {
                scope.roots.push(directory);
            }
            scope.blocked.extend(private_temp_directory());
        }
        scope.blocked.extend(self.dialects().flat_map(|dialect| dialect.blocked).map(PathBuf::from));
        for root in &scope.roots {
            if !roots.iter().any(|held| held.path == *root) {
                roots.push(Arc::new(Root::open(root)?));
            }
        }
        if let Some(configuration) = host.configuration() {
            let file = resolved(configuration.file())?;
            // Only for these roots: one that the sandbox adds may be `/`, where protecting the paths has to be enough.
            if !self.any_workspace {
                refuse_inside(&roots[..own_roots], &file, "the settings", "HAFT_CONFIG to a file")?;
            }
            scope.protected.push(file.clone());
            scope.config = Some(file);
        }
        scope.secrets.retain(|secret| !self.readable.contains(secret));
        let linked = linked_secrets(&scope);
        scope.secrets.extend(linked);
        for path in &self.writable {
            let path = resolved(&planning.workspace.join(path))?;
            if scope.root_of(&path).is_none() {
                scope.grants.push(path.clone());
            }
            scope.unguarded.push(path);
        }
        Ok(scope)
    }

    /// The rules, and warnings about those that name no tool.
    fn rules(&self, workspace: &Path) -> Result<(Rules, Vec<String>), ToolError> {
        let mut rules = Rules::default();
        let mut warnings = Vec::new();
        for (tool, path) in self.dialects().flat_map(|dialect| &dialect.keeps) {
            rules.push(Rule::of_dialect(tool, path)?);
        }
        for (tool, path, origin) in &self.granted {
            rules.push(Rule::grant(tool, path, origin)?);
        }
        let tools = self.rule_tools();
        for WrittenRule { behavior, text, origin, is_foreign } in &self.rules {
            let allows = *behavior == Behavior::Allow;
            let rule = match Rule::parse(*behavior, &text.text, origin, workspace, &tools) {
                // Allowing less than was meant is safe.
                Err(error) if allows && *is_foreign => {
                    warnings.push(error.message);
                    continue;
                }
                rule => rule?,
            };
            rule.check_examples(text, workspace).map_err(ToolError::invalid_arguments)?;
            match rule.names_nothing(&tools) {
                Some(why) if allows || *is_foreign => warnings.push(why),
                Some(why) => return Err(ToolError::invalid_arguments(why)),
                None => {}
            }
            rules.push(rule);
        }
        warnings.extend(rules.without_effect());
        Ok((rules, warnings))
    }

    /// Warnings about secrets that the user allows to be read but that are on no list.
    fn unlisted_secrets(&self) -> Vec<String> {
        let listed = default_secrets();
        let names = self.readable.iter().filter(|name| !listed.contains(name));
        names
            .map(|name| {
                let near = close_names(name, listed.iter().map(String::as_str));
                let hint = match near.as_slice() {
                    [] => "See the list in docs/sandbox.md".to_owned(),
                    near => format!("Did you mean {}?", near.join(" or ")),
                };
                format!("--allow-read {name} has no effect: it is not on the list of secrets. {hint}")
            })
            .collect()
    }

    /// The tools that rules may name: those of the runtime, and others that it knows of.
    fn rule_tools(&self) -> RuleTools {
        let mut tools = RuleTools::default();
        for dialect in self.dialects() {
            for tool in &dialect.tools {
                tools.offer(tool.name(), tool.effects(), dialect.any_case);
            }
            for (alias, name) in dialect.aliases {
                tools.add_alias(*alias, *name);
            }
        }
        for tool in &self.tools {
            tools.offer(tool.name(), tool.effects(), false);
        }
        for (name, kinds) in &self.known_tools {
            tools.add(name, kinds);
        }
        tools.add(HaftLog::NAME, HaftLog::EFFECTS);
        tools.add(HaftUndo::NAME, HaftUndo::EFFECTS);
        tools
    }

    fn registry(&self, rules: &Rules, history: &Arc<History>) -> Result<Registry, ToolError> {
        let mut registry = self.dialect.as_ref().map(Registry::of).unwrap_or_default();
        for dialect in &self.others {
            registry.add(dialect)?;
        }
        if self.ledger_tools {
            registry.register(Arc::new(HaftLog { history: Arc::clone(history) }));
            registry.register(Arc::new(HaftUndo { history: Arc::clone(history) }));
        }
        for tool in &self.tools {
            registry.register(Arc::clone(tool));
        }
        for name in registry.names() {
            if rules.removing(&name).is_some() {
                registry.disable(&name);
            }
        }
        if let Some(only) = &self.only {
            for name in only {
                registry.find(name)?;
            }
            registry.allow_only(only.iter().cloned());
        }
        Ok(registry)
    }
}

/// The path with links resolved as far as it exists, so that it is recognised under any name.
fn resolved(home: &Path) -> Result<PathBuf, ToolError> {
    if !home.is_absolute() {
        return Err(ToolError::invalid_path(format!(
            "HAFT_HOME: {} is not an absolute path",
            home.display()
        )));
    }
    // A link is judged by its target.
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

/// The paths of the user's home directory: as written, with links resolved, and of other mounts.
fn user_homes() -> Vec<PathBuf> {
    let written = std::env::home_dir().filter(|home| home.is_absolute());
    let real = written
        .as_deref()
        .and_then(|home| real_named(home).ok())
        .filter(|real| Some(real) != written.as_ref());
    let other = real.as_ref().or(written.as_ref()).map(|home| mounted_elsewhere(home)).unwrap_or_default();
    written.into_iter().chain(real).chain(other).collect()
}

/// The targets of listed secrets that are links. A link to a directory above the home or the workspace does not make all of
/// that secret.
fn linked_secrets(scope: &Scope) -> Vec<String> {
    let is_too_much =
        |target: &PathBuf| scope.homes.iter().chain([&scope.workspace]).any(|path| lies_in(path, target));
    let targets = link_targets(Secrets::of(scope).paths());
    targets
        .into_iter()
        .filter(|target| !is_too_much(target))
        .filter_map(|target| target.into_os_string().into_string().ok())
        .collect()
}

/// Endpoints in the form of a list of hosts.
fn host_entries(endpoints: &[String]) -> Result<Vec<String>, ToolError> {
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

/// The network, with the names of presets replaced by their hosts.
pub(crate) fn with_presets(network: &Network, presets: &NetworkPresets) -> Network {
    match network {
        Network::Domains(words) => Network::Domains(presets.expand(words.iter().map(String::as_str))),
        other => other.clone(),
    }
}

/// Refuses a ledger that calls could write, and settings that they could replace.
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
