//! Taking a run back to what it was before a turn.

use std::sync::Arc;

use haft_ledger::{EventLog, Ledger, ReceiptQuery};
use haft_tool::{ErrorKind, Receipt, ToolError};

use crate::agents::agent_entry_point;
use crate::run::no_run;
use crate::run_log::{RunLog, read_events};
use crate::settle::receipt_of;
use crate::{AgentRun, RunEvent, RunState, TurnMark};

/// Agents of one run whose calls are looked at.
const MAX_AGENTS: usize = 10_000;
/// How deep agents are looked for; they cannot be nested so deep.
const MAX_AGENT_DEPTH: usize = 16;

impl AgentRun {
    /// Takes the conversation back to what it was before a turn, counted from 1. Files are not changed by this.
    pub fn rewind(&mut self, turn: usize) -> Result<(), ToolError> {
        rewind_run(&self.parts.log, &self.parts.session, turn)?;
        self.reload()
    }
}

/// The same for a run that no one drives.
pub fn rewind_run(log: &Arc<dyn EventLog>, session: &str, turn: usize) -> Result<(), ToolError> {
    let state = RunState::of(&read_events(log.as_ref(), session)?).ok_or_else(|| no_run(session))?;
    let to = mark_of(&state, session, turn)?.seq - 1;
    RunLog::new(Arc::clone(log), session.to_owned(), state.seq).append(RunEvent::Rewound { to })?;
    Ok(())
}

/// The calls of a turn, counted from 1, and of all later ones, by their numbers in the ledger: also those that were under way when
/// their process died, and those of its agents.
pub fn calls_since(ledger: &Ledger, session: &str, turn: usize) -> Result<Vec<i64>, ToolError> {
    let state = RunState::of(&read_events(ledger, session)?).ok_or_else(|| no_run(session))?;
    let mark = mark_of(&state, session, turn)?;
    let mut calls: Vec<i64> =
        state.turns.iter().skip(turn - 1).flat_map(|turn| turn.receipts.iter().copied()).collect();
    for open in state.open_calls.iter().filter(|open| open.is_started && open.result.is_none()) {
        let receipt = receipt_of(ledger, &open.call.id, session, state.asked_at)?;
        calls.extend(receipt.map(|receipt| receipt.id));
    }
    add_calls_of_agents(ledger, session, mark.at, 0, &mut calls)?;
    Ok(calls)
}

/// Adds the calls that the agents of a run have made since a time.
fn add_calls_of_agents(
    ledger: &Ledger,
    parent: &str,
    since: u64,
    depth: usize,
    calls: &mut Vec<i64>,
) -> Result<(), ToolError> {
    if depth >= MAX_AGENT_DEPTH {
        return Ok(());
    }
    // An agent of an earlier turn may have gone on in a later one.
    for agent in ledger.sessions_from(&agent_entry_point(parent), 0, MAX_AGENTS)? {
        let mut query = ReceiptQuery { session: Some(agent.id.clone()), ..ReceiptQuery::default() };
        loop {
            let read = ledger.summaries(&query)?;
            let Some(oldest) = read.last().map(|summary| summary.receipt.id) else { break };
            let is_new = |receipt: &Receipt| receipt.started_at >= since;
            calls.extend(
                read.iter()
                    .map(|summary| &summary.receipt)
                    .filter(|receipt| is_new(receipt))
                    .map(|receipt| receipt.id),
            );
            query.before = Some(oldest);
        }
        add_calls_of_agents(ledger, &agent.id, since, depth + 1, calls)?;
    }
    Ok(())
}

fn mark_of<'a>(state: &'a RunState, session: &str, turn: usize) -> Result<&'a TurnMark, ToolError> {
    turn.checked_sub(1).and_then(|at| state.turns.get(at)).ok_or_else(|| {
        let count = state.turns.len();
        let message = format!("Run {session} has no turn {turn}; the number of its turns is {count}.");
        ToolError::new(ErrorKind::NotFound, message)
    })
}
