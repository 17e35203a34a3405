//! One configured server as a person looks at it: what was written, and how it stands. Values that may be secret are covered.

use crate::servers::{KnownServer, ServerEntry, ServerGrants, TrustStore};
use haft_ledger::Ledger;
use haft_tool::{ErrorKind, ToolError, Value, close_names};

use super::super::super::args::Servers;
use super::super::super::screen::{BAD, FAINT, GOOD, NOTE, visible};
use super::super::super::setup::Setup;
use crate::config::Configured;

/// What stands for a value that is not shown.
pub(super) const COVERED: &str = "***";

/// A server and all that is known of it without starting it.
pub(super) struct Server {
    pub(super) configured: Configured,
    pub(super) entry: Option<ServerEntry>,
    pub(super) known: KnownServer,
    pub(super) state: State,
}

/// How a server stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Trusted,
    Asks,
    Changed,
    Off,
    Broken(String),
}

impl State {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Asks => "needs your yes",
            Self::Changed => "changed",
            Self::Off => "off",
            Self::Broken(_) => "left out",
        }
    }

    pub(super) fn style(&self) -> anstyle::Style {
        match self {
            Self::Trusted => GOOD,
            Self::Asks | Self::Changed => NOTE,
            Self::Off => FAINT,
            Self::Broken(_) => BAD,
        }
    }
}

/// Where the user's consents are kept.
pub(super) fn consents() -> Result<TrustStore, ToolError> {
    Ok(TrustStore::new(&Ledger::home_from_env()?))
}

impl Server {
    pub(super) fn of(configured: Configured, trust: &TrustStore) -> Result<Self, ToolError> {
        let (entry, mut state) = match configured.entry() {
            Ok(None) => (None, State::Off),
            Ok(Some(entry)) => (Some(entry), State::Trusted),
            Err(why) => (None, State::Broken(why)),
        };
        let known = entry.as_ref().map(|entry| trust.known(entry)).transpose()?.unwrap_or_default();
        if let Some(entry) = &entry {
            if !known.is_trusted(entry) {
                state = State::Asks;
            } else if known.pending.is_some() {
                state = State::Changed;
            }
        }
        Ok(Self { configured, entry, known, state })
    }

    /// The server of that name.
    pub(super) fn find(setup: &Setup, flags: &Servers, name: &str) -> Result<Self, ToolError> {
        let mut all = setup.configured(flags)?.all;
        let Some(at) = all.iter().position(|one| one.name == name) else {
            let near = close_names(name, all.iter().map(|one| one.name.as_str()));
            let hint = match near.as_slice() {
                [] => "`haft mcp list` lists them".to_owned(),
                near => format!("did you mean {}?", near.join(" or ")),
            };
            let what = format!("there is no MCP server {name:?}; {hint}");
            return Err(ToolError::new(ErrorKind::NotFound, what));
        };
        Self::of(all.swap_remove(at), &consents()?)
    }

    pub(super) fn written(&self) -> &Value {
        &self.configured.written
    }

    /// What it may do.
    pub(super) fn grants(&self) -> ServerGrants {
        self.entry.as_ref().map(|entry| self.known.grants(entry).clone()).unwrap_or_default()
    }

    /// What it may do, in words.
    pub(super) fn may_do(&self) -> String {
        match self.transport() {
            "stdio" => self.grants().to_string(),
            _ => "runs elsewhere, sees what calls send it".to_owned(),
        }
    }

    /// How it is reached, in one line, as it was written: variables are not filled in.
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
                .map(visible)
                .unwrap_or_default(),
        }
    }

    /// How it is reached, in one word.
    pub(super) fn transport(&self) -> &'static str {
        use crate::servers::ServerLocation;
        match self.entry.as_ref().map(|entry| &entry.location) {
            Some(ServerLocation::Process { .. }) => "stdio",
            Some(ServerLocation::Http { sse: true, .. }) => "sse",
            Some(ServerLocation::Http { .. }) => "http",
            None if self.written()["command"].is_string() => "stdio",
            None => "http",
        }
    }

    /// The names of what it is given, variables or headers.
    pub(super) fn given(&self, what: &str) -> Vec<&str> {
        let given = self.written()[what].as_object();
        given.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }
}

/// Words as a shell would take them, so that it is seen where one ends and the next begins.
pub(super) fn words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,~".contains(c);
    let word = |word: &str| match word {
        word if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        word => format!("'{}'", visible(word).replace('\'', "'\\''")),
    };
    words.map(word).collect::<Vec<_>>().join(" ")
}
