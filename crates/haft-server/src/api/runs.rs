//! Starts, continues and interrupts runs. Each has its own process.

use haft_agent::{RunState, parent_of_agent};
use haft_ledger::{RunInProgress, SessionInfo};
use haft_tool::{ToolError, lock};

use super::error::ApiError;
use super::types::{Attachment, NewMessage, NewRun, Nothing, RunSession};
use super::{Api, ApiRequest};
use crate::backend::DecodedAttachment;

/// The entry point of conversations on channels, all of which one process drives.
const GATEWAY: &str = "gateway";
/// Files per message.
const MAX_ATTACHMENTS: usize = 20;

/// A turn that was interrupted.
#[derive(PartialEq, Eq)]
pub(crate) struct InterruptedTurn {
    /// When its process began to drive the run, in milliseconds since 1970. Distinguishes processes that continue the same turn.
    driven_since: u64,
    /// The number of the message that began it.
    seq: u64,
}

pub(super) fn start(api: &Api, request: &ApiRequest<'_>) -> Result<RunSession, ApiError> {
    let run: NewRun = request.json()?;
    check_prompt(&run.prompt)?;
    let attachments = decode(&run.attachments)?;
    Ok(RunSession { session: api.backend.start_run(&run, &attachments)? })
}

pub(super) fn continue_run(api: &Api, request: &ApiRequest<'_>, id: &str) -> Result<RunSession, ApiError> {
    let message: NewMessage = request.json()?;
    check_prompt(&message.prompt)?;
    let session = api.ledger.session_with_id(id)?;
    if api.ledger.driven_runs()?.iter().any(|run| run.session == id) {
        return Err(ApiError::conflict("The run is busy. Wait until its turn ends, or interrupt it."));
    }
    api.backend.continue_run(&session, &message, &decode(&message.attachments)?)?;
    Ok(RunSession { session: session.id })
}

/// Interrupts the turn of a run. Its process gets only one signal per turn, because a second one would end it at once.
pub(super) fn interrupt(api: &Api, id: &str) -> Result<Nothing, ApiError> {
    let session = api.ledger.session_with_id(id)?;
    let state = haft_agent::read_run(&api.ledger, &session.id)?;
    let runs = api.ledger.driven_runs()?;
    let (pid, turn) = interruptible(api, &session, state.as_ref(), &runs)?;
    let mut interrupted = lock(&api.interrupted);
    interrupted.retain(|session, _| runs.iter().any(|run| run.session == *session));
    if interrupted.get(&session.id) == Some(&turn) {
        return Err(ApiError::conflict(
            "This turn was interrupted already. It ends when its calls have stopped.",
        ));
    }
    api.backend.interrupt(pid)?;
    interrupted.insert(session.id, turn);
    Ok(Nothing {})
}

/// The process that is interrupted, and its turn; an error that says why there is none.
pub(super) fn interruptible(
    api: &Api,
    session: &SessionInfo,
    state: Option<&RunState>,
    runs: &[RunInProgress],
) -> Result<(u32, InterruptedTurn), ApiError> {
    if let Some(parent) = parent_of_agent(&session.entry_point) {
        let why = format!(
            "This is a subagent of session {parent} and has no process of its own. Interrupt that session."
        );
        return Err(ApiError::conflict(why));
    }
    if let Some(key) = &session.name
        && session.entry_point == GATEWAY
        && api.ledger.has_begun_message(&session.workspace, key)?
    {
        let why = "haft gateway drives this run, and an interrupt would end the gateway itself. Wait until the turn ends.";
        return Err(ApiError::conflict(why));
    }
    let Some(run) = runs.iter().find(|run| run.session == session.id) else {
        return Err(ApiError::conflict("No process drives this run, so there is nothing to interrupt."));
    };
    let Some(pid) = run.pid else {
        let why = "The run's process cannot be interrupted from here, because it runs in a container. Interrupt it there.";
        return Err(ApiError::conflict(why));
    };
    let Some(turn) = state.filter(|state| state.is_turn_open).and_then(|state| state.turns.last()) else {
        return Err(ApiError::conflict("The run waits for a message, so there is nothing to interrupt."));
    };
    Ok((pid, InterruptedTurn { driven_since: run.since, seq: turn.seq }))
}

fn check_prompt(prompt: &str) -> Result<(), ApiError> {
    if prompt.trim().is_empty() {
        return Err(ApiError::bad_request("prompt: it is empty. Say what the model should do."));
    }
    Ok(())
}

fn decode(attachments: &[Attachment]) -> Result<Vec<DecodedAttachment>, ApiError> {
    if attachments.len() > MAX_ATTACHMENTS {
        return Err(ApiError::bad_request(format!("attachments: at most {MAX_ATTACHMENTS} files.")));
    }
    let decoded: Result<Vec<_>, ToolError> = attachments.iter().map(DecodedAttachment::decode).collect();
    Ok(decoded?)
}
