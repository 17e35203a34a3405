//! The driver of one call: runs the eight steps once, in order.

mod approval;
mod hook_calls;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft_ledger::{CallRecord, recorded_input};
use haft_policy::{Decided, Policy, Request, decide};
use haft_tool::{
    AnyTool, Arguments, Bound, Call, CallEnd, CallTrace, Decision, Effect, EffectKind, ErrorKind, Execution,
    Output, Perform, Planned, Progress, Reads, ReceiptState, Reversible, Scope, SideEffect, ToolError,
    TraceContext, Value, Verdict, lock, now_ms,
};

use crate::call::{CallOptions, CallOrigin, CallResult};
use crate::call_state::{CallState, clip_error};
use crate::hooks::HookedCall;
use crate::host_with_resources::HostWithResources;
use crate::registry::RegisteredTool;
use crate::runtime::RuntimeInner;
use crate::shared_questions::SharedHost;
use crate::steps::ask::allowed;
use crate::steps::decode::CheckedArguments;
use crate::steps::perform::{catch_panic, interrupted, panic_error};
use crate::steps::{bound, decode};
use crate::world::{LocalWorld, ProgressSink};

use approval::Approved;

/// How long connecting to a server may take when one of its tools is called.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// One call on its way. Blocks; see [`Runtime::run`](crate::Runtime::run) for the async form.
pub(crate) struct CallDriver {
    inner: Arc<RuntimeInner>,
    call: Call,
    options: CallOptions,
    origin: CallOrigin,
    state: Arc<CallState>,
    hooked: HookedCall,
}

/// The tool of a call, with arguments that fit its schema.
struct DecodedCall {
    entry: Arc<RegisteredTool>,
    arguments: Value,
    /// What was converted to fit the schema, for the caller.
    coerced: Vec<String>,
}

impl DecodedCall {
    fn new(entry: Arc<RegisteredTool>, input: Value) -> Result<Self, ToolError> {
        let CheckedArguments { arguments, coerced } = entry.check(input)?;
        Ok(Self { entry, arguments, coerced })
    }
}

impl CallDriver {
    pub(crate) fn new(
        inner: &Arc<RuntimeInner>,
        call: Call,
        options: CallOptions,
        origin: CallOrigin,
    ) -> Self {
        let mut request = inner.blank_receipt(&call, now_ms());
        request.input_note.clone_from(&options.input_note);
        if let Some(parent) = &options.trace_parent {
            request.trace_parent = Some(parent.clone());
        }
        let record = CallRecord::new(inner.ledger(), request.clone());
        let (watch, turn) = (options.watch.clone(), inner.write_order.enter());
        let state = Arc::new(CallState::new(request, watch, record, turn));
        Self { inner: Arc::clone(inner), call, options, origin, state, hooked: HookedCall::default() }
    }

    pub(crate) fn state(&self) -> Arc<CallState> {
        Arc::clone(&self.state)
    }

    /// Drives the call to its result; `None` if another thread has ended it meanwhile.
    pub(crate) fn run(mut self) -> Option<CallResult> {
        let result = catch_unwind(AssertUnwindSafe(|| self.steps()))
            .unwrap_or_else(|panic| self.state.end_early(ReceiptState::Failed, panic_error(panic.as_ref())));
        self.state.turn.leave();
        if let Some(result) = &result {
            let CallResult { call_id, receipt, .. } = result;
            tracing::debug!(
                call = %call_id, tool = %receipt.tool, id = receipt.id, state = receipt.state.word(), error = ?receipt.error_kind,
                us = receipt.duration_us, changes = receipt.changes.len(), "finished"
            );
        }
        result
    }

