//! The settings, the host and the flags of every command that makes calls.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::servers::{self, ServerEntry};
use haft_ledger::Ledger;
use haft_mcp::client::oauth::BrowserOpener;
use haft_policy::{Behavior, Mode, NetworkPresets};
use haft_runtime::{Builder, Runtime};
use haft_sandbox::{Environment, SandboxOptions};
use haft_tool::{Network, ToolError, close_names};
use url::Url;

use super::args::{DialectArgs, RuleArgs, ScopeArgs, ServerArgs, WorkspaceArgs};
use super::screen::{self, NOTE, styled};
use super::trust::project_trust;
use super::{telemetry, terminal};
use crate::claude_settings::{ClaudeFiles, ClaudeRule, Effective, variable};
use crate::config::{
    self, ByteSize, Config, DialectName, NetworkWords, Project, ReadScope, SandboxSection, user_file,
};
use crate::host::CommandLine;
use haft::selection::ToolSelection;

/// With less, even a shell does not start.
const MIN_MEMORY_BYTES: u64 = 16 << 20;

/// The settings in effect and the host of the tools.
pub(super) struct Setup {
    pub(super) config: Config,
    pub(super) host: Arc<CommandLine>,
    /// What of Claude Code's settings is in force; nothing for commands that make no calls of a model.
    pub(in crate::cli) claude: Effective,
    /// Leads to the MCP servers inside the program that drives Haft, if one does.
    pub(super) links: Option<servers::HostLinks>,
    workspace: PathBuf,
}

impl Setup {
    /// Reads the settings and prints their warnings.
    pub(super) fn load(at: &WorkspaceArgs) -> Result<Self, ToolError> {
        let Project { root: workspace, warning } = at.project()?;
        screen::warnings(warning.as_slice());
        let config = Config::load(&workspace)?;
        screen::warnings(&config.warnings);
        let host = Arc::new(CommandLine::new(&config, &workspace, terminal::is_interactive()));
        Ok(Self { config, host, claude: Effective::default(), links: None, workspace })
    }

    /// The same with Claude Code's settings, for a command that makes calls of a model.
    pub(super) fn load_for_calls(at: &WorkspaceArgs, flags: &RuleArgs) -> Result<Self, ToolError> {
        let mut setup = Self::load(at)?;
        let files = ClaudeFiles::read(&setup.workspace, &flags.claude_settings(), &variable)?;
        setup.claude = Effective::of(&files, &setup.workspace, &project_trust(&setup.workspace)?)?;
        screen::warnings(&setup.claude.warnings);
        if setup.claude.asks_nobody {
            let host = CommandLine::new(&setup.config, &setup.workspace, terminal::is_interactive());
            setup.host = Arc::new(host.asking_nobody());
        }
        Ok(setup)
    }

    /// The directory that calls work in.
    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// A builder with the workspace, the host, and the rules and endpoints of the settings.
    pub(super) fn builder(&self) -> Builder {
        let known = haft_tools::dialects::known_tools(&self.config.values.tools);
        let mut builder = self.builder_without_rules().known_tools(known);
        for (behavior, rule, origin) in self.config.rules() {
            builder = builder.rule(behavior, rule, origin);
        }
        for ClaudeRule { behavior, rule, origin, .. } in &self.claude.rules {
            builder = builder.foreign_rule(*behavior, rule.clone(), origin);
        }
        for (file, hook) in self.claude.hooks.files_in(&self.workspace) {
            let pattern = globset::escape(&file.display().to_string());
            let origin = format!("the hook of {hook} uses this file");
            builder = builder.rule(Behavior::Ask, format!("Edit(/{pattern})"), &origin);
        }
        for host in self.config.values.tools.endpoints() {
            builder = builder.endpoint(host);
        }
        builder
    }

    /// A builder with the workspace and the host, for a command that must work where a rule is wrong.
    pub(super) fn builder_without_rules(&self) -> Builder {
        let builder = base_builder().workspace(&self.workspace).host(Arc::clone(&self.host) as _);
        let builder = telemetry::add_to(builder, &self.config.values.otel);
        // Commands start where the user typed the call.
        match std::env::current_dir() {
            Ok(cwd) => builder.cwd(cwd),
            Err(_) => builder,
        }
    }

