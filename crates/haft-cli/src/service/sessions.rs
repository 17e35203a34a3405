//! One runtime for each client, so that each has its own session in the ledger.

use std::sync::{Mutex, MutexGuard, OnceLock};

use haft_runtime::Runtime;
use haft_tool::{ToolError, lock};

use super::Make;
use haft_mcp::serve::{ChangeNotifier, ServerChange};

/// The most sessions that are held at once; who comes back after that begins a new one.
const MOST: usize = 64;

/// The sessions of all clients.
pub(super) struct Sessions {
    make: Make,
    held: Mutex<Held>,
    /// Where it is told that tools are others.
    notifier: OnceLock<ChangeNotifier>,
}

#[derive(Default)]
struct Held {
    /// The one that was used last comes last.
    sessions: Vec<(String, Runtime)>,
}

impl Sessions {
    pub(super) fn new(make: Make) -> Self {
        Self { make, held: Mutex::default(), notifier: OnceLock::new() }
    }

    /// Has clients told at `notifier` that tools are others.
    pub(super) fn tell(&self, notifier: &ChangeNotifier) {
        // There is one server, and so one place.
        let _ = self.notifier.set(notifier.clone());
    }

    /// The session of that client.
    pub(super) fn get(&self, client: &str) -> Result<Runtime, ToolError> {
        let mut held = self.held();
        if let Some(at) = held.sessions.iter().position(|(name, _)| name == client) {
            if at + 1 != held.sessions.len() {
                let found = held.sessions.remove(at);
                held.sessions.push(found);
            }
        } else {
            let runtime = (self.make)()?;
            if let Some(notifier) = self.notifier.get().cloned() {
                runtime.on_tools_change(move || notifier.notify(&ServerChange::Tools));
            }
            if held.sessions.len() >= MOST {
                held.sessions.remove(0);
            }
            held.sessions.push((client.to_owned(), runtime));
        }
        let newest = held.sessions.last().map(|(_, runtime)| runtime.clone());
        newest.ok_or_else(|| ToolError::internal("a session that was just made is gone"))
    }

    pub(super) fn close(&self) {
        for (_, runtime) in std::mem::take(&mut self.held().sessions) {
            runtime.end();
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        lock(&self.held)
    }
}
