//! One runtime for each client, so that each has its own session in the ledger.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock};

use haft_runtime::Runtime;
use haft_tool::{SideEffect, ToolError, lock};

use super::Make;
use haft_mcp::serve::{Hub, News};

/// The most sessions that are held at once; who comes back after that begins a new one.
const MOST: usize = 64;

/// The sessions of all clients.
pub(super) struct Sessions {
    make: Make,
    held: Mutex<Held>,
    /// Where it is told that tools are others.
    hub: OnceLock<Hub>,
    /// What kind of thing each tool does; the same in all sessions.
    kinds: OnceLock<HashMap<String, SideEffect>>,
}

#[derive(Default)]
struct Held {
    /// The one that was used last comes last.
    sessions: Vec<(String, Runtime)>,
}

impl Sessions {
    pub(super) fn new(make: Make) -> Self {
        Self { make, held: Mutex::default(), hub: OnceLock::new(), kinds: OnceLock::new() }
    }

    /// Has clients told at `hub` that tools are others.
    pub(super) fn tell(&self, hub: &Hub) {
        // There is one server, and so one place.
        let _ = self.hub.set(hub.clone());
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
            if let Some(hub) = self.hub.get().cloned() {
                runtime.on_tools_change(move || hub.tell(&News::Tools));
            }
            self.kinds.get_or_init(|| runtime.kinds().into_iter().collect());
            if held.sessions.len() >= MOST {
                held.sessions.remove(0);
            }
            held.sessions.push((client.to_owned(), runtime));
        }
        let newest = held.sessions.last().map(|(_, runtime)| runtime.clone());
        newest.ok_or_else(|| ToolError::internal("a session that was just made is gone"))
    }

    /// What kind of thing a tool does, if that is known already.
    pub(super) fn side_effect(&self, tool: &str) -> Option<SideEffect> {
        self.kinds.get()?.get(tool).copied()
    }

    /// Writes down all that was left for later.
    pub(super) fn settle(&self) -> Result<(), ToolError> {
        // Nobody who makes a call meanwhile has to wait for that.
        let all: Vec<Runtime> = self.held().sessions.iter().map(|(_, runtime)| runtime.clone()).collect();
        all.iter().try_for_each(Runtime::settle)
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
