//! The user's hooks before and after a call.

use std::sync::Arc;

use haft_compat::hooks::{HookEvent, HookInput, HookOutcome};
use haft_tool::{Output, Progress, Value, now_ms};

use super::{CallDriver, DecodedCall};
use crate::Runtime;
use crate::call::CallOrigin;
use crate::hooks::{is_interrupt, response_of};

impl CallDriver {
    /// Whether the call is the command of a hook.
    pub(super) fn is_of_hook(&self) -> bool {
        self.origin == CallOrigin::Hook
    }

    /// Runs the hooks for an event, if there are any.
    pub(super) fn run_hooks(
        &self,
        event: &HookEvent,
        input: impl FnOnce() -> HookInput,
    ) -> Option<HookOutcome> {
        let hooks = self.inner.hooks.as_ref().filter(|hooks| !self.is_of_hook() && hooks.has(event))?;
        let runtime = Runtime { inner: Arc::clone(&self.inner) };
        let outcome = hooks.run(&runtime, &input(), &self.options.cancel);
        for message in outcome.system_messages.iter().chain(&outcome.failures) {
            self.report_running(Some(Progress { message: Some(message.clone()), ..Progress::default() }));
        }
        Some(outcome)
    }

    /// Asks the hooks about a call that is about to be planned.
    pub(super) fn before_hooks(&mut self, call: &DecodedCall) -> Result<Option<Value>, String> {
        let input = || HookInput::PreToolUse {
            tool_name: self.call.tool.clone(),
            tool_input: call.arguments.clone(),
            tool_use_id: self.call.id.clone(),
        };
        match self.run_hooks(&HookEvent::PreToolUse, input) {
            Some(outcome) => self.hooked.before(outcome),
            None => Ok(None),
        }
    }

    /// Tells the hooks how a call ended; returns the result with what they said.
    pub(super) fn after_hooks(&mut self, output: Output, call: &DecodedCall, denied: bool) -> Output {
        let (tool_name, tool_use_id) = (self.call.tool.clone(), self.call.id.clone());
        let tool_input = call.arguments.clone();
        let duration_ms = Some(now_ms().saturating_sub(self.state.started_at()));
        let outcome = match (denied, output.is_error()) {
            (true, _) => self.run_hooks(&HookEvent::PermissionDenied, || HookInput::PermissionDenied {
                tool_name,
                tool_input,
                tool_use_id,
                reason: output.as_text(),
            }),
            (false, false) => self.run_hooks(&HookEvent::PostToolUse, || HookInput::PostToolUse {
                tool_name,
                tool_input,
                tool_response: response_of(&output),
                tool_use_id,
                duration_ms,
            }),
            (false, true) => {
                self.run_hooks(&HookEvent::PostToolUseFailure, || HookInput::PostToolUseFailure {
                    tool_name,
                    tool_input,
                    tool_use_id,
                    error: output.as_text(),
                    is_interrupt: Some(is_interrupt(&output)),
                    duration_ms,
                })
            }
        };
        self.hooked.after(output, outcome.unwrap_or_default())
    }
}
