//! What a hook decided, from its exit code, stdout and stderr.

use haft_tool::clip_chars;
use serde_json::{Map, Value};

use super::output_json::HookJson;
use super::{HookEvent, PermissionUpdate};

/// Longest stdout that is read. A longer one is a failure.
pub const MAX_HOOK_OUTPUT_BYTES: usize = 1 << 20;
/// Longest text that is handed on: a reason, a message, context. A longer one is clipped, with a note of its length.
pub const MAX_HOOK_TEXT_CHARS: usize = 10_000;

/// What the failure of a hook means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The same as exit code 2.
    Block,
    /// A warning.
    Continue,
}

/// How a hook ended and what it printed.
#[derive(Debug, Clone, Copy)]
pub struct HookExit<'a> {
    /// How it ended.
    pub end: HookEnd,
    /// The beginning of its stdout. The reader may stop one byte after [`MAX_HOOK_OUTPUT_BYTES`].
    pub stdout: &'a [u8],
    /// The beginning of its stderr.
    pub stderr: &'a [u8],
}

/// How a hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookEnd {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It took too long.
    TimedOut,
    /// It could not be started.
    NotStarted,
}

/// What a hook decided. The default decides nothing.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct HookOutcome {
    /// Whether the action goes on.
    pub decision: Option<HookDecision>,
    /// Arguments in place of the call's. They must be decoded, planned and decided like a call's own.
    pub updated_input: Option<Map<String, Value>>,
    /// Whether two hooks wanted different arguments; `updated_input` has those of the last one.
    pub has_conflicting_inputs: bool,
    /// Context for the model.
    pub additional_context: Vec<String>,
    /// What the model sees in place of the tool's output.
    pub updated_tool_output: Option<Value>,
    /// Messages for the user.
    pub system_messages: Vec<String>,
    /// The whole run ends.
    pub stop: Option<HookStop>,
    /// Its text is not shown.
    pub suppress_output: bool,
    /// The answer to a [`HookEvent::PermissionRequest`].
    pub permission_answer: Option<HookPermissionAnswer>,
    /// After a [`HookEvent::PermissionDenied`]: the model may try again.
    pub retry: bool,
    /// It goes on in the background; nothing else of its output holds.
    pub is_detached: bool,
    /// Text it printed that is for the transcript.
    pub texts: Vec<String>,
    /// Why it failed. Also set if the failure blocks.
    pub failures: Vec<String>,
}

/// Whether the action goes on, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookDecision {
    /// What is to happen.
    pub behavior: HookBehavior,
    /// Why.
    pub reason: Option<String>,
}

/// What a hook says about an action, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookBehavior {
    /// It may happen. Rules that deny or ask still hold.
    Allow,
    /// The user is asked.
    Ask,
    /// It is left to the host, which decides later.
    Defer,
    /// It must not happen. At [`HookEvent::Stop`] and [`HookEvent::SubagentStop`]: the agent goes on.
    Deny,
}

/// `continue: false`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookStop {
    /// What the user is told.
    pub reason: Option<String>,
}

/// The answer to a permission request.
#[derive(Debug, Clone, PartialEq)]
pub enum HookPermissionAnswer {
    /// The user is not asked. Rules that deny still hold.
    Allow {
        /// Arguments in place of the call's.
        updated_input: Option<Map<String, Value>>,
        /// Permissions to change.
        updated_permissions: Vec<PermissionUpdate>,
    },
    /// The call is denied.
    Deny {
        /// What the model is told.
        message: Option<String>,
        /// Whether the turn ends.
        interrupt: bool,
    },
}

