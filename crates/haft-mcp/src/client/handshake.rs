//! Agrees on a protocol version: stateless versions are tried first, for a short time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use haft_tool::Cancel;
use serde_json::{Value, json};

use super::connection::{PreparedRequest, ServerConnection};
use super::deadline::Deadline;
use super::inbound::Inbound;
use super::portable::clean_line;
use super::{ClientError, ClientOptions, McpError, ServerInfo};
use crate::wire::{
    HEADER_MISMATCH, MISSING_CAPABILITY, ProtocolVersion, RequestId, RpcError, RpcMessage,
    UNSUPPORTED_VERSION, meta,
};

/// Characters of a server's own version list that an error repeats.
const MAX_SHOWN_CHARS: usize = 200;

/// What a handshake needs.
pub(super) struct Handshake<'a> {
    pub(super) connection: &'a dyn ServerConnection,
    pub(super) inbound: &'a Inbound,
    pub(super) last_id: &'a AtomicI64,
    pub(super) options: &'a ClientOptions,
    pub(super) cancel: &'a Cancel,
}

/// The outcome of `server/discover`.
enum Discovery {
    Stateless(ServerInfo),
    /// The server supports only legacy versions.
    Legacy(ProtocolVersion),
    /// The server does not know the method.
    Unknown,
    /// The server does not answer.
    NoAnswer,
}

impl Handshake<'_> {
    /// Agrees on a version and returns what the server says about itself.
    pub(super) fn run(&self) -> Result<ServerInfo, ClientError> {
        let until = Instant::now() + self.options.limits.connect_timeout;
        let discovery = match self.options.version {
            Some(version) if version.is_stateless() => self.discover(version, until, false)?,
            Some(version) => Discovery::Legacy(version),
            None => self.discover(ProtocolVersion::NEWEST, until, true)?,
        };
        match discovery {
            Discovery::Stateless(info) => Ok(info),
            Discovery::Legacy(version) => self.initialize(version, until),
            Discovery::Unknown if self.options.version.is_some() => {
                let why = "the server does not know `server/discover`";
                Err(ClientError::new(McpError::UnsupportedVersion, why))
            }
            Discovery::Unknown => self.initialize(ProtocolVersion::NEWEST_LEGACY, until),
            Discovery::NoAnswer => match self.initialize(ProtocolVersion::NEWEST_LEGACY, until) {
                // It may be stateless after all, and only slow to start.
                Err(error) if matches!(error.kind, McpError::Rpc(_)) => {
                    match self.discover(ProtocolVersion::NEWEST, until, false) {
                        Ok(Discovery::Stateless(info)) => Ok(info),
                        _ => Err(error),
                    }
                }
                outcome => outcome,
            },
        }
    }

    /// Sends `server/discover`; while `probing`, only for a short time.
    fn discover(
        &self,
        mut version: ProtocolVersion,
        until: Instant,
        probing: bool,
    ) -> Result<Discovery, ClientError> {
        self.inbound.set_accepts_requests(false);
        for is_first in [true, false] {
            let remaining = until.saturating_duration_since(Instant::now());
            let timeout = if probing { remaining.min(self.options.limits.probe_timeout) } else { remaining };
            let params = json!({"_meta": self.request_meta(version)});
            let request = self.prepare("server/discover", params, Some(version));
            let error = match self.connection.request(&request, &Deadline::after(timeout, self.cancel)) {
                Ok(result) => return read_discovery(&result),
                Err(error) => error,
            };
            match error.kind {
                McpError::Rpc(error) if error.code == UNSUPPORTED_VERSION => {
                    let supported = error.data.as_ref().and_then(|data| data.get("supported"));
                    match newest_common(supported).ok_or_else(|| no_common_version(supported))? {
                        // Retried once, with a version that the server names.
                        offered if offered.is_stateless() && is_first => version = offered,
                        offered if offered.is_stateless() => return Err((*error).into()),
                        legacy => return Ok(Discovery::Legacy(legacy)),
                    }
                }
                McpError::Rpc(error) if is_stateless_error(&error) => return Err((*error).into()),
                McpError::TimedOut if probing => return Ok(Discovery::NoAnswer),
                McpError::TimedOut | McpError::Cancelled | McpError::Unauthorized => return Err(error),
                // Legacy servers react in many ways. One that is unreachable fails again at `initialize`.
                _ => return Ok(Discovery::Unknown),
            }
        }
        Ok(Discovery::Unknown)
    }

    /// The handshake of legacy versions.
    pub(super) fn initialize(
        &self,
        version: ProtocolVersion,
        until: Instant,
    ) -> Result<ServerInfo, ClientError> {
        self.inbound.set_accepts_requests(true);
        let remaining = || until.saturating_duration_since(Instant::now());
        let params = json!({
            "protocolVersion": version.as_str(),
            "capabilities": self.inbound.capabilities().to_value(),
            "clientInfo": client_info(),
        });
        let request = self.prepare("initialize", params, None);
        let result = self.connection.request(&request, &Deadline::after(remaining(), self.cancel))?;
        if !result.is_object() {
            return Err(ClientError::invalid_message("the server's answer to `initialize` is not an object"));
        }
        let named = result.get("protocolVersion");
        let version = named.and_then(Value::as_str).and_then(ProtocolVersion::parse);
        let version = version.filter(|version| !version.is_stateless());
        let version = version.ok_or_else(|| no_common_version(named))?;
        self.connection.negotiated(version);
        let initialized = RpcMessage::notification("notifications/initialized", Value::Null);
        self.connection.send(&initialized, remaining())?;
        Ok(ServerInfo::read(version, &result))
    }

    /// The `_meta` of every stateless request.
    pub(super) fn request_meta(&self, version: ProtocolVersion) -> Value {
        json!({
            meta::VERSION: version.as_str(),
            meta::CLIENT: client_info(),
            meta::CAPABILITIES: self.inbound.capabilities().to_value(),
        })
    }

    fn prepare(
        &self,
        method: &'static str,
        params: Value,
        version: Option<ProtocolVersion>,
    ) -> PreparedRequest {
        let id = RequestId::Number(self.last_id.fetch_add(1, Ordering::Relaxed));
        PreparedRequest { id, method, params, version, headers: Vec::new() }
    }
}

