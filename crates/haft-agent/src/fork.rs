//! A copy of a run that goes on by itself.

use std::sync::Arc;

use haft_tool::ToolError;

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
                // The spans of a turn are those of the run in which it was made.
                RunEvent::UserMessage { content, uuid, .. } => {
                    RunEvent::UserMessage { content, uuid, trace: None }
                }
                event => event,
            };
            log.append(event)?;
        }
        let mut run = Self::resume(parts, settings)?;
        run.is_copy = true;
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
}
