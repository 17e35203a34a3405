//! The straight way of one call: every step once, in order.

use std::sync::Arc;

use crate::world::{LocalWorld, Watcher};
use haft_ledger::CallRecord;
use haft_policy::{Decided, Mode, Policy, Request, decide};
use haft_tool::{
    AnyTool, Arguments, Call, CallEnd, Decision, Effect, ErrorKind, Execution, Outcome, Output, Perform,
    Planned, Progress, Reads, Receipt, Reversible, Scope, SideEffect, State, ToolError, Value, Verdict,
    now_ms,
};

use crate::runtime::{CallOptions, CallResult, Inner, Watch};
use crate::schedule::Ticket;
use crate::sourced::Sourced;
use crate::steps::ask::{Question, answered};
use crate::steps::perform::{interrupted, perform, unbroken, unless_cancelled};
use crate::steps::record::recorded_input;
use crate::steps::{bound, decode};

/// A call on its way.
pub(crate) struct Walk {
    pub(crate) inner: Arc<Inner>,
    pub(crate) call: Call,
    pub(crate) options: CallOptions,
    /// The tool, where it is not one of the registry's: undo, or what a door needs for itself.
    pub(crate) tool: Option<Arc<dyn AnyTool>>,
    /// The calls that this one takes back; the user asked for it, so nothing else needs to be asked.
    pub(crate) undoes: Vec<i64>,
    pub(crate) started_at: u64,
}

/// What is known of a call once its arguments are understood.
struct Understood {
    tool: Arc<dyn AnyTool>,
    arguments: Value,
    coerced: Vec<String>,
    /// Where its tool may read, if that is not where the others may.
    reads: Option<Reads>,
}

/// A call that has been understood and has its place in the order.
pub(crate) struct Started {
    walk: Walk,
    tool: Arc<dyn AnyTool>,
    coerced: Vec<String>,
    planned: Planned<Perform>,
    decided: Decided,
    record: Arc<CallRecord>,
    ticket: Arc<Ticket>,
}

impl Walk {
    /// The steps that touch nothing. They are taken while the caller waits, so that calls keep the order they came in.
    pub(crate) fn start(mut self) -> Result<Started, Box<CallResult>> {
        self.tell(|call_id, tool_name| Execution::Pending {
            call_id,
            tool_name,
            requested_at: self.started_at,
        });
        let mut receipt = self.blank_receipt();

        // decode
        let Understood { tool, arguments, coerced, reads } = match self.decode() {
            Ok(understood) => understood,
            Err(error) => {
                return Err(Box::new(self.end(
                    &CallRecord::new(self.inner.ledger(), receipt),
                    Err(error),
                    None,
                )));
            }
        };
        tool.name().clone_into(&mut receipt.tool);
        receipt.input = recorded_input(&arguments);
        self.call.tool.clone_from(&receipt.tool);

        // plan
        let planned = match unbroken(|| self.plan(&tool, arguments)) {
            Ok(planned) => planned,
            Err(error) => {
                let record = CallRecord::new(self.inner.ledger(), receipt);
                return Err(Box::new(self.end(&record, Err(error), Some((&tool, &coerced)))));
            }
        };
        receipt.effects.clone_from(&planned.effects);
        receipt.reversible = reversible(&planned.effects);

        // decide
        let decided = self.decide(&planned.effects, reads);
        let ticket = Arc::new(self.inner.schedule.enter(&planned.effects));
        let record = Arc::new(CallRecord::new(self.inner.ledger(), receipt));
        Ok(Started { walk: self, tool, coerced, planned, decided, record, ticket })
    }
}

impl Started {
    /// What is needed to end the call if it does not end itself.
    pub(crate) fn lifeline(&self) -> Lifeline {
        Lifeline {
            call: Call::new(&self.walk.call.id, &self.walk.call.tool, Value::Null),
            started_at: self.walk.started_at,
            watch: self.walk.options.watch.clone(),
            record: Arc::clone(&self.record),
            ticket: Arc::clone(&self.ticket),
        }
    }

    /// The steps that may wait.
    pub(crate) async fn go(self) -> CallResult {
        let Self { walk, tool, coerced, planned, decided, record, ticket } = self;
        let effects = planned.effects;

        // ask
        let (scope, decision) = walk.ask(decided, &effects).await;
        record.decided(decision.clone());

        // perform
        let performed = match scope {
            None if walk.options.cancel.is_cancelled() => Err(interrupted()),
            None => Err(denied(&decision)),
            Some(_) if unless_cancelled(ticket.turn(), &walk.options.cancel).await.is_none() => {
                Err(interrupted())
            }
            Some(scope) => match walk.begin(&record, &effects) {
                Err(error) => Err(error),
                Ok(()) => perform(planned.plan, walk.world(scope, &record).as_ref()),
            },
        };
        ticket.leave();

        // record, bound, result
        walk.end(&record, performed, Some((&tool, &coerced)))
    }
}

