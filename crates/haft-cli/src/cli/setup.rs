//! What every command that makes calls starts from: the settings, the host, and the flags above them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::servers::{self, ServerEntry};
use haft_ledger::Ledger;
use haft_mcp::client::oauth::BrowserOpener;
use haft_runtime::{Builder, Runtime};
use haft_tool::ToolError;
use url::Url;

use super::args::{Dialect, Rules, Scope, Servers, Workspace};
use super::screen::{self, NOTE, painted};
use super::terminal;
use crate::config::{self, Config, DialectName, NetworkWords, user_file};
use crate::host::CommandLine;
use haft::selection::ToolSelection;

/// The settings that count here, and who runs the tools.
pub(super) struct Setup {
    pub(super) config: Config,
    pub(super) host: Arc<CommandLine>,
    workspace: PathBuf,
}

impl Setup {
    /// Reads the settings and says what is strange in them.
    pub(super) fn load(at: &Workspace) -> Result<Self, ToolError> {
        let workspace = at.folder()?;
        let config = Config::load(&workspace)?;
        for warning in &config.warnings {
            screen::note(&format!("{}: {}", painted(NOTE, "note"), screen::harmless(warning)));
        }
        let host = Arc::new(CommandLine::new(&config, &workspace, terminal::is_there()));
        Ok(Self { config, host, workspace })
    }

    /// A runtime's beginnings: the workspace, the host, the rules of the settings and what they let tools reach.
    pub(super) fn builder(&self) -> Builder {
        let mut builder = beginning().workspace(&self.workspace).host(Arc::clone(&self.host) as _);
        for (behavior, rule, origin) in self.config.rules() {
            builder = builder.rule(behavior, rule, origin);
        }
        for host in self.config.values.tools.endpoints() {
            builder = builder.endpoint(host);
        }
        builder
    }

    /// The builder with this scope.
    pub(super) fn scope(&self, flags: &Scope, mut builder: Builder) -> Result<Builder, ToolError> {
        for directory in &flags.directories {
            builder = builder.add_directory(directory);
        }
        for path in &flags.allow_write {
            builder = builder.allow_write(path);
        }
        for secret in &flags.allow_read {
            builder = builder.allow_read(secret);
        }
        let values = &self.config.values;
        let network = flags.network.clone().map(NetworkWords).or_else(|| values.network.clone());
        let network = network.map(|words| words.network()).transpose()?.unwrap_or_default();
        let sandbox = flags.sandbox.or(values.sandbox).unwrap_or_default();
        Ok(builder.sandbox(sandbox).network(network))
    }

    /// The builder with these rules.
    pub(super) fn rules(&self, flags: &Rules, mut builder: Builder) -> Builder {
        for rule in &flags.allowed {
            builder = builder.allow(rule, "--allowedTools");
        }
        for rule in &flags.disallowed {
            builder = builder.rule(haft_policy::Behavior::Deny, rule, "--disallowedTools");
        }
        let mode = flags.permission_mode.or(self.config.values.permission_mode);
        builder.permission_mode(mode.unwrap_or_default())
    }

    /// The MCP servers that may be used here, and what is wrong with the others. Whether they are trusted is not looked up.
    pub(super) fn servers(&self, flags: &Servers) -> Result<(Vec<ServerEntry>, Vec<String>), ToolError> {
        let mut found = self.configured(flags)?;
        let mut entries = Vec::with_capacity(found.all.len());
        for one in &found.all {
            match one.entry() {
                Ok(entry) => entries.extend(entry),
                Err(why) => found.warnings.push(why),
            }
        }
        Ok((entries, found.warnings))
    }

    /// The same, what is wrong with the others said.
    pub(super) fn entries(&self, flags: &Servers) -> Result<Vec<ServerEntry>, ToolError> {
        let (entries, warnings) = self.servers(flags)?;
        for warning in &warnings {
            screen::note(&format!("{}: {}", painted(NOTE, "note"), screen::harmless(warning)));
        }
        Ok(entries)
    }

    /// The builder with the tools of these servers, named as the dialect has it; and the servers.
    pub(super) fn holding(
        &self,
        entries: Vec<ServerEntry>,
        dialect: &Dialect,
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
        });
        if servers.is_empty() {
            return Ok((builder, servers));
        }
        Ok((builder.source(Arc::new(servers.clone())), servers))
    }

    /// Every configured MCP server, valid or not.
    pub(super) fn configured(&self, flags: &Servers) -> Result<config::Servers, ToolError> {
        self.config.servers(&self.workspace, &flags.mcp_config, flags.strict_mcp_config)
    }

    /// The tools that are offered.
    pub(super) fn choice(&self, flags: &Dialect) -> Result<ToolSelection, ToolError> {
        let (values, dialect) = (&self.config.values, self.dialect(flags));
        // Tools that were chosen for another dialect are not meant when this one is named.
        let offer = values.offer.as_deref().filter(|_| flags.dialect.is_none());
        ToolSelection::new(dialect, flags.tools.as_deref().or(offer), &values.tools)
    }
}

impl Setup {
    /// The dialect that counts.
    fn dialect<'a>(&'a self, flags: &'a Dialect) -> &'a str {
        let set = self.config.values.dialect.as_ref().map(DialectName::as_str);
        flags.dialect.as_deref().or(set).unwrap_or(haft_tools::dialects::NAMES[0])
    }
}

/// Prints the login URL; the user opens it.
struct Browser;

impl BrowserOpener for Browser {
    fn open(&self, url: &Url) -> Result<(), ToolError> {
        if !terminal::is_there() {
            return Err(ToolError::denied(format!(
                "{} wants you to log in, and nobody is here to do so: run `haft mcp login NAME` in a terminal",
                url.host_str().unwrap_or_default()
            )));
        }
        screen::note(&format!("{}: log in at {url}", painted(NOTE, "note")));
        Ok(())
    }
}

impl Workspace {
    /// The folder that was named, or the current one.
    pub(super) fn folder(&self) -> Result<PathBuf, ToolError> {
        let here =
            || std::env::current_dir().map_err(|error| ToolError::io("find the current directory", &error));
        match &self.workspace {
            Some(path) if path.is_absolute() => Ok(path.clone()),
            Some(path) => Ok(here()?.join(path)),
            None => here(),
        }
    }

    /// A runtime's beginnings for commands that make no calls of their own: the settings are protected, not read, and the
    /// folder may be any, the user's home too.
    pub(super) fn builder(&self) -> Result<Builder, ToolError> {
        let workspace = self.folder()?;
        let host = CommandLine::settings_only(user_file()?.as_deref(), &workspace);
        Ok(beginning().workspace(workspace).host(Arc::new(host)).any_workspace())
    }
}

fn beginning() -> Builder {
    Runtime::builder().entry_point("cli")
}
