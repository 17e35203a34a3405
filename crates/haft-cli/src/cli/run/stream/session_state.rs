//! Whether the session runs, waits for the program that drives it, or is idle: that program closes its stream when it is idle.

use std::sync::{Arc, Mutex};

use haft_tool::{json, lock};

use super::ids::new_uuid;
use super::writer::StreamWriter;

/// The variable by which the SDKs ask for these messages.
const WANTED_BY: &str = "CLAUDE_CODE_SDK_READS_SESSION_STATE";

/// Reports the state of the session, if the program reads it.
pub(super) struct StateReports {
    writer: Arc<StreamWriter>,
    is_wanted: bool,
    known: Mutex<KnownState>,
}

struct KnownState {
    session: String,
    is_running: bool,
    open_questions: usize,
    reported: &'static str,
}

impl StateReports {
    pub(super) fn new(writer: Arc<StreamWriter>, has_host: bool) -> Self {
        let is_set =
            std::env::var(WANTED_BY).is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
        let known =
            KnownState { session: String::new(), is_running: false, open_questions: 0, reported: "idle" };
        Self { writer, is_wanted: has_host && is_set, known: Mutex::new(known) }
    }

    pub(super) fn set_session(&self, session: &str) {
        session.clone_into(&mut lock(&self.known).session);
    }

    /// A turn begins.
    pub(super) fn begin_turn(&self) {
        self.change(|known| known.is_running = true);
    }

    /// Nothing is under way any more.
    pub(super) fn become_idle(&self) {
        self.change(|known| known.is_running = false);
    }

    /// The program is asked something, until the result is dropped.
    pub(super) fn open_question(self: &Arc<Self>) -> OpenHostQuestion {
        self.change(|known| known.open_questions += 1);
        OpenHostQuestion(Arc::clone(self))
    }

    fn change(&self, change: impl FnOnce(&mut KnownState)) {
        let mut known = lock(&self.known);
        change(&mut known);
        let state = match (known.is_running, known.open_questions) {
            (false, _) => "idle",
            (true, 0) => "running",
            (true, _) => "requires_action",
        };
        if known.reported == state {
            return;
        }
        known.reported = state;
        if self.is_wanted {
            self.writer.send(json!({
                "type": "system", "subtype": "session_state_changed", "state": state, "sdk_host_only": true,
                "uuid": new_uuid(), "session_id": known.session,
            }));
        }
    }
}

/// A question that the program has not answered yet.
pub(super) struct OpenHostQuestion(Arc<StateReports>);

impl Drop for OpenHostQuestion {
    fn drop(&mut self) {
        self.0.change(|known| known.open_questions = known.open_questions.saturating_sub(1));
    }
}