impl Walk {
    fn decode(&mut self) -> Result<Understood, ToolError> {
        let raw = std::mem::replace(&mut self.call.arguments, Arguments::Json(Value::Null));
        let (tool, decoded, reads) = if let Some(tool) = &self.tool {
            (
                Arc::clone(tool),
                decode::check(&tool.definition(), decode::parse(raw)?, tool.clamp_numbers())?,
                None,
            )
        } else {
            let entry = self.inner.find(&self.call.tool)?;
            let parsed = decode::parse(raw)?;
            let decoded = if entry.tool.is_remote() {
                decode::unchecked(entry.tool.name(), parsed)?
            } else {
                decode::check(entry.definition(), parsed, entry.tool.clamp_numbers())?
            };
            (Arc::clone(&entry.tool), decoded, entry.reads.clone())
        };
        Ok(Understood { tool, arguments: decoded.arguments, coerced: decoded.coerced, reads })
    }

    /// Plans the call. An effect of a kind that the tool did not declare is a fault of the tool.
    fn plan(&self, tool: &Arc<dyn AnyTool>, arguments: Value) -> Result<Planned<Perform>, ToolError> {
        let planned = Arc::clone(tool).plan(arguments, &self.inner.ground.planning)?;
        match planned.effects.iter().find(|effect| !tool.effects().contains(&effect.kind())) {
            None => Ok(planned),
            Some(effect) => Err(ToolError::internal(format!(
                "The tool {} planned an effect that it does not declare: {:?}",
                tool.name(),
                effect.kind()
            ))),
        }
    }

    fn decide(&self, effects: &[Effect], reads: Option<Reads>) -> Decided {
        let request = Request { tool: &self.call.tool, effects };
        if !self.undoes.is_empty() {
            // The user asked for the undo itself, and it only goes where a call has been.
            let policy = self.inner.policy.clone();
            let scope = Scope { reads: Reads::Everywhere, blocked: Vec::new(), ..(*policy.scope).clone() };
            let (mode, scope) = (Mode::BypassPermissions, Arc::new(scope));
            return decide(request, &Policy { mode, scope, ..policy });
        }
        let Some(reads) = reads else { return decide(request, &self.inner.policy) };
        let policy = self.inner.policy.clone();
        let scope = Arc::new(Scope { reads, ..(*policy.scope).clone() });
        decide(request, &Policy { scope, ..policy })
    }

    /// The scope, if the call may run, and why.
    async fn ask(&self, decided: Decided, effects: &[Effect]) -> (Option<Arc<Scope>>, Decision) {
        match decided {
            Decided::Allow(scope, decision) => (Some(scope), decision),
            Decided::Deny(decision) => (None, decision),
            Decided::Ask(scope, decision) => {
                let (tool, reason) = (self.call.tool.clone(), decision.reason.clone());
                let question = Question { tool, effects: effects.to_vec(), reason };
                let _one_at_a_time = self.inner.asking.lock().await;
                let asker = self.options.asker.as_ref().unwrap_or(&self.inner.asker);
                let answer = asker.ask(&question, &self.options.cancel);
                let decision = answered(decision, answer);
                ((decision.verdict == Verdict::Allow).then_some(scope), decision)
            }
        }
    }

    fn begin(&self, record: &CallRecord, effects: &[Effect]) -> Result<(), ToolError> {
        self.tell(|call_id, tool_name| {
            let (started_at, last_update_at) = (self.started_at, now_ms());
            Execution::Running { call_id, tool_name, started_at, last_update_at, progress: None }
        });
        // A write is written down by the World with its before-image; a command has none, so its start is.
        let commands =
            effects.iter().any(|effect| matches!(effect, Effect::Run { .. } | Effect::Spawn { .. }));
        if commands { record.begin().map(drop) } else { Ok(()) }
    }

    fn world(&self, scope: Arc<Scope>, record: &Arc<CallRecord>) -> Arc<LocalWorld> {
        let watcher: Option<Watcher> = self.options.watch.clone().map(|watch| {
            let (call_id, tool_name, started_at) =
                (self.call.id.clone(), self.call.tool.clone(), self.started_at);
            let watcher: Watcher = Arc::new(move |progress: Progress| {
                watch(&Execution::Running {
                    call_id: call_id.clone(),
                    tool_name: tool_name.clone(),
                    started_at,
                    last_update_at: now_ms(),
                    progress: Some(progress),
                });
            });
            watcher
        });
        let inner = &self.inner;
        let mut host = Arc::clone(self.options.host.as_ref().unwrap_or(&inner.host));
        if !inner.sources.is_empty() {
            host = Arc::new(Sourced { host, sources: inner.sources.clone() });
        }
        let record = Arc::<CallRecord>::clone(record);
        Arc::new(LocalWorld::new(&inner.ground, scope, record, host, self.options.cancel.clone(), watcher))
    }

