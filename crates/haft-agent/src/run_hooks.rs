//! The user's hooks on what happens in a run: its session, prompts, the end of turns, subagents, compaction.

use haft_compat::hooks::{BatchCall, HookEvent, HookInput, HookOutcome, HookStop};
use haft_model::{CallArguments, ChatMessage, ContentPart, ToolCall};
use haft_tool::{Cancel, ToolError, Value};

use crate::turn::{TurnReport, TurnWork};
use crate::{AgentRun, LoopEvent, RunEvent, RunObserver, RunStop};

/// How often in a turn hooks may keep the model from stopping.
const MAX_KEPT_FROM_STOPPING: u32 = 8;

impl AgentRun {
    /// Runs the hooks for an event, and tells the user what they say.
    fn run_hooks(&self, input: &HookInput, observer: &mut dyn RunObserver, cancel: &Cancel) -> HookOutcome {
        let outcome = self.parts.runtime.run_hooks(input, cancel).unwrap_or_default();
        for text in outcome.system_messages.iter().chain(&outcome.failures) {
            observer.on_event(&LoopEvent::Notice { text: text.clone() });
        }
        outcome
    }

    /// What the user says, with what hooks add to it; or why it is not said.
    pub(crate) fn prompt_after_hooks(
        &mut self,
        mut content: Vec<ContentPart>,
        work: &mut TurnWork<'_>,
    ) -> Result<Vec<ContentPart>, String> {
        let mut added = self.announce(work)?;
        if self.parts.agent.is_none() {
            let text = |part: &ContentPart| match part {
                ContentPart::Text { text } => Some(text.as_str().to_owned()),
                ContentPart::Image { .. } => None,
            };
            let prompt = content.iter().filter_map(text).collect::<Vec<_>>().join("\n");
            let input = HookInput::UserPromptSubmit { prompt, source: None };
            let outcome = self.run_hooks(&input, work.observer, &work.clock.cancel);
            added.extend(accepted(outcome)?);
        }
        content.extend(added.into_iter().map(|text| ContentPart::text(added_text(&text))));
        Ok(content)
    }

    /// Tells the hooks that the session, or the subagent, begins; returns what they add. Once in the life of the run's process.
    fn announce(&mut self, work: &mut TurnWork<'_>) -> Result<Vec<String>, String> {
        if std::mem::replace(&mut self.is_announced, true) {
            return Ok(Vec::new());
        }
        let input = match &self.parts.agent {
            Some(agent) => HookInput::SubagentStart {
                agent_id: self.parts.session.clone(),
                agent_type: agent.kind.clone(),
            },
            None => HookInput::SessionStart {
                source: self.source().to_owned(),
                model: Some(self.state.model.clone()),
            },
        };
        accepted(self.run_hooks(&input, work.observer, &work.clock.cancel))
    }