    /// The builder with this scope.
    pub(super) fn scope(&self, flags: &ScopeArgs, builder: Builder) -> Result<Builder, ToolError> {
        self.scope_with(flags, |_| {}, builder)
    }

    /// The same with more options of the sandbox.
    pub(super) fn scope_with(
        &self,
        flags: &ScopeArgs,
        set_options: impl FnOnce(&mut SandboxOptions),
        mut builder: Builder,
    ) -> Result<Builder, ToolError> {
        for directory in self.claude.directories.iter().chain(&flags.directories) {
            builder = builder.add_directory(directory);
        }
        for path in self.claude.writable.iter().chain(&flags.allow_write) {
            builder = builder.allow_write(path);
        }
        for secret in &flags.allow_read {
            builder = builder.allow_read(secret);
        }
        screen::warnings(&flags_without_effect(flags));
        let values = &self.config.values;
        let network = flags.network.clone().map(NetworkWords);
        let network = network.unwrap_or_else(|| self.network()).network()?;
        let section = &values.sandbox;
        if flags.read.or(section.read) == Some(ReadScope::Workspace) || self.claude.reads_workspace {
            builder = builder.workspace_reads();
        }
        let sandbox = flags.sandbox.or(section.preset).unwrap_or_default();
        let builder = builder.sandbox(sandbox).environment(self.environment(flags)?);
        let mut options = sandbox_options(flags, section)?;
        set_options(&mut options);
        let mut presets: Vec<(String, Vec<String>)> = values.network.presets.clone().into_iter().collect();
        for (preset, host) in registries() {
            options.own_hosts.push(host.clone());
            presets.push((preset.to_owned(), vec![host]));
        }
        let presets = NetworkPresets::with(presets);
        if let Network::Domains(words) = &network {
            screen::warnings(&misspelt_presets(words, &presets));
        }
        let builder = builder.network_presets(presets);
        Ok(builder.sandbox_options(options).network(network))
    }

    /// The network access of the settings.
    pub(super) fn network(&self) -> NetworkWords {
        let own = self.config.network(&self.workspace);
        match self.claude.domains.as_slice() {
            [] => own,
            domains => own.with_project(domains),
        }
    }

    /// The environment of commands.
    pub(super) fn environment(&self, flags: &ScopeArgs) -> Result<Environment, ToolError> {
        let own = self.config.values.sandbox.env.iter();
        environment(self.claude.variables.iter().chain(own).chain(&flags.variables))
    }

    /// The builder with these rules.
    pub(super) fn rules(&self, flags: &RuleArgs, mut builder: Builder) -> Builder {
        for rule in &flags.allowed {
            builder = builder.allow(rule, "--allowedTools");
        }
        for rule in &flags.disallowed {
            builder = builder.rule(Behavior::Deny, rule, "--disallowedTools");
        }
        if !self.claude.hooks.is_empty() {
            builder = builder.hooks(Arc::new(self.claude.hooks.clone()));
        }
        if self.claude.no_bypass {
            builder = builder.forbid_bypass();
        }
        builder.permission_mode(self.mode(flags))
    }

    /// The permission mode.
    pub(super) fn mode(&self, flags: &RuleArgs) -> Mode {
        let mode = flags.permission_mode.or(self.config.values.permission_mode).or(self.claude.mode);
        mode.filter(|mode| *mode != Mode::BypassPermissions || !self.claude.no_bypass).unwrap_or_default()
    }

    /// Whether a flag or a setting names the permission mode.
    pub(super) fn names_mode(&self, flags: &RuleArgs) -> bool {
        flags.permission_mode.or(self.config.values.permission_mode).or(self.claude.mode).is_some()
    }