    /// The last three steps, which every call reaches whatever became of it.
    fn end(
        &self,
        record: &CallRecord,
        performed: Result<Output, ToolError>,
        known: Option<(&Arc<dyn AnyTool>, &Vec<String>)>,
    ) -> CallResult {
        let its_own = performed.is_ok();
        let mut output = performed.unwrap_or_else(Output::from);
        output.whole = its_own
            && output.structured.is_some()
            && known.is_some_and(|(tool, _)| {
                tool.is_remote() || (tool.output_schema().is_some() && !output.is_error())
            });
        let limits = known.map(|(tool, _)| tool.bound()).unwrap_or_default();
        let side_effect = known.map_or(SideEffect::None, |(tool, _)| tool.side_effect());
        if let Some((_, coerced)) = known
            && !coerced.is_empty()
            && let Value::Object(structured) =
                output.structured.get_or_insert_with(|| Value::Object(serde_json::Map::new()))
        {
            structured.insert("coerced".to_owned(), Value::from(coerced.clone()));
        }

        // record
        let end = CallEnd {
            state: state(output.error_kind, record.verdict()),
            error_kind: output.error_kind,
            error: output.error_kind.map(|_| haft_tool::clip_chars(&output.as_text(), 2_000, 0).into_owned()),
            result: None,
            full_output: bound::worth_keeping(&output, limits, side_effect),
        };
        let receipt = match record.finish(end) {
            Ok(receipt) => receipt,
            // A result that could not be recorded is not given out as if it had been.
            Err(error) => return self.unrecorded(&error),
        };

        // bound
        let output = bound::bound(output, limits, &receipt);

        // result
        self.tell(|call_id, tool_name| {
            let outcome = match output.error_kind {
                Some(kind) => Outcome::Error { error: ToolError::new(kind, output.as_text()) },
                None => Outcome::Success { output: output.clone() },
            };
            let (started_at, completed_at) = (self.started_at, now_ms());
            Execution::Completed { call_id, tool_name, started_at, completed_at, outcome }
        });
        CallResult { call_id: self.call.id.clone(), output, receipt }
    }

    fn unrecorded(&self, error: &ToolError) -> CallResult {
        let message = format!("The call could not be recorded, so its result is withheld: {}", error.message);
        let receipt = Receipt { state: State::Failed, error: Some(message.clone()), ..self.blank_receipt() };
        let output = Output::from(ToolError::new(error.kind, message));
        CallResult { call_id: self.call.id.clone(), output, receipt }
    }

    pub(crate) fn blank_receipt(&self) -> Receipt {
        Receipt {
            call_id: self.call.id.clone(),
            tool: self.call.tool.clone(),
            workspace: self.inner.ground.planning.workspace.clone(),
            started_at: self.started_at,
            undoes: self.undoes.clone(),
            ..Receipt::default()
        }
    }

    /// Tells whoever watches where the call stands; nobody watching costs nothing.
    fn tell(&self, execution: impl FnOnce(String, String) -> Execution) {
        if let Some(watch) = &self.options.watch {
            watch(&execution(self.call.id.clone(), self.call.tool.clone()));
        }
    }
}

/// What is needed to end a call that was cancelled and does not stop.
pub(crate) struct Lifeline {
    call: Call,
    started_at: u64,
    watch: Option<Watch>,
    record: Arc<CallRecord>,
    ticket: Arc<Ticket>,
}

impl Lifeline {
    /// Gives the call up: it has its result and its receipt, and can change nothing any more.
    pub(crate) fn pull(self) -> Option<CallResult> {
        let error = CallRecord::abandoned();
        let receipt = self.record.abandon(CallEnd {
            state: State::Interrupted,
            error_kind: Some(error.kind),
            error: Some(error.message.clone()),
            ..CallEnd::default()
        })?;
        self.ticket.leave();
        let Call { id: call_id, tool: tool_name, .. } = self.call;
        if let Some(watch) = self.watch {
            watch(&Execution::Completed {
                call_id: call_id.clone(),
                tool_name,
                started_at: self.started_at,
                completed_at: now_ms(),
                outcome: Outcome::Error { error: error.clone() },
            });
        }
        Some(CallResult { call_id, output: Output::from(error), receipt })
    }
}

/// Whether calls with these effects can be taken back at all.
fn reversible(effects: &[Effect]) -> Reversible {
    if effects.iter().any(|effect| matches!(effect, Effect::Run { .. })) {
        return Reversible::No { why: "what the command changed was not watched".to_owned() };
    }
    Reversible::Yes
}

fn state(error: Option<ErrorKind>, verdict: Option<Verdict>) -> State {
    match error {
        None => State::Completed,
        Some(ErrorKind::Interrupted) => State::Interrupted,
        Some(_) if verdict == Some(Verdict::Deny) => State::Denied,
        Some(_) => State::Failed,
    }
}

fn denied(decision: &Decision) -> ToolError {
    let rule = decision.rule.as_ref().map(|rule| format!(" [{rule}]")).unwrap_or_default();
    ToolError::denied(format!("Denied: {}{rule}", decision.reason))
        .with_details(serde_json::json!({"denied": {"reason": decision.reason, "rule": decision.rule}}))
}
