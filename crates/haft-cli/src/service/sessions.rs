//! One runtime per client, each with its own session in the ledger.

use std::sync::{Arc, Mutex, OnceLock};

use haft_runtime::Runtime;
use haft_tool::{ToolError, lock};

use super::workspace::ClientWorkspace;
use crate::host::CommandLine;
use haft_mcp::serve::{ChangeNotifier, ServerChange};

/// The largest number of open sessions; the least recently used one is closed.
const MAX_SESSIONS: usize = 64;

/// Creates the runtime of one client, with its own session in the ledger. Without a workspace it can only list its tools.
pub(crate) type CreateRuntime =
    Box<dyn Fn(Option<&ClientWorkspace>) -> Result<ClientRuntime, ToolError> + Send + Sync>;

/// The runtime of one client.
#[derive(Clone)]
pub(crate) struct ClientRuntime {
    pub(crate) runtime: Runtime,
    /// Does what the client cannot.
    pub(crate) host: Arc<CommandLine>,
}

struct Session {
    client: String,
    runtime: ClientRuntime,
    has_workspace: bool,
}

/// The sessions of all clients.
pub(super) struct Sessions {
    create: CreateRuntime,
    /// The most recently used one is last.
    open: Mutex<Vec<Session>>,
    /// Where changes of the tool list are announced.
    notifier: OnceLock<ChangeNotifier>,
}

impl Sessions {
    pub(super) fn new(create: CreateRuntime) -> Self {
        Self { create, open: Mutex::default(), notifier: OnceLock::new() }
    }

    /// Announces changes of the tool list to `notifier`.
    pub(super) fn announce_to(&self, notifier: &ChangeNotifier) {
        // Called once, by the one server.
        let _ = self.notifier.set(notifier.clone());
    }

    /// The client's runtime, if it has a workspace.
    pub(super) fn with_workspace(&self, client: &str) -> Option<ClientRuntime> {
        let mut open = lock(&self.open);
        let at = open.iter().position(|session| session.client == client && session.has_workspace)?;
        if at + 1 != open.len() {
            let found = open.remove(at);
            open.push(found);
        }
        open.last().map(|session| session.runtime.clone())
    }

    /// The client's runtime, created if needed; one without a workspace is replaced once there is one.
    pub(super) fn open(
        &self,
        client: &str,
        workspace: Option<&ClientWorkspace>,
    ) -> Result<ClientRuntime, ToolError> {
        let mut open = lock(&self.open);
        let known = open.iter().position(|session| session.client == client);
        let known = known.map(|at| open.remove(at));
        if let Some(session) = known {
            if session.has_workspace || workspace.is_none() {
                let runtime = session.runtime.clone();
                open.push(session);
                return Ok(runtime);
            }
            session.runtime.runtime.end();
        }
        let runtime = (self.create)(workspace)?;
        if let Some(notifier) = self.notifier.get().cloned() {
            runtime.runtime.on_tools_change(move || notifier.notify(&ServerChange::Tools));
        }
        if open.len() >= MAX_SESSIONS {
            open.remove(0);
        }
        let (client, has_workspace) = (client.to_owned(), workspace.is_some());
        open.push(Session { client, runtime: runtime.clone(), has_workspace });
        Ok(runtime)
    }

    pub(super) fn close(&self) {
        for session in std::mem::take(&mut *lock(&self.open)) {
            session.runtime.runtime.end();
        }
    }
}
