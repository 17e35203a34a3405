//! Hooks that are callbacks of the program that drives the run.

use std::sync::Arc;
use std::time::Duration;

use haft_compat::hooks::{HookContext, HookEnd, HookEvent, HookExit, HookInput, HookOutcome, OnFailure};
use haft_compat::stream::InitializeRequest;
use haft_tool::{Cancel, Value, json};

use super::host_link::{NoReply, QuestionLimits};
use super::session::HostSession;
use crate::claude_settings::HostHook;

/// Longest timeout that is kept; more means the same.
const MAX_TIMEOUT_SECONDS: f64 = 86_400.0;

/// A hook of the program, with what it is for.
pub(in crate::cli::run) type HookEntry = (HookEvent, String, Arc<dyn HostHook>);

/// One callback.
struct CallbackHook {
    session: Arc<HostSession>,
    callback: String,
    timeout: Option<Duration>,
    on_failure: Option<OnFailure>,
}

/// All hooks of the program.
pub(super) fn entries(request: &InitializeRequest, session: &Arc<HostSession>) -> Vec<HookEntry> {
    let mut all: Vec<HookEntry> = Vec::new();
    for (event, matchers) in &request.hooks {
        for matcher in matchers {
            let timeout = matcher.timeout.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
            let timeout = timeout.map(|seconds| Duration::from_secs_f64(seconds.min(MAX_TIMEOUT_SECONDS)));
            for callback in &matcher.hook_callback_ids {
                let hook = CallbackHook {
                    session: Arc::clone(session),
                    callback: callback.clone(),
                    timeout,
                    on_failure: matcher.on_failure,
                };
                let pattern = matcher.matcher.clone().unwrap_or_default();
                all.push((HookEvent::from_name(event), pattern, Arc::new(hook)));
            }
        }
    }
    all
}

impl HostHook for CallbackHook {
    fn decide(
        &self,
        event: &HookEvent,
        input: &HookInput,
        context: &HookContext<'_>,
        cancel: &Cancel,
    ) -> HookOutcome {
        let context = HookContext { session_id: self.session.id(), ..context.clone() };
        let input = input.to_json(&context);
        let call_id = input.get("tool_use_id").cloned().unwrap_or_default();
        let mut request =
            json!({"subtype": "hook_callback", "callback_id": self.callback, "input": Value::Object(input)});
        if !call_id.is_null() {
            request["tool_use_id"] = call_id;
        }
        let limits = QuestionLimits { call_id: None, timeout: self.timeout };
        match self.session.link.ask(&request, &limits, cancel) {
            Ok(answer) => {
                let printed = if answer.is_null() { json!({}) } else { answer }.to_string();
                let exit = HookExit { end: HookEnd::Code(0), stdout: printed.as_bytes(), stderr: &[] };
                HookOutcome::read(event, &exit, self.on_failure)
            }
            // A guard whose program is gone must not be the same as one that agrees.
            Err(NoReply::Gone) => HookOutcome::failed(event, NoReply::Gone.message(), Some(OnFailure::Block)),
            Err(failure) => HookOutcome::failed(
                event,
                format!("a hook of the host failed: {}", failure.message()),
                self.on_failure,
            ),
        }
    }
}
