//! MCP servers inside the program that drives the run.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::client::{ClientError, McpError, MessageLink};
use haft_tool::{Cancel, Value, json};

use super::host_link::{NoReply, QuestionLimits};
use super::session::HostSession;
use crate::servers::{HostLinks, ServerEntry, ServerOrigin};

/// Passes messages on to one server.
struct ServerLink {
    session: Arc<HostSession>,
    name: String,
}

/// Leads to the servers of the program.
pub(super) fn links(session: &Arc<HostSession>) -> HostLinks {
    let session = Arc::clone(session);
    Arc::new(move |name| Arc::new(ServerLink { session: Arc::clone(&session), name: name.to_owned() }))
}

/// The entries of servers that the program names; those that are configured already are left out.
pub(in crate::cli::run) fn entries(
    names: &[String],
    known: &[ServerEntry],
) -> Result<Vec<ServerEntry>, String> {
    let mut entries: Vec<ServerEntry> = Vec::new();
    for name in names {
        if known.iter().chain(&entries).any(|entry| entry.name == *name) {
            continue;
        }
        let written = json!({"type": "sdk", "name": name});
        entries.extend(ServerEntry::read(name, &written, ServerOrigin::Flag, &|_| None)?);
    }
    Ok(entries)
}

impl MessageLink for ServerLink {
    fn exchange(&self, message: Value, limit: Duration, cancel: &Cancel) -> Result<Value, ClientError> {
        let request = json!({"subtype": "mcp_message", "server_name": self.name, "message": message});
        let limits = QuestionLimits { call_id: None, timeout: Some(limit) };
        match self.session.link.ask(&request, &limits, cancel) {
            Ok(mut answer) => Ok(answer.get_mut("mcp_response").map(Value::take).unwrap_or_default()),
            Err(failure) => {
                let kind = match &failure {
                    NoReply::Gone => McpError::Disconnected,
                    NoReply::Cancelled => McpError::Cancelled,
                    NoReply::TimedOut => McpError::TimedOut,
                    NoReply::Failed(_) => McpError::Unreachable,
                };
                Err(ClientError::new(kind, failure.message()))
            }
        }
    }
}