    fn steps(&mut self) -> Option<CallResult> {
        let requested_at = self.state.started_at();
        self.report(|call_id, tool_name| Execution::Pending { call_id, tool_name, requested_at });

        // decode
        let mut decoded = match self.decode() {
            Ok(decoded) => decoded,
            Err(error) => return self.finish(Err(error), None, false),
        };

        // The user's hooks may refuse the call or change its arguments. Changed arguments are checked and judged like its own.
        match self.before_hooks(&decoded) {
            Ok(None) => {}
            Ok(Some(input)) => match DecodedCall::new(Arc::clone(&decoded.entry), input) {
                Ok(other) => {
                    self.note_input(&other);
                    decoded = other;
                }
                Err(error) => {
                    let error = error.context("a hook changed the arguments");
                    return self.finish(Err(error), Some(&decoded), false);
                }
            },
            Err(why) => {
                let decision = Decision::new(Verdict::Deny, format!("a hook denied it: {why}"), None);
                self.state.record.update(|receipt| receipt.decision = Some(decision.clone()));
                return self.finish(Err(denial(&decision)), Some(&decoded), true);
            }
        }

        // plan, decide, ask; again if the answer changes the arguments
        let mut answered_by = None;
        let (planned, scope, decision) = loop {
            let (planned, approved) = match self.approve(&decoded, answered_by.as_deref()) {
                Ok(approved) => approved,
                Err(error) => return self.finish(Err(error), Some(&decoded), false),
            };
            match approved {
                Approved::Decided(scope, decision) => break (planned, scope, decision),
                Approved::OtherInput { by, input } => {
                    match DecodedCall::new(Arc::clone(&decoded.entry), input) {
                        Ok(other) => {
                            self.note_input(&other);
                            (decoded, answered_by) = (other, Some(by));
                        }
                        Err(error) => return self.finish(Err(error), Some(&decoded), false),
                    }
                }
            }
        };
        self.state.record.update(|receipt| receipt.decision = Some(decision.clone()));
        // Logs neither arguments nor reasons, because both may contain secrets.
        tracing::debug!(
            call = %self.call.id, tool = %self.call.tool, effects = planned.effects.len(), verdict = ?decision.verdict, "decided"
        );

        // perform
        let performed = match scope {
            Some(scope) => self.perform(planned, scope),
            None if self.options.cancel.is_cancelled() => Err(interrupted()),
            None => Err(denial(&decision)),
        };

        // bound, record, result
        self.finish(performed, Some(&decoded), decision.verdict == Verdict::Deny)
    }

    /// Plans the call, decides and asks. If the arguments come from an answer, the user is not asked again.
    fn approve(
        &self,
        call: &DecodedCall,
        answered_by: Option<&str>,
    ) -> Result<(Planned<Perform>, Approved), ToolError> {
        let planned = catch_panic(|| self.plan(&call.entry.tool, call.arguments.clone()))?;
        let effects = self.inner.with_resolved_paths(&planned.effects);
        let policy = self.policy(call.entry.reads.clone())?;
        let request = Request { tool: &self.call.tool, effects: &effects };
        let with_tool = || {
            let policy = self.inner.env.grants.with_rule(&policy, &self.call.tool).ok()?;
            Some(decide(request, &policy))
        };
        let decided = self.hooked.adjusted(decide(request, &policy), policy.mode, with_tool);
        let approved = match (decided, answered_by) {
            (Decided::Ask(scope, decision), Some(by)) => {
                Approved::Decided(Some(scope), allowed(decision, by))
            }
            (decided, _) => self.ask(decided, effects, call, &policy),
        };
        Ok((planned, approved))
    }

    fn decode(&mut self) -> Result<DecodedCall, ToolError> {
        let raw = std::mem::replace(&mut self.call.arguments, Arguments::Json(Value::Null));
        let entry = if let Some(tool) = &self.options.tool {
            Arc::new(RegisteredTool::of(Arc::clone(tool)))
        } else {
            self.connect_sources();
            self.inner.find(&self.call.tool)?
        };
        let decoded = DecodedCall::new(entry, decode::parse(raw)?)?;
        decoded.entry.tool.name().clone_into(&mut self.call.tool);
        self.note_input(&decoded);
        Ok(decoded)
    }

    fn note_input(&self, call: &DecodedCall) {
        self.state.record.update(|receipt| {
            receipt.tool.clone_from(&self.call.tool);
            receipt.input = recorded_input(&call.arguments);
        });
    }

    /// Connects the servers that may have the tool, if it is not known yet.
    fn connect_sources(&self) {
        let sources = self.inner.undiscovered_sources(&self.call.tool);
        if !sources.is_empty() {
            // A server's tool writes no paths, so no other call has to wait for this one.
            self.state.turn.set_writes(Vec::new());
        }
        for source in sources {
            source.connect_for_tool(&self.call.tool, CONNECT_TIMEOUT);
        }
    }