    /// The valid MCP servers, trusted or not; prints warnings about the others.
    pub(super) fn entries(&self, flags: &ServerArgs) -> Result<Vec<ServerEntry>, ToolError> {
        let mut found = self.configured(flags)?;
        let mut entries = Vec::with_capacity(found.all.len());
        for server in &found.all {
            match server.entry() {
                Ok(entry) => {
                    let refusal = entry.as_ref().and_then(|entry| self.claude.servers.refusal(entry));
                    let is_used = refusal.is_none();
                    found.warnings.extend(refusal);
                    entries.extend(entry.filter(|_| is_used));
                }
                Err(why) => found.warnings.push(why),
            }
        }
        screen::warnings(&found.warnings);
        Ok(entries)
    }

    /// Adds the tools of these servers, named as the dialect names them.
    pub(super) fn add_servers(
        &self,
        entries: Vec<ServerEntry>,
        dialect: &DialectArgs,
        builder: Builder,
    ) -> Result<(Builder, servers::Servers), ToolError> {
        let naming: servers::Naming = match self.dialect(dialect) {
            "clawft" => servers::without_prefix,
            _ => servers::with_prefix,
        };
        let servers = servers::Servers::new(servers::ServersSetup {
            entries,
            naming,
            home: Ledger::home_from_env()?,
            host: Arc::clone(&self.host) as _,
            opener: Arc::new(Browser),
            links: self.links.clone(),
        });
        if servers.is_empty() {
            return Ok((builder, servers));
        }
        Ok((builder.source(Arc::new(servers.clone())), servers))
    }

    /// Every configured MCP server, valid or not.
    pub(super) fn configured(&self, flags: &ServerArgs) -> Result<config::ConfiguredServers, ToolError> {
        self.config.servers(&self.workspace, &flags.mcp_config, flags.strict_mcp_config)
    }

    /// The tools that are offered.
    pub(super) fn tool_selection(&self, flags: &DialectArgs) -> Result<ToolSelection, ToolError> {
        let (values, dialect) = (&self.config.values, self.dialect(flags));
        // The selection of the settings is for their own dialect.
        let offer = values.offer.as_deref().filter(|_| flags.dialect.is_none());
        ToolSelection::new(dialect, flags.tools.as_deref().or(offer), &values.tools)
    }

    /// Whether the user has said which tools are offered.
    pub(super) fn names_tools(&self, flags: &DialectArgs) -> bool {
        flags.tools.is_some() || (flags.dialect.is_none() && self.config.values.offer.is_some())
    }

    /// The dialect: the flag, else the setting, else the default.
    pub(super) fn dialect<'a>(&'a self, flags: &'a DialectArgs) -> &'a str {
        let set = self.config.values.dialect.as_ref().map(DialectName::as_str);
        flags.dialect.as_deref().or(set).unwrap_or(haft_tools::dialects::NAMES[0])
    }
}

/// Warnings about flags that name nothing.
fn flags_without_effect(flags: &ScopeArgs) -> Vec<String> {
    let unset = |name: &&String| !name.contains('=') && std::env::var_os(name).is_none();
    let variables = flags.variables.iter().filter(unset);
    let variables = variables.map(|name| format!("--env {name} has no effect: the variable is not set"));
    let home = std::env::home_dir().unwrap_or_default();
    let missing = |entry: &&PathBuf| haft_files::id_of(&home.join(entry)).is_none();
    let entries = flags.show_home.iter().filter(missing);
    let entries = entries.map(|entry| {
        format!("--show-home {} has no effect: {} has no such entry", entry.display(), home.display())
    });
    variables.chain(entries).collect()
}

/// The hosts of the registries that the user's own settings name, each with its network preset.
fn registries() -> Vec<(&'static str, String)> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    home.map(|home| haft_sandbox::registry_hosts(&home)).unwrap_or_default()
}

/// Warnings about words that are hosts without a domain, but look like presets.
fn misspelt_presets(words: &[String], presets: &NetworkPresets) -> Vec<String> {
    let names = presets.names();
    let is_plain = |word: &&String| !word.contains(['.', ':']) && !names.contains(&word.as_str());
    let near = |word: &String| {
        let near = close_names(word, names.iter().copied());
        let near = near.first()?;
        Some(format!("network: {word} is taken for a host. Did you mean the preset {near}?"))
    };
    words.iter().filter(is_plain).filter_map(near).collect()
}

