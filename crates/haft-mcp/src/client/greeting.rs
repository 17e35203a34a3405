//! Finding out who is there, and in which era: the new one is tried first, for a short time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use haft_tool::Cancel;
use serde_json::{Value, json};

use super::ear::Ear;
use super::link::{Asked, Link};
use super::patience::Patience;
use super::portable::clean_line;
use super::{ClientError, ClientOptions, McpError, ServerInfo};
use crate::wire::{
    HEADER_MISMATCH, MISSING_CAPABILITY, ProtocolVersion, RequestId, RpcError, RpcMessage,
    UNSUPPORTED_VERSION, meta,
};

/// One side of a conversation that begins.
pub(super) struct Greeting<'a> {
    pub(super) link: &'a dyn Link,
    pub(super) ear: &'a Ear,
    pub(super) ids: &'a AtomicI64,
    pub(super) options: &'a ClientOptions,
    pub(super) cancel: &'a Cancel,
}

/// What came of a question in the words of the new era.
enum Found {
    Modern(ServerInfo),
    /// It knows the question, and speaks only revisions of the old era.
    Legacy(ProtocolVersion),
    /// It does not know the question.
    Strange,
    /// It says nothing.
    Silent,
}

impl Greeting<'_> {
    /// Agrees on a revision with whoever is there.
    pub(super) fn greet(&self) -> Result<ServerInfo, ClientError> {
        let until = Instant::now() + self.options.limits.connect_timeout;
        let found = match self.options.version {
            Some(version) if version.is_stateless() => self.discover(version, until, false)?,
            Some(version) => Found::Legacy(version),
            None => self.discover(ProtocolVersion::NEWEST, until, true)?,
        };
        match found {
            Found::Modern(info) => Ok(info),
            Found::Legacy(version) => self.initialize(version, until),
            Found::Strange => match self.options.version {
                Some(_) => Err(ClientError::new(
                    McpError::UnsupportedVersion,
                    "the server does not know `server/discover`",
                )),
                None => self.initialize(ProtocolVersion::NEWEST_LEGACY, until),
            },
            Found::Silent => match self.initialize(ProtocolVersion::NEWEST_LEGACY, until) {
                // It may be of the new era after all, and only slow to start.
                Err(error) if matches!(error.kind, McpError::Rpc(_)) => {
                    match self.discover(ProtocolVersion::NEWEST, until, false) {
                        Ok(Found::Modern(info)) => Ok(info),
                        _ => Err(error),
                    }
                }
                outcome => outcome,
            },
        }
    }

    fn discover(
        &self,
        version: ProtocolVersion,
        until: Instant,
        probing: bool,
    ) -> Result<Found, ClientError> {
        self.ear.let_ask(false);
        let mut version = version;
        for first in [true, false] {
            let left = until.saturating_duration_since(Instant::now());
            let limit = if probing { left.min(self.options.limits.probe_timeout) } else { left };
            let asked = self.asked("server/discover", json!({"_meta": self.meta(version)}), Some(version));
            match self.link.ask(&asked, &Patience::of(limit, self.cancel)) {
                Ok(result) => return read_discovered(&result),
                Err(ClientError { kind: McpError::Rpc(error), .. }) if error.code == UNSUPPORTED_VERSION => {
                    let offered = error.data.as_ref().and_then(|data| data.get("supported"));
                    match choose(offered).ok_or_else(|| not_spoken(offered))? {
                        // It may be the one that was just refused, but not twice.
                        modern if modern.is_stateless() && first => version = modern,
                        modern if modern.is_stateless() => return Err((*error).into()),
                        legacy => return Ok(Found::Legacy(legacy)),
                    }
                }
                Err(ClientError { kind: McpError::Rpc(error), .. }) if is_stateless(&error) => {
                    return Err((*error).into());
                }
                Err(error) => {
                    return match error.kind {
                        McpError::TimedOut if probing => Ok(Found::Silent),
                        McpError::TimedOut | McpError::Cancelled | McpError::Unauthorized => Err(error),
                        // Whatever an old server makes of it; one that is not there is not there for the next question either.
                        _ => Ok(Found::Strange),
                    };
                }
            }
        }
        Ok(Found::Strange)
    }

    /// The handshake of the old era.
    pub(super) fn initialize(
        &self,
        version: ProtocolVersion,
        until: Instant,
    ) -> Result<ServerInfo, ClientError> {
        self.ear.let_ask(true);
        let left = || until.saturating_duration_since(Instant::now());
        let params = json!({
            "protocolVersion": version.as_str(), "capabilities": self.ear.capabilities(), "clientInfo": client_info(),
        });
        let asked = self.asked("initialize", params, None);
        let result = self.link.ask(&asked, &Patience::of(left(), self.cancel))?;
        if !result.is_object() {
            return Err(ClientError::invalid_message(
                "the server answered `initialize` with something else than an object",
            ));
        }
        let named = result.get("protocolVersion");
        let spoken = named
            .and_then(Value::as_str)
            .and_then(ProtocolVersion::parse)
            .filter(|version| !version.is_stateless());
        let version = spoken.ok_or_else(|| not_spoken(named))?;
        self.link.agreed(version);
        self.link.tell(&RpcMessage::notification("notifications/initialized", Value::Null), left())?;
        Ok(ServerInfo::read(version, &result))
    }

    /// What every request of the new era says of itself.
    pub(super) fn meta(&self, version: ProtocolVersion) -> Value {
        json!({
            meta::VERSION: version.as_str(), meta::CLIENT: client_info(), meta::CAPABILITIES: self.ear.capabilities(),
        })
    }

    fn asked(&self, method: &'static str, params: Value, version: Option<ProtocolVersion>) -> Asked {
        let id = RequestId::Number(self.ids.fetch_add(1, Ordering::Relaxed));
        Asked { id, method, params, version, headers: Vec::new() }
    }
}

fn client_info() -> Value {
    json!({"name": "haft", "version": env!("CARGO_PKG_VERSION")})
}

/// Whether only a server of the new era says this.
fn is_stateless(error: &RpcError) -> bool {
    matches!(error.code, HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION)
}

fn read_discovered(result: &Value) -> Result<Found, ClientError> {
    let complete = result.get("resultType").is_none_or(|kind| kind == "complete");
    let offered = result.get("supportedVersions").filter(|offered| offered.is_array() && complete);
    let Some(offered) = offered else { return Ok(Found::Strange) };
    Ok(match choose(Some(offered)).ok_or_else(|| not_spoken(Some(offered)))? {
        modern if modern.is_stateless() => Found::Modern(ServerInfo::read(modern, result)),
        legacy => Found::Legacy(legacy),
    })
}

/// The newest of the offered revisions that is spoken here.
fn choose(offered: Option<&Value>) -> Option<ProtocolVersion> {
    let offered = offered?.as_array()?;
    offered.iter().filter_map(Value::as_str).filter_map(ProtocolVersion::parse).max()
}

fn not_spoken(named: Option<&Value>) -> ClientError {
    let spoken = ProtocolVersion::names().join(", ");
    let why = match named {
        None | Some(Value::Null) => "the server names no revision of the protocol".to_owned(),
        Some(named) => format!("the server speaks revision {}", clean_line(&named.to_string(), 200)),
    };
    ClientError::new(McpError::UnsupportedVersion, format!("{why}; spoken here are {spoken}"))
}