    /// Plans the call. An effect of an undeclared kind is an error of the tool.
    fn plan(&self, tool: &Arc<dyn AnyTool>, arguments: Value) -> Result<Planned<Perform>, ToolError> {
        let planned = Arc::clone(tool).plan(arguments, &self.inner.env.planning)?;
        if let Some(effect) = planned.effects.iter().find(|effect| !tool.effects().contains(&effect.kind())) {
            return Err(ToolError::internal(format!(
                "The tool {} planned an effect that it does not declare: {:?}",
                tool.name(),
                effect.kind()
            )));
        }
        self.state.turn.set_writes(self.written_paths(&planned.effects));
        self.state.record.update(|receipt| {
            receipt.effects.clone_from(&planned.effects);
            receipt.reversible = reversible(&planned.effects);
            receipt.undoes = undone_calls(&planned.effects);
            receipt.undoes_partly =
                planned.effects.iter().any(|effect| matches!(effect, Effect::Undo { partial: true, .. }));
        });
        Ok(planned)
    }

    fn written_paths(&self, effects: &[Effect]) -> Vec<PathBuf> {
        let path = |effect: &Effect| match effect {
            Effect::Write { path } => Some(path.clone()),
            Effect::Configure { .. } => self.inner.policy.scope.config.clone(),
            _ => None,
        };
        effects.iter().filter_map(path).collect()
    }

    /// The policy for this call: the session's, with what the user has allowed since.
    fn policy(&self, reads: Option<Reads>) -> Result<Cow<'_, Policy>, ToolError> {
        let policy = self.inner.env.grants.applied(&self.inner.policy)?;
        if self.is_of_hook() {
            return Ok(Cow::Owned(policy.for_hook()));
        }
        if self.origin == CallOrigin::User {
            return Ok(Cow::Owned(policy.for_user_request()));
        }
        let Some(reads) = reads else { return Ok(policy) };
        let scope = Arc::new(Scope { reads, ..(*policy.scope).clone() });
        Ok(Cow::Owned(Policy { scope, ..policy.into_owned() }))
    }

    fn perform(&self, planned: Planned<Perform>, scope: Arc<Scope>) -> Result<Output, ToolError> {
        let Planned { effects, plan: perform } = planned;
        if !self.state.turn.wait(&self.written_paths(&effects), &self.options.cancel) {
            return Err(interrupted());
        }
        let _one_question_at_a_time = effects.contains(&Effect::Ask).then(|| lock(&self.inner.env.asking));
        self.report_running(None);
        if effects.iter().any(|effect| may_change_files(effect.kind()))
            && let Err(error) = self.inner.history.recover_here()
        {
            // This call is recorded all the same.
            tracing::warn!(%error, "calls of a process that died could not be recovered");
        }
        // The World records a write with its previous state. A call with any other effect must be on record before it.
        let has_begun = effects.iter().any(|effect| needs_intent(effect.kind()));
        if has_begun {
            self.state.record.begin()?;
        }
        let mut world = self.world(haft_files::follow_rule_links(scope));
        // Only such a call starts something whose span belongs below its own.
        world.trace = if has_begun { self.trace() } else { None };
        world.command = effects.into_iter().find_map(|effect| match effect {
            Effect::Run { command } => Some(command),
            _ => None,
        });
        catch_panic(|| perform(&world))
    }

    /// The call's place in a trace; `None` if its session cannot be opened.
    fn trace(&self) -> Option<CallTrace> {
        let parent = self.state.trace_parent();
        let session = self.inner.ledger.session().ok()?;
        let own = TraceContext::of_call(parent, session, &self.call.id, self.state.started_at());
        let passed_on = if self.inner.trace.is_exported { Some(own.clone()) } else { parent.cloned() };
        Some(CallTrace { own, passed_on })
    }

    fn world(&self, scope: Arc<Scope>) -> LocalWorld {
        let progress_sink = self.state.watch().map(|_| -> ProgressSink {
            let (state, tool) = (Arc::clone(&self.state), self.call.tool.clone());
            Arc::new(move |progress| report_running(&state, &tool, Some(progress)))
        });
        let inner = &self.inner;
        let mut host = Arc::clone(self.options.host.as_ref().unwrap_or(&inner.host));
        if !inner.sources.is_empty() {
            host = Arc::new(HostWithResources { host, sources: inner.sources.clone() });
        }
        let host = Arc::new(SharedHost { host, ledger: Arc::clone(&inner.ledger) });
        let cancel = self.options.cancel.clone();
        let record = Arc::<CallRecord>::clone(&self.state.record);
        LocalWorld::new(&inner.env, scope, record, host, cancel, progress_sink)
    }

    /// The last three steps, which are the same for every call.
    fn finish(
        &mut self,
        performed: Result<Output, ToolError>,
        call: Option<&DecodedCall>,
        denied: bool,
    ) -> Option<CallResult> {
        let succeeded = performed.is_ok();
        let mut output = performed.unwrap_or_else(Output::from);
        output.whole = succeeded
            && output.structured.is_some()
            && call.is_some_and(|call| {
                let tool = &call.entry.tool;
                tool.is_remote() || (tool.output_schema().is_some() && !output.is_error())
            });
        if let Some(DecodedCall { coerced, .. }) = call
            && !coerced.is_empty()
            && let Value::Object(structured) =
                output.structured.get_or_insert_with(|| Value::Object(serde_json::Map::new()))
        {
            structured.insert("coerced".to_owned(), Value::from(coerced.as_slice()));
        }
        if let Some(call) = call {
            output = self.after_hooks(output, call, denied);
        }
        if !self.state.claim_end() {
            return None;
        }

        // bound comes before record, because the receipt holds what the caller sees
        let tool = call.map(|call| &call.entry.tool);
        let limits = tool.map(|tool| self.inner.registry.bound_of(tool.as_ref())).unwrap_or_default();
        let side_effect = tool.map_or(SideEffect::None, |tool| tool.side_effect());
        let error = output.error_kind.map(|_| clip_error(&output.as_text()));
        let full_output = bound::worth_keeping(&output, limits, side_effect);
        let output = match self.bound(output, limits, full_output.is_some()) {
            Ok(output) => output,
            Err(error) => return Some(self.state.unrecorded(&error)),
        };

        // record
        let end = CallEnd {
            state: end_state(output.error_kind, denied),
            error_kind: output.error_kind,
            error,
            result: Some(output.as_text()),
            full_output,
        };
        let receipt = match self.state.record.finish(&end) {
            Ok(receipt) => receipt,
            Err(error) => return Some(self.state.unrecorded(&error)),
        };

        // result
        let result = self.state.result(output, receipt);
        Some(CallResult { stop: self.hooked.stop.take(), ..result })
    }

    /// Truncates the output to its limits. The notice that the ledger has the rest names the call, which gets its number here
    /// if it has none.
    fn bound(&self, output: Output, limits: Bound, rest_is_kept: bool) -> Result<Output, ToolError> {
        let call = if rest_is_kept { Some(self.state.record.begin()?) } else { None };
        Ok(bound::bound(output, limits, self.inner.registry.error_form(), call))
    }

    fn report(&self, status: impl FnOnce(String, String) -> Execution) {
        self.state.report(&self.call.tool, status);
    }

    fn report_running(&self, progress: Option<Progress>) {
        report_running(&self.state, &self.call.tool, progress);
    }
}

