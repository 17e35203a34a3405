//! Sessions: the list, the details of one, and what happens now.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use haft_agent::{AgentOrigin, RunEvent, agent_entry_point};
use haft_ledger::{EventLog as _, EventQuery, Ledger, LiveSource, ReceiptFilter, ReceiptQuery, SessionInfo};
use haft_tool::{ReceiptState, ToolError, now_ms, path_to_text};

use super::describe::{of_receipt, of_session};
use super::error::ApiError;
use super::query::Query;
use super::types::{CallSummary, MessageList, Now, SessionDetail, SessionEntry, SessionList, SubagentInfo};
use super::{Api, calls, messages, questions};

const DEFAULT_SESSION_COUNT: usize = 50;
const MAX_SESSIONS: usize = 200;
/// Subagents of a session that are listed.
const MAX_AGENTS: usize = 500;
/// Calls per read in the search for those that started subagents.
const READ_CALL_COUNT: usize = 500;
/// How many such reads are made at most.
const MAX_CALL_READS: usize = 20;
/// Bytes of a running call's output that are shown at first.
const TAIL_BYTES: usize = 4 << 10;

pub(super) fn driven(ledger: &Ledger) -> Result<Vec<String>, ToolError> {
    Ok(ledger.driven_runs()?.into_iter().map(|run| run.session).collect())
}

/// What happens now, in all sessions.
pub(super) fn now(api: &Api) -> Result<Now, ApiError> {
    let ledger = &api.ledger;
    // Read first, so that what happens meanwhile is repeated as events.
    let position = ledger.feed_position()?;
    let driven = driven(ledger)?;
    let questions = questions::open(ledger)?;
    let mut calls = Vec::new();
    for running in ledger.running_calls()? {
        if running.receipt.state == ReceiptState::Running {
            calls.push(with_output(ledger, of_receipt(&running.receipt, 0, None)));
        }
    }
    let of_questions = questions.iter().map(|question| &question.session);
    let ids: BTreeSet<&String> =
        calls.iter().map(|call| &call.session).chain(of_questions).chain(&driven).collect();
    let mut sessions = Vec::new();
    for id in ids {
        // A session that is deleted meanwhile is left out.
        if let Ok(info) = ledger.session_with_id(id) {
            sessions.push(of_session(ledger, &info, &driven)?);
        }
    }
    Ok(Now { position, now: now_ms(), questions, calls, sessions })
}

/// The call with the end of its output.
fn with_output(ledger: &Ledger, mut call: CallSummary) -> CallSummary {
    call.output = calls::live_tail(ledger, LiveSource::Call(call.id), 0, TAIL_BYTES);
    call
}

/// Sessions, newest first.
pub(super) fn list(api: &Api, query: &Query) -> Result<SessionList, ApiError> {
    let limit = query.limit(DEFAULT_SESSION_COUNT, MAX_SESSIONS)?;
    let workspace = query.path("workspace")?;
    let before = query.get("before").map(parse_cursor).transpose()?.unwrap_or((u64::MAX, ""));
    let found = match query.get("q") {
        Some(text) => search(&api.ledger, text, workspace, before, limit)?,
        None => api.ledger.sessions_before(workspace.as_deref(), before, limit)?,
    };
    let is_full = found.len() == limit;
    let next = found.last().filter(|_| is_full).map(|last| format!("{}.{}", last.started_at, last.id));
    let driven = driven(&api.ledger)?;
    let sessions: Result<Vec<SessionEntry>, ToolError> =
        found.iter().map(|info| of_session(&api.ledger, info, &driven)).collect();
    Ok(SessionList { sessions: sessions?, next })
}

/// Parses the start and the id of the session before which a page begins.
fn parse_cursor(cursor: &str) -> Result<(u64, &str), ApiError> {
    let parsed = cursor.split_once('.').and_then(|(started_at, id)| Some((started_at.parse().ok()?, id)));
    parsed.ok_or_else(|| ApiError::bad_request("before: give the `next` of the page before."))
}