/// What commands see, use and serve.
fn sandbox_options(flags: &ScopeArgs, section: &SandboxSection) -> Result<SandboxOptions, ToolError> {
    let mut options = SandboxOptions::default();
    options.namespaces = section.namespaces.unwrap_or(true);
    options.home_entries = section.home.iter().chain(&flags.show_home).cloned().collect();
    options.served_ports = section.serve.iter().chain(&flags.serve).copied().collect();
    options.served_ports.sort_unstable();
    options.served_ports.dedup();
    let limits = &mut options.limits;
    if let Some(ByteSize(bytes)) = flags.max_memory.or(section.memory) {
        limits.memory_bytes = bytes;
    }
    if let Some(ByteSize(bytes)) = flags.max_file_size.or(section.file_size) {
        limits.file_bytes = bytes;
    }
    if let Some(count) = flags.max_processes.or(section.processes) {
        limits.processes = count;
    }
    if limits.memory_bytes < MIN_MEMORY_BYTES {
        return Err(ToolError::invalid_arguments(format!(
            "--max-memory {} is too little for any program; the least is {}",
            ByteSize(limits.memory_bytes),
            ByteSize(MIN_MEMORY_BYTES)
        )));
    }
    if limits.processes == 0 {
        return Err(ToolError::invalid_arguments("--max-processes 0 allows no command; the least is 1"));
    }
    Ok(options)
}

/// The environment of commands, with these variables, each `NAME=VALUE` or the name of one of this process's own.
fn environment<'a>(variables: impl Iterator<Item = &'a String>) -> Result<Environment, ToolError> {
    let mut environment = Environment::inherited();
    for variable in variables {
        let (name, value) = match variable.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (variable.as_str(), std::env::var_os(variable)),
        };
        if name.is_empty() || name.contains('\0') {
            return Err(ToolError::invalid_arguments(format!("--env {variable}: give NAME or NAME=VALUE")));
        }
        if let Some(value) = value {
            environment = environment.with(name, value);
        }
    }
    Ok(environment)
}

/// Prints the login URL; the user opens it.
struct Browser;

impl BrowserOpener for Browser {
    fn open(&self, url: &Url) -> Result<(), ToolError> {
        if !terminal::is_interactive() {
            return Err(ToolError::denied(format!(
                "{} requires a login. Run `haft mcp login NAME` in a terminal",
                url.host_str().unwrap_or_default()
            )));
        }
        screen::note(&format!("{}: log in at {url}", styled(NOTE, "note")));
        Ok(())
    }
}

impl WorkspaceArgs {
    /// The given directory, else the project of the current one.
    pub(super) fn folder(&self) -> Result<PathBuf, ToolError> {
        Ok(self.project()?.root)
    }

    /// The same, with the reason if a directory above was not taken.
    pub(super) fn project(&self) -> Result<Project, ToolError> {
        let here =
            || std::env::current_dir().map_err(|error| ToolError::io("find the current directory", &error));
        let Some(path) = &self.workspace else { return Ok(Project::of(&here()?)) };
        let root = if path.is_absolute() { path.clone() } else { here()?.join(path) };
        match haft_files::is_directory(&root) {
            Ok(true) => Ok(Project { root, warning: None }),
            Ok(false) => Err(ToolError::invalid_arguments(format!(
                "--workspace {}: it is not a directory. Name the directory that calls work in",
                path.display()
            ))),
            Err(error) => Err(ToolError::io(format!("--workspace {}", path.display()), &error)),
        }
    }

    /// A builder for commands that make no calls: it protects the settings without reading them and accepts any directory,
    /// the user's home too.
    pub(super) fn builder(&self) -> Result<Builder, ToolError> {
        let workspace = self.folder()?;
        let host = CommandLine::settings_only(user_file()?.as_deref(), &workspace);
        Ok(base_builder().workspace(workspace).host(Arc::new(host)).any_workspace())
    }
}

fn base_builder() -> Builder {
    Runtime::builder().entry_point("cli")
}