fn report_running(state: &CallState, tool: &str, progress: Option<Progress>) {
    let started_at = state.started_at();
    state.report(tool, |call_id, tool_name| Execution::Running {
        call_id,
        tool_name,
        started_at,
        last_update_at: now_ms(),
        progress,
    });
}

/// Whether an effect of this kind may change files that a call of a dead process left.
fn may_change_files(kind: EffectKind) -> bool {
    matches!(kind, EffectKind::Write | EffectKind::Run | EffectKind::Spawn | EffectKind::Undo)
}

/// Whether the receipt must be in the ledger before an effect of this kind.
fn needs_intent(kind: EffectKind) -> bool {
    use EffectKind::{Reach, Run, Send, Serve, Spawn};
    matches!(kind, Run | Spawn | Reach | Send | Serve)
}

/// Whether a call with these effects can be undone at all.
fn reversible(effects: &[Effect]) -> Reversible {
    if effects.iter().any(|effect| matches!(effect, Effect::Run { .. })) {
        return Reversible::No { why: "the changes of the command were not recorded".to_owned() };
    }
    Reversible::Yes
}

fn undone_calls(effects: &[Effect]) -> Vec<i64> {
    let call = |effect: &Effect| match effect {
        Effect::Undo { call, .. } => Some(*call),
        _ => None,
    };
    effects.iter().filter_map(call).collect()
}

fn end_state(error: Option<ErrorKind>, denied: bool) -> ReceiptState {
    match error {
        None => ReceiptState::Completed,
        Some(ErrorKind::Interrupted) => ReceiptState::Interrupted,
        Some(_) if denied => ReceiptState::Denied,
        Some(_) => ReceiptState::Failed,
    }
}

fn denial(decision: &Decision) -> ToolError {
    let rule = decision.rule.as_ref().map(|rule| format!(" [{rule}]")).unwrap_or_default();
    ToolError::denied(format!("Denied: {}{rule}", decision.reason))
        .with_details(serde_json::json!({"denied": {"reason": decision.reason, "rule": decision.rule}}))
}
