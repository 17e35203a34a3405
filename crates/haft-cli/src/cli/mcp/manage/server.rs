//! A configured server and its state, for display. Values that may be secret are masked.

use crate::servers::{KnownServer, ServerEntry, ServerGrants, TrustStore};
use haft_ledger::Ledger;
use haft_tool::{ErrorKind, ToolError, Value, close_names};

use super::super::super::args::ServerArgs;
use super::super::super::screen::{BAD, FAINT, GOOD, NOTE, escape};
use super::super::super::setup::Setup;
use crate::config::ConfiguredServer;

/// Replaces a secret value.
pub(super) const MASK: &str = "***";

/// A server and what is known about it without starting it.
pub(super) struct ServerStatus {
    pub(super) configured: ConfiguredServer,
    pub(super) entry: Option<ServerEntry>,
    pub(super) known: KnownServer,
    pub(super) state: ServerState,
}

/// Whether a server can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerState {
    Trusted,
    Untrusted,
    Changed,
    Off,
    Broken(String),
}

impl ServerState {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
            Self::Off => "off",
            Self::Broken(_) => "invalid",
        }
    }

    pub(super) fn style(&self) -> anstyle::Style {
        match self {
            Self::Trusted => GOOD,
            Self::Untrusted | Self::Changed => NOTE,
            Self::Off => FAINT,
            Self::Broken(_) => BAD,
        }
    }
}

/// The user's decisions about servers.
pub(super) fn trust_store() -> Result<TrustStore, ToolError> {
    Ok(TrustStore::new(&Ledger::home_from_env()?))
}

impl ServerStatus {
    pub(super) fn of(configured: ConfiguredServer, trust: &TrustStore) -> Result<Self, ToolError> {
        let (entry, mut state) = match configured.entry() {
            Ok(None) => (None, ServerState::Off),
            Ok(Some(entry)) => (Some(entry), ServerState::Trusted),
            Err(why) => (None, ServerState::Broken(why)),
        };
        let known = entry.as_ref().map(|entry| trust.known(entry)).transpose()?.unwrap_or_default();
        if let Some(entry) = &entry {
            if !known.is_trusted(entry) {
                state = ServerState::Untrusted;
            } else if known.pending.is_some() {
                state = ServerState::Changed;
            }
        }
        Ok(Self { configured, entry, known, state })
    }

    /// The server of that name.
    pub(super) fn find(setup: &Setup, flags: &ServerArgs, name: &str) -> Result<Self, ToolError> {
        let mut all = setup.configured(flags)?.all;
        let Some(at) = all.iter().position(|one| one.name == name) else {
            let near = close_names(name, all.iter().map(|one| one.name.as_str()));
            let hint = match near.as_slice() {
                [] => "See `haft mcp list`".to_owned(),
                near => format!("Did you mean {}?", near.join(" or ")),
            };
            let what = format!("there is no MCP server {name:?}. {hint}");
            return Err(ToolError::new(ErrorKind::NotFound, what));
        };
        Self::of(all.swap_remove(at), &trust_store()?)
    }

    pub(super) fn written(&self) -> &Value {
        &self.configured.written
    }

    /// Its permissions beyond reading the workspace.
    pub(super) fn grants(&self) -> ServerGrants {
        self.entry.as_ref().map(|entry| self.known.grants(entry).clone()).unwrap_or_default()
    }

    /// Its permissions in words.
    pub(super) fn permissions(&self) -> String {
        match self.transport() {
            "stdio" => self.grants().to_string(),
            _ => "runs remotely, receives the arguments of its calls".to_owned(),
        }
    }

    /// Its command or URL, with variables unexpanded.
    pub(super) fn line(&self) -> String {
        let written = self.written();
        let over_http = matches!(written["type"].as_str(), Some("http" | "sse" | "streamable-http"));
        match written["command"].as_str().filter(|command| !command.is_empty() && !over_http) {
            Some(command) => {
                let args = written["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
                words(std::iter::once(command).chain(args))
            }
            None => ["url", "httpUrl", "serverUrl"]
                .iter()
                .find_map(|name| written[*name].as_str())
                .map(escape)
                .unwrap_or_default(),
        }
    }

    /// Its transport.
    pub(super) fn transport(&self) -> &'static str {
        use crate::servers::ServerLocation;
        match self.entry.as_ref().map(|entry| &entry.location) {
            Some(ServerLocation::Process { .. }) => "stdio",
            Some(ServerLocation::Http { sse: true, .. }) => "sse",
            Some(ServerLocation::Http { .. }) => "http",
            Some(ServerLocation::Host) => "sdk",
            None if self.written()["command"].is_string() => "stdio",
            None => "http",
        }
    }

    /// The names of its variables or headers.
    pub(super) fn given(&self, what: &str) -> Vec<&str> {
        let given = self.written()[what].as_object();
        given.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }
}

/// Words quoted for a shell.
pub(super) fn words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,~".contains(c);
    let word = |word: &str| match word {
        word if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        word => format!("'{}'", escape(word).replace('\'', "'\\''")),
    };
    words.map(word).collect::<Vec<_>>().join(" ")
}
