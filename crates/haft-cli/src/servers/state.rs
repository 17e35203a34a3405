//! What is known of a server without asking it.

use super::handle::ServerHandle;

/// What is known of a server without asking it.
#[derive(Debug, Clone)]
pub struct ServerSnapshot {
    /// Its name.
    pub name: String,
    /// Whether it can be used.
    pub connection: ServerConnectionState,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// What is wrong with it.
    pub failure: Option<String>,
}

/// Whether a server can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerConnectionState {
    /// Its tools are known.
    Ready,
    /// It has not answered yet.
    Connecting,
    /// It could not be reached.
    Failed,
    /// The user has not consented to it.
    Untrusted,
}

impl ServerSnapshot {
    pub(super) fn of(handle: &ServerHandle) -> Self {
        let tools = handle.tools();
        let connection = if handle.untrusted().is_some() {
            ServerConnectionState::Untrusted
        } else if handle.has_failed() {
            ServerConnectionState::Failed
        } else if tools.is_some() {
            ServerConnectionState::Ready
        } else {
            ServerConnectionState::Connecting
        };
        Self {
            name: handle.entry.name.clone(),
            connection,
            tools: tools.iter().flat_map(|tools| tools.iter()).map(|tool| tool.name.clone()).collect(),
            failure: handle.warnings().pop(),
        }
    }
}