fn client_info() -> Value {
    json!({"name": "haft", "version": env!("CARGO_PKG_VERSION")})
}

/// Whether only stateless servers send this error.
fn is_stateless_error(error: &RpcError) -> bool {
    matches!(error.code, HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION)
}

fn read_discovery(result: &Value) -> Result<Discovery, ClientError> {
    let is_complete = result.get("resultType").is_none_or(|kind| kind == "complete");
    let supported = result.get("supportedVersions").filter(|supported| supported.is_array() && is_complete);
    let Some(supported) = supported else { return Ok(Discovery::Unknown) };
    Ok(match newest_common(Some(supported)).ok_or_else(|| no_common_version(Some(supported)))? {
        version if version.is_stateless() => Discovery::Stateless(ServerInfo::read(version, result)),
        legacy => Discovery::Legacy(legacy),
    })
}

fn newest_common(supported: Option<&Value>) -> Option<ProtocolVersion> {
    let supported = supported?.as_array()?;
    supported.iter().filter_map(Value::as_str).filter_map(ProtocolVersion::parse).max()
}

fn no_common_version(named: Option<&Value>) -> ClientError {
    let why = match named {
        None | Some(Value::Null) => "the server names no protocol version".to_owned(),
        Some(named) => {
            format!("the server's protocol version is {}", clean_line(&named.to_string(), MAX_SHOWN_CHARS))
        }
    };
    let own = ProtocolVersion::names().join(", ");
    ClientError::new(McpError::UnsupportedVersion, format!("{why}; Haft supports {own}"))
}
