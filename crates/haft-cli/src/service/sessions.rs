//! One runtime per client, each with its own session in the ledger.

use std::sync::{Mutex, OnceLock};

use haft_runtime::Runtime;
use haft_tool::{ToolError, lock};

use super::CreateRuntime;
use haft_mcp::serve::{ChangeNotifier, ServerChange};

/// The largest number of open sessions; the least recently used one is closed.
const MAX_SESSIONS: usize = 64;

/// The sessions of all clients.
pub(super) struct Sessions {
    create: CreateRuntime,
    /// By client; the most recently used one is last.
    open: Mutex<Vec<(String, Runtime)>>,
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

    /// Returns the client's runtime, creating it if needed.
    pub(super) fn get(&self, client: &str) -> Result<Runtime, ToolError> {
        let mut open = lock(&self.open);
        if let Some(at) = open.iter().position(|(name, _)| name == client) {
            if at + 1 != open.len() {
                let found = open.remove(at);
                open.push(found);
            }
        } else {
            let runtime = (self.create)()?;
            if let Some(notifier) = self.notifier.get().cloned() {
                runtime.on_tools_change(move || notifier.notify(&ServerChange::Tools));
            }
            if open.len() >= MAX_SESSIONS {
                open.remove(0);
            }
            open.push((client.to_owned(), runtime));
        }
        let newest = open.last().map(|(_, runtime)| runtime.clone());
        newest.ok_or_else(|| ToolError::internal("a new session was not stored"))
    }

    pub(super) fn close(&self) {
        for (_, runtime) in std::mem::take(&mut *lock(&self.open)) {
            runtime.end();
        }
    }
}
