//! The agents of a process that run now, and those in the background that have ended.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_tool::{AgentTask, Cancel, TaskState, ToolError, lock};

/// Ended background agents that can still be read.
const MAX_ENDED_AGENTS: usize = 64;

/// The agents of a process.
pub(super) struct AgentTable {
    max_running: usize,
    state: Mutex<AgentTableState>,
}

#[derive(Default)]
struct AgentTableState {
    running: usize,
    /// The sessions of agents that are being driven.
    sessions: BTreeSet<String>,
    background: Vec<Arc<BackgroundAgent>>,
}

/// An agent that runs in the background, or did.
pub(super) struct BackgroundAgent {
    pub(super) id: String,
    /// The session of the run that started it.
    pub(super) owner: String,
    pub(super) description: String,
    pub(super) cancel: Cancel,
    /// Fires when it has ended.
    pub(super) ended: Cancel,
    pub(super) status: Arc<Mutex<AgentStatus>>,
}

/// What an agent does now, or what came of it.
pub(super) struct AgentStatus {
    pub(super) state: TaskState,
    pub(super) text: String,
}

impl Default for AgentStatus {
    fn default() -> Self {
        Self { state: TaskState::Running, text: "it has just begun".to_owned() }
    }
}

/// The right to run one agent; given back when it is dropped.
pub(super) struct AgentSlot {
    table: Arc<AgentTable>,
    session: Option<String>,
}

impl AgentTable {
    pub(super) fn new(max_running: usize) -> Self {
        Self { max_running, state: Mutex::default() }
    }

    /// Takes a slot, or says why there is none.
    pub(super) fn slot(self: &Arc<Self>) -> Result<AgentSlot, ToolError> {
        let mut state = lock(&self.state);
        if state.running >= self.max_running {
            return Err(ToolError::failed(format!(
                "{} agents are running, and there may be no more at once. Wait for one to end, stop one, or do the task with the \
                 other tools.",
                state.running
            )));
        }
        state.running += 1;
        Ok(AgentSlot { table: Arc::clone(self), session: None })
    }

    pub(super) fn add(&self, agent: Arc<BackgroundAgent>) {
        let mut state = lock(&self.state);
        // An agent that goes on replaces what it was.
        state.background.retain(|known| known.id != agent.id);
        while state.background.iter().filter(|known| known.ended.is_cancelled()).count() >= MAX_ENDED_AGENTS {
            let Some(oldest) = state.background.iter().position(|known| known.ended.is_cancelled()) else {
                break;
            };
            state.background.remove(oldest);
        }
        state.background.push(agent);
    }

    pub(super) fn find(&self, id: &str, owner: &str) -> Option<Arc<BackgroundAgent>> {
        let state = lock(&self.state);
        state.background.iter().find(|agent| agent.id == id && agent.owner == owner).cloned()
    }

    /// The agents that a run has started in the background.
    pub(super) fn of(&self, owner: &str) -> Vec<Arc<BackgroundAgent>> {
        lock(&self.state).background.iter().filter(|agent| agent.owner == owner).cloned().collect()
    }
}

impl AgentSlot {
    /// Names the session that is driven; an error if it is driven already.
    pub(super) fn drive(&mut self, session: &str) -> Result<(), ToolError> {
        if !lock(&self.table.state).sessions.insert(session.to_owned()) {
            return Err(ToolError::invalid_arguments(format!(
                "resume: agent {session} is still running. Read it with TaskOutput, or stop it first"
            )));
        }
        self.session = Some(session.to_owned());
        Ok(())
    }
}

impl Drop for AgentSlot {
    fn drop(&mut self) {
        let mut state = lock(&self.table.state);
        state.running -= 1;
        if let Some(session) = &self.session {
            state.sessions.remove(session);
        }
    }
}

impl BackgroundAgent {
    pub(super) fn task(&self) -> AgentTask {
        let status = lock(&self.status);
        AgentTask {
            id: self.id.clone(),
            description: self.description.clone(),
            state: status.state,
            text: status.text.clone(),
        }
    }

    /// Waits for its end, for at most `limit` or until `cancel`.
    pub(super) fn wait(&self, limit: Duration, cancel: &Cancel) {
        let either = Cancel::new();
        let (one, other) = (either.clone(), either.clone());
        let _links = (self.ended.on_cancel(move || one.cancel()), cancel.on_cancel(move || other.cancel()));
        either.wait(limit);
    }
}
