//! Making the calls of an answer.

use haft_tool::{Effect, ToolError};

use crate::calls::FinishedCall;
use crate::instructions::nested_instructions;
use crate::schedule::{CallEffects, earlier_conflicts};
use crate::turn::TurnWork;
use crate::{AgentRun, LoopEvent, RunEvent, call_results};

impl AgentRun {
    /// Makes the open calls: together where they cannot meet, else in the model's order.
    pub(crate) fn make_calls(&mut self, work: &mut TurnWork<'_>) -> Result<(), ToolError> {
        let plan = |open: &crate::OpenCall| -> CallEffects {
            let runtime = &self.parts.runtime;
            match open.result {
                Some(_) => Some(Vec::new()),
                None => runtime.planned_effects(&open.call.to_call()).ok(),
            }
        };
        let effects: Vec<CallEffects> = self.state.open_calls.iter().map(plan).collect();
        let waits = earlier_conflicts(&effects);
        loop {
            self.start_calls(&waits, work)?;
            if self.state.open_calls.is_empty() {
                return self.add_instructions(effects.into_iter().flatten().flatten());
            }
            let finished = work.pool.wait(work.observer)?;
            self.finish_call(finished, work.observer)?;
        }
    }

    /// Adds the instructions of the directories that calls with these effects work in.
    fn add_instructions(&mut self, effects: impl Iterator<Item = Effect>) -> Result<(), ToolError> {
        if !self.settings.nested_instructions {
            return Ok(());
        }
        let path = |effect| match effect {
            Effect::Read { path } | Effect::Write { path } => Some(path),
            _ => None,
        };
        let paths: Vec<_> = effects.filter_map(path).collect();
        let workspace = self.parts.runtime.workspace();
        let found = nested_instructions(workspace, &paths, &self.state.instruction_files);
        if found.text.is_empty() {
            return Ok(());
        }
        let text =
            format!("The project's instructions for the directories you work in:\n\n{}", found.text.trim());
        self.append(RunEvent::Instructions { files: found.files, text })
    }

    /// Starts the calls that wait for no other.
    fn start_calls(&mut self, waits: &[Vec<usize>], work: &mut TurnWork<'_>) -> Result<(), ToolError> {
        for (at, waits_for) in waits.iter().enumerate() {
            let Some(open) = self.state.open_calls.get(at).filter(|open| open.result.is_none()) else {
                continue;
            };
            let (call, is_started) = (open.call.clone(), open.is_started);
            let call_id = call.id.clone();
            if work.pool.has(&call_id) {
                // It started while the answer arrived.
                if !is_started {
                    self.append(RunEvent::CallStarted { call_id })?;
                }
                continue;
            }
            let refusal = self.settings.allowed.refusal(&call.name, &self.parts.runtime);
            let unmade = match refusal {
                _ if work.clock.cancel.is_cancelled() => Some(call_results::not_started(&call)),
                refusal => refusal.map(|why| call_results::failed(&call, &why.message)),
            };
            if let Some(result) = unmade {
                self.finish_call(FinishedCall::new(result), work.observer)?;
                continue;
            }
            let is_done =
                |other: &usize| self.state.open_calls.get(*other).is_none_or(|open| open.result.is_some());
            if waits_for.iter().all(is_done) && work.pool.has_room() {
                self.append(RunEvent::CallStarted { call_id })?;
                work.pool.start(&call, &work.clock.cancel);
                work.observer.on_event(&LoopEvent::CallStarted(call));
            }
        }
        Ok(())
    }
}