    fn source(&self) -> &'static str {
        match (&self.state.start.forked_from, self.is_resumed) {
            (_, false) => "startup",
            (Some(_), true) if self.is_copy => "fork",
            (_, true) => "resume",
        }
    }

    /// Tells the hooks that the session ends; `reason` is Claude Code's word for why.
    pub fn end_session(&mut self, reason: &str, observer: &mut dyn RunObserver, cancel: &Cancel) {
        if self.is_announced && self.parts.agent.is_none() {
            let input = HookInput::SessionEnd { reason: reason.to_owned() };
            self.run_hooks(&input, observer, cancel);
        }
    }

    /// The report of a turn that did not begin.
    pub(crate) fn refused_prompt(&self, reason: String, work: &mut TurnWork<'_>) -> TurnReport {
        let stop = RunStop::Hook { explanation: reason };
        work.observer.on_event(&LoopEvent::TurnEnded { stop: stop.clone() });
        TurnReport { stop, text: String::new(), rounds: 0, ..self.report(work) }
    }

    /// Ends the turn, unless a hook has the model go on.
    pub(crate) fn stop_or_go_on(&mut self, work: &mut TurnWork<'_>) -> Result<(), ToolError> {
        let last = Some(self.state.last_text.clone()).filter(|text| !text.is_empty());
        let active = self.state.kept_from_stopping > 0;
        let input = match &self.parts.agent {
            Some(agent) => HookInput::SubagentStop {
                stop_hook_active: active,
                agent_id: self.parts.session.clone(),
                agent_type: agent.kind.clone(),
                agent_transcript_path: String::new(),
                last_assistant_message: last,
            },
            None => HookInput::Stop { stop_hook_active: active, last_assistant_message: last },
        };
        let outcome = self.run_hooks(&input, work.observer, &work.clock.cancel);
        if outcome.stop.is_some() || !outcome.denies() || work.clock.cancel.is_cancelled() {
            return self.end(RunStop::Done, work);
        }
        if self.state.kept_from_stopping >= MAX_KEPT_FROM_STOPPING {
            let text = format!(
                "A hook keeps the model from stopping; after {MAX_KEPT_FROM_STOPPING} times it stops."
            );
            work.observer.on_event(&LoopEvent::Notice { text });
            return self.end(RunStop::Done, work);
        }
        let reason = outcome.decision.and_then(|decision| decision.reason).unwrap_or_default();
        let text = format!("A hook of the user keeps you from stopping: {reason}");
        self.append(RunEvent::HookMessage { hook: input.event().name().to_owned(), text })
    }

    /// Tells the hooks why a turn failed.
    pub(crate) fn report_failure(&self, stop: &RunStop, work: &mut TurnWork<'_>) {
        if let RunStop::Failed { kind, message } = stop {
            let error = serde_json::to_value(kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
            let input = HookInput::StopFailure {
                error: error.unwrap_or_default(),
                error_details: Some(message.clone()),
            };
            self.run_hooks(&input, work.observer, &work.clock.cancel);
        }
    }

    /// Tells the hooks what came of all calls of an answer, and the model what they add.
    pub(crate) fn after_batch(
        &mut self,
        calls: &[ToolCall],
        work: &mut TurnWork<'_>,
    ) -> Result<(), ToolError> {
        if calls.is_empty() || !self.parts.runtime.has_hooks(&HookEvent::PostToolBatch) {
            return Ok(());
        }
        let Some(ChatMessage::ToolResults { results, .. }) = self.state.conversation.messages.last() else {
            return Ok(());
        };
        let made = |call: &ToolCall| {
            let result = results.iter().find(|result| result.call_id == call.id);
            BatchCall {
                tool_name: call.name.clone(),
                tool_input: match &call.arguments {
                    CallArguments::Object(object) => Value::Object(object.clone()),
                    CallArguments::Invalid(text) => Value::from(text.as_str()),
                },
                tool_use_id: call.id.clone(),
                tool_response: result.map(|result| Value::from(result.text())),
            }
        };
        let input = HookInput::PostToolBatch { tool_calls: calls.iter().map(made).collect() };
        let outcome = self.run_hooks(&input, work.observer, &work.clock.cancel);
        match accepted(outcome) {
            Ok(added) => added.into_iter().try_for_each(|text| {
                let hook = HookEvent::PostToolBatch.name().to_owned();
                self.append(RunEvent::HookMessage { hook, text: added_text(&text) })
            }),
            Err(reason) => {
                self.hook_stop.get_or_insert(reason);
                Ok(())
            }
        }
    }

    /// Asks the hooks whether the history may be summarised; `false` if not.
    pub(crate) fn may_compact(&self, work: &mut TurnWork<'_>) -> bool {
        let trigger = work.compaction_trigger().to_owned();
        let input = HookInput::PreCompact { trigger, custom_instructions: None };
        match accepted(self.run_hooks(&input, work.observer, &work.clock.cancel)) {
            Ok(_) => true,
            Err(reason) => {
                let text = format!("The history is not summarised, because a hook refuses it: {reason}");
                work.observer.on_event(&LoopEvent::Notice { text });
                false
            }
        }
    }

    /// Tells the hooks that the history was summarised.
    pub(crate) fn after_compaction(&self, summary: &str, work: &mut TurnWork<'_>) {
        let trigger = work.compaction_trigger().to_owned();
        let input = HookInput::PostCompact { trigger, compact_summary: summary.to_owned() };
        self.run_hooks(&input, work.observer, &work.clock.cancel);
    }
}

/// What hooks add for the model; or why they end what was about to happen.
fn accepted(outcome: HookOutcome) -> Result<Vec<String>, String> {
    let is_denied = outcome.denies();
    if let Some(HookStop { reason, .. }) = outcome.stop {
        return Err(reason.unwrap_or_else(|| "it gave no reason".to_owned()));
    }
    if is_denied {
        let reason = outcome.decision.and_then(|decision| decision.reason);
        return Err(reason.unwrap_or_else(|| "it gave no reason".to_owned()));
    }
    Ok(outcome.additional_context)
}

fn added_text(text: &str) -> String {
    format!("A hook of the user adds:\n{text}")
}