impl HookOutcome {
    /// Reads what a hook for `event` decided.
    ///
    /// Exit code 0 is success, with JSON if stdout begins with `{` and text otherwise; exit code 2 blocks. Anything else,
    /// JSON that is broken or of the wrong form and output that is too long are failures. A failure blocks if
    /// `on_failure` says so; without it, at [`HookEvent::PreToolUse`] only. At `Stop` and `SubagentStop` it never does,
    /// because a broken hook would keep the agent running.
    pub fn read(event: &HookEvent, exit: &HookExit<'_>, on_failure: Option<OnFailure>) -> Self {
        let stderr = clipped_text(exit.stderr);
        let detail = if stderr.is_empty() { String::new() } else { format!(": {stderr}") };
        let failure = match exit.end {
            HookEnd::Code(0) => match Self::of_success(event, exit.stdout) {
                Ok(outcome) => return outcome,
                Err(why) => why,
            },
            HookEnd::Code(2) if event.can_block() => return Self::blocked(event, reason_of_exit(&stderr)),
            HookEnd::Code(code) => format!("the hook exited with code {code}{detail}"),
            HookEnd::Signal(signal) => format!("signal {signal} ended the hook{detail}"),
            HookEnd::TimedOut => format!("the hook took too long{detail}"),
            HookEnd::NotStarted => format!("the hook could not be started{detail}"),
        };
        Self::failed(event, clipped(&failure), on_failure)
    }

    /// The outcome of a failure, for callers that know of one before there is any output.
    pub fn failed(event: &HookEvent, why: String, on_failure: Option<OnFailure>) -> Self {
        let default = if *event == HookEvent::PreToolUse { OnFailure::Block } else { OnFailure::Continue };
        let may_block = event.can_block() && !matches!(event, HookEvent::Stop | HookEvent::SubagentStop);
        let mut outcome = match on_failure.unwrap_or(default) {
            OnFailure::Block if may_block => Self::blocked(event, why.clone()),
            OnFailure::Block | OnFailure::Continue => Self::default(),
        };
        outcome.failures.push(why);
        outcome
    }

    /// Whether the action must not happen.
    pub fn denies(&self) -> bool {
        self.decision.as_ref().is_some_and(|decision| decision.behavior == HookBehavior::Deny)
            || matches!(self.permission_answer, Some(HookPermissionAnswer::Deny { .. }))
    }

    fn blocked(event: &HookEvent, reason: String) -> Self {
        if *event == HookEvent::PermissionRequest {
            let answer = HookPermissionAnswer::Deny { message: Some(reason), interrupt: false };
            return Self { permission_answer: Some(answer), ..Self::default() };
        }
        let decision = HookDecision { behavior: HookBehavior::Deny, reason: Some(reason) };
        Self { decision: Some(decision), ..Self::default() }
    }

    fn of_success(event: &HookEvent, stdout: &[u8]) -> Result<Self, String> {
        if stdout.len() > MAX_HOOK_OUTPUT_BYTES {
            return Err(format!("the hook printed more than {} MiB", MAX_HOOK_OUTPUT_BYTES >> 20));
        }
        let trimmed = stdout.trim_ascii();
        if trimmed.starts_with(b"{") {
            let json = serde_json::from_slice::<HookJson>(trimmed)
                .map_err(|error| format!("the hook printed JSON that is not understood: {error}"))?;
            return json.into_outcome(event);
        }
        let mut outcome = Self::default();
        let text = clipped_text(trimmed);
        if !text.is_empty() {
            if event.text_is_context() { &mut outcome.additional_context } else { &mut outcome.texts }
                .push(text);
        }
        Ok(outcome)
    }
}

fn reason_of_exit(stderr: &str) -> String {
    if stderr.is_empty() { "A hook blocked this without a reason.".to_owned() } else { stderr.to_owned() }
}

fn clipped_text(bytes: &[u8]) -> String {
    // More bytes than any clipped text has are not converted.
    let bytes = bytes.get(..MAX_HOOK_OUTPUT_BYTES).unwrap_or(bytes);
    clipped(String::from_utf8_lossy(bytes).trim())
}

/// The text within [`MAX_HOOK_TEXT_CHARS`].
pub(super) fn clipped(text: &str) -> String {
    clip_chars(text, MAX_HOOK_TEXT_CHARS, 0).into_owned()
}