/// Finds sessions with a text in their id, name, folder, calls or messages.
fn search(
    ledger: &Ledger,
    text: &str,
    workspace: Option<PathBuf>,
    before: (u64, &str),
    limit: usize,
) -> Result<Vec<SessionInfo>, ToolError> {
    let lower = text.to_lowercase();
    let mut found = ledger.sessions_before(workspace.as_deref(), before, usize::MAX)?;
    let calls = ReceiptQuery { workspace: workspace.clone(), limit: usize::MAX, ..ReceiptQuery::default() };
    let filter =
        ReceiptFilter { text: Some(text.to_owned()), one_per_session: true, ..ReceiptFilter::default() };
    let with_call: HashSet<String> =
        ledger.search(&calls, &filter)?.into_iter().map(|found| found.receipt.session).collect();
    let events = EventQuery { workspace, session: None, text: text.to_owned() };
    let with_message = ledger.sessions_with_event(&events, &|event| {
        messages::message(event).is_some_and(|message| message.text.to_lowercase().contains(&lower))
    })?;
    found.retain(|session| {
        let name = session.name.as_deref().unwrap_or_default();
        let folder = path_to_text(&session.workspace);
        with_call.contains(&session.id)
            || with_message.contains(&session.id)
            || [session.id.as_str(), name, &folder].iter().any(|part| part.to_lowercase().contains(&lower))
    });
    found.truncate(limit);
    Ok(found)
}

/// One session.
pub(super) fn detail(api: &Api, id: &str) -> Result<SessionDetail, ApiError> {
    let info = api.ledger.session_with_id(id)?;
    let driven = driven(&api.ledger)?;
    let session = of_session(&api.ledger, &info, &driven)?;
    let run = if session.has_run { messages::run(api, &info)? } else { None };
    // The text of a process that has died stays until housekeeping removes it.
    let answer = session.is_driven.then(|| calls::live_output(&api.ledger, LiveSource::Run(id), 0)).flatten();
    Ok(SessionDetail { session, run, answer, agents: agents(api, &info.id, &driven)? })
}

/// A part of the messages of a session's run.
pub(super) fn messages(api: &Api, id: &str, query: &Query) -> Result<MessageList, ApiError> {
    let info = api.ledger.session_with_id(id)?;
    messages::list(&api.ledger, &info.id, query)
}

/// The subagents of a session, oldest first.
fn agents(api: &Api, session: &str, driven: &[String]) -> Result<Vec<SubagentInfo>, ApiError> {
    let mut agents = Vec::new();
    let started = api.ledger.sessions_from(&agent_entry_point(session), 0, MAX_AGENTS)?;
    for info in &started {
        let origin = origin(&api.ledger, &info.id)?;
        agents.push(SubagentInfo {
            session: of_session(&api.ledger, info, driven)?,
            kind: origin.kind,
            description: origin.description,
            call: None,
        });
    }
    find_calls(&api.ledger, session, &mut agents)?;
    Ok(agents)
}

/// Finds the call that started each subagent: the session's newest call with the subagent's description that began no later than
/// the subagent. The calls are read once for all subagents, newest first.
fn find_calls(ledger: &Ledger, session: &str, agents: &mut [SubagentInfo]) -> Result<(), ToolError> {
    let mut query =
        ReceiptQuery { session: Some(session.to_owned()), limit: READ_CALL_COUNT, ..ReceiptQuery::default() };
    for _ in 0..MAX_CALL_READS {
        if agents.iter().all(|agent| agent.call.is_some()) {
            break;
        }
        let calls = ledger.summaries(&query)?;
        for call in calls.iter().map(|call| &call.receipt) {
            let description = call.input.get("description").and_then(|text| text.as_str());
            for agent in agents.iter_mut().filter(|agent| agent.call.is_none()) {
                if call.started_at <= agent.session.started_at && description == Some(&agent.description) {
                    agent.call = Some(call.id);
                }
            }
        }
        query.before = calls.last().map(|call| call.receipt.id);
        if calls.len() < READ_CALL_COUNT {
            break;
        }
    }
    Ok(())
}

/// Where a subagent's run comes from.
fn origin(ledger: &Ledger, session: &str) -> Result<AgentOrigin, ToolError> {
    let first = ledger.read(session, 1, 1)?.pop();
    let started = first.and_then(|event| serde_json::from_value(event.body).ok());
    Ok(match started {
        Some(RunEvent::Started(start)) => start.agent.unwrap_or_default(),
        _ => AgentOrigin::default(),
    })
}

/// The sessions of the subagents that a call started.
pub(super) fn agents_of_call(
    ledger: &Ledger,
    receipt: &haft_tool::Receipt,
) -> Result<Vec<String>, ToolError> {
    let Some(description) = receipt.input.get("description").and_then(|text| text.as_str()) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for info in ledger.sessions_from(&agent_entry_point(&receipt.session), receipt.started_at, MAX_AGENTS)? {
        let end = receipt.started_at.saturating_add(receipt.duration_us / 1_000 + 1);
        let is_within = receipt.state == ReceiptState::Running || info.started_at <= end;
        if is_within && origin(ledger, &info.id)?.description == description {
            found.push(info.id);
        }
    }
    Ok(found)
}
