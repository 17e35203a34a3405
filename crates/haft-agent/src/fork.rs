//! A copy of a run that goes on by itself, and taking a run back to an earlier turn.

use std::sync::Arc;

use haft_tool::{ErrorKind, ToolError};

use crate::run::no_run;
use crate::run_log::{RunLog, read_events};
use crate::{AgentRun, RunEvent, RunParts, RunSettings, RunState, call_results};

impl AgentRun {
    /// Starts a run with everything that happened in another one, which is not changed. Calls that the other one left open count
    /// as interrupted: it may still be making them.
    pub fn fork(parts: RunParts, settings: RunSettings, from: &str) -> Result<Self, ToolError> {
        let events = read_events(parts.log.as_ref(), from)?;
        if RunState::of(&events).is_none() {
            return Err(no_run(from));
        }
        let mut log = RunLog::new(Arc::clone(&parts.log), parts.session.clone(), 0);
        for logged in events {
            let event = match logged.event {
                RunEvent::Started(mut start) => {
                    start.forked_from = Some(from.to_owned());
                    RunEvent::Started(start)
                }
                event => event,
            };
            log.append(event)?;
        }
        let mut run = Self::resume(parts, settings)?;
        let open: Vec<_> =
            run.state.open_calls.iter().filter(|open| open.result.is_none()).cloned().collect();
        for open in open {
            let result = call_results::failed(
                &open.call,
                "interrupted: the run was copied while this call was under way; look at the state before you repeat it.",
            );
            run.append(RunEvent::CallFinished { result, receipt: None })?;
        }
        Ok(run)
    }

    /// Takes the conversation back to what it was before a turn, counted from 1. Files are not changed by this.
    pub fn rewind(&mut self, turn: usize) -> Result<(), ToolError> {
        let mark = turn.checked_sub(1).and_then(|at| self.state.turns.get(at)).ok_or_else(|| {
            let count = self.state.turns.len();
            let message = format!("Session {} has no turn {turn}; it has {count}.", self.parts.session);
            ToolError::new(ErrorKind::NotFound, message)
        })?;
        let to = mark.seq - 1;
        self.append(RunEvent::Rewound { to })?;
        let events = read_events(self.parts.log.as_ref(), &self.parts.session)?;
        self.state = RunState::of(&events).ok_or_else(|| no_run(&self.parts.session))?;
        Ok(())
    }

    /// The calls of a turn and all later ones, by their numbers in the ledger.
    pub fn receipts_since(&self, turn: usize) -> Vec<i64> {
        let turns = self.state.turns.iter().skip(turn.saturating_sub(1));
        turns.flat_map(|turn| turn.receipts.iter().copied()).collect()
    }
}
