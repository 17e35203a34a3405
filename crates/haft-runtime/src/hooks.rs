//! The user's hooks: programs that are asked before a call is decided, and told when it is over.

use haft_compat::hooks::{HookBehavior, HookEvent, HookInput, HookOutcome, HookPermissionAnswer};
use haft_policy::{Decided, Mode};
use haft_tool::{Cancel, Content, Decision, ErrorKind, Output, Value, Verdict, json};

use crate::Runtime;

/// Runs hooks.
pub trait Hooks: Send + Sync {
    /// Whether there is a hook for an event. If not, the event need not be described.
    fn has(&self, event: &HookEvent) -> bool;

    /// Runs the hooks for an event and returns what they decided together. Blocks, but returns soon after `cancel` fires.
    fn run(&self, runtime: &Runtime, input: &HookInput, cancel: &Cancel) -> HookOutcome;
}

impl Runtime {
    /// Whether there is a hook for an event.
    pub fn has_hooks(&self, event: &HookEvent) -> bool {
        self.inner.hooks.as_ref().is_some_and(|hooks| hooks.has(event))
    }

    /// Runs the hooks for an event that is not about a call; `None` if there are none.
    pub fn run_hooks(&self, input: &HookInput, cancel: &Cancel) -> Option<HookOutcome> {
        let hooks = self.inner.hooks.as_ref().filter(|hooks| hooks.has(&input.event()))?;
        Some(hooks.run(self, input, cancel))
    }
}

/// What hooks decided about a call before it was planned.
#[derive(Debug, Default)]
pub(crate) struct HookedCall {
    /// Why it needs no question, if one would be asked because of the mode.
    allows: Option<String>,
    /// Why the user is asked.
    asks: Option<String>,
    /// Text for the model, appended to the result.
    context: Vec<String>,
    /// Why the run is to end after the call.
    pub(crate) stop: Option<String>,
}

impl HookedCall {
    /// Stores what the hooks decided. Returns the reason if the call must not run, else the arguments that replace its own, if
    /// any.
    pub(crate) fn before(&mut self, outcome: HookOutcome) -> Result<Option<Value>, String> {
        let HookOutcome { decision, updated_input, additional_context, stop, .. } = outcome;
        self.context.extend(additional_context);
        if let Some(stop) = stop {
            let why = stop.reason.unwrap_or_else(|| "a hook ended the run".to_owned());
            self.stop = Some(why.clone());
            return Err(why);
        }
        let decision = decision.map(|decision| (decision.behavior, decision.reason.unwrap_or_default()));
        match decision {
            Some((HookBehavior::Deny, reason)) => return Err(reason),
            Some((HookBehavior::Ask, reason)) => self.asks = Some(reason),
            Some((HookBehavior::Allow, reason)) => self.allows = Some(reason),
            // No host decides later, so the rules decide now.
            Some((HookBehavior::Defer, _)) | None => {}
        }
        Ok(updated_input.map(Value::Object))
    }

    /// The decision adjusted to what the hooks said. Their permission counts like a rule that names the tool, so it opens no
    /// path, guard or secret; `decide_with_tool` decides with such a rule. Their question overrides a permission.
    pub(crate) fn adjusted(
        &self,
        decided: Decided,
        mode: Mode,
        decide_with_tool: impl FnOnce() -> Option<Decided>,
    ) -> Decided {
        let said = |reason: &str| if reason.is_empty() { String::new() } else { format!(": {reason}") };
        match (decided, &self.allows, &self.asks) {
            (Decided::Ask(scope, decision), Some(reason), None) => match decide_with_tool() {
                Some(Decided::Allow(scope, _)) => {
                    let why = format!("{}; a hook allowed it{}", decision.reason, said(reason));
                    Decided::Allow(scope, Decision::new(Verdict::Allow, why, None))
                }
                _ => Decided::Ask(scope, decision),
            },
            (Decided::Allow(scope, _), _, Some(reason)) => {
                let why = format!("a hook asks before this call{}", said(reason));
                if mode.asks() {
                    Decided::Ask(scope, Decision::new(Verdict::Ask, why, None))
                } else {
                    let why = format!("{why}, and in {mode} mode no question is asked");
                    Decided::Deny(Decision::new(Verdict::Deny, why, None))
                }
            }
            (decided, _, _) => decided,
        }
    }

    /// The result with what the hooks said about it.
    pub(crate) fn after(&mut self, mut output: Output, outcome: HookOutcome) -> Output {
        if let Some(other) = outcome.updated_tool_output {
            let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            let replaced = Output::text(text);
            output.content = replaced.content;
            output.structured = None;
        }
        let objection = outcome.decision.filter(|decision| decision.behavior == HookBehavior::Deny);
        let objection = objection.and_then(|decision| decision.reason);
        self.context.extend(objection.map(|reason| format!("A hook objects to this call: {reason}")));
        self.context.extend(outcome.additional_context);
        if let Some(stop) = outcome.stop {
            self.stop = Some(stop.reason.unwrap_or_else(|| "a hook ended the run".to_owned()));
        }
        let pieces = self.context.drain(..).map(|text| Content::Text { text: format!("\n{text}").into() });
        output.content.extend(pieces);
        output
    }
}

/// The answer of hooks to a question, if they gave one.
pub(crate) fn permission_answer(outcome: HookOutcome) -> Option<Result<Option<Value>, String>> {
    match outcome.permission_answer? {
        HookPermissionAnswer::Allow { updated_input, .. } => Some(Ok(updated_input.map(Value::Object))),
        HookPermissionAnswer::Deny { message, .. } => {
            Some(Err(message.unwrap_or_else(|| "A hook said no.".to_owned())))
        }
    }
}

/// A result as hooks see it: the structured one, else its text.
pub(crate) fn response_of(output: &Output) -> Value {
    output.structured.clone().unwrap_or_else(|| json!({ "text": output.as_text() }))
}

/// Whether a failed call was interrupted by the user.
pub(crate) fn is_interrupt(output: &Output) -> bool {
    output.error_kind == Some(ErrorKind::Interrupted)
}
