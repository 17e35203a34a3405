//! Calls: lists, one call, its changes and its output.

use std::io::{Cursor, Read};

use haft_ledger::{Ledger, LiveSource, ReceiptFilter, ReceiptQuery};
use haft_runtime::effect_line;
use haft_tool::{Receipt, ReceiptState, ToolError};

use super::describe::{of_change, of_receipt, of_summary, part_of, shown_path};
use super::error::ApiError;
use super::query::Query;
use super::types::{CallDecision, CallDenial, CallDetail, CallList, ChangeList, OutputPart};
use super::{Api, sessions};

const DEFAULT_CALLS: usize = 100;
const MAX_CALLS: usize = 500;
/// Changes sent with the call itself.
const FIRST_CHANGE_COUNT: usize = 200;
const MAX_CHANGES: usize = 1_000;
/// Bytes of a result that are shown.
const MAX_RESULT_BYTES: usize = 1 << 20;
/// Bytes of output per answer.
const MAX_OUTPUT_BYTES: usize = 256 << 10;
/// The length of the longest character in UTF-8.
const MAX_CHAR_BYTES: usize = 4;

/// Calls of one session, or of all.
pub(super) fn list(api: &Api, session: Option<&str>, query: &Query) -> Result<CallList, ApiError> {
    if let Some(id) = session {
        api.ledger.session_with_id(id)?;
    }
    let limit = query.limit(DEFAULT_CALLS, MAX_CALLS)?;
    let wanted = ReceiptQuery {
        workspace: query.path("workspace")?,
        session: session.map(str::to_owned),
        limit,
        before: query.number("before")?,
        only_changes: query.is_set("changed"),
    };
    let filter = ReceiptFilter {
        tools: query.get("tool").map(str::to_owned).into_iter().collect(),
        failed: query.is_set("failed"),
        text: query.get("text").map(str::to_owned),
        ..ReceiptFilter::default()
    };
    let found = match query.number("after")? {
        Some(after) => api.ledger.search_oldest_first(&wanted, &filter, after)?,
        None => api.ledger.search(&wanted, &filter)?,
    };
    let next = found.last().filter(|_| found.len() == limit).map(|last| last.receipt.id);
    Ok(CallList { calls: found.iter().map(of_summary).collect(), next })
}

/// One call.
pub(super) fn detail(api: &Api, id: i64) -> Result<CallDetail, ApiError> {
    let ledger = &api.ledger;
    let receipt = ledger.receipt(id).map_err(|error| missing(id, error))?;
    let result = ledger.result(id)?;
    let result_is_cut = result.as_ref().is_some_and(|text| text.len() > MAX_RESULT_BYTES);
    let change_count = receipt.changes.len() as u64;
    let summary = of_receipt(&receipt, change_count, ledger.undone_by(id)?);
    let changes =
        part_of(&receipt.changes, 0, FIRST_CHANGE_COUNT, |change| of_change(change, &receipt.workspace));
    Ok(CallDetail {
        summary,
        input: receipt.input.clone(),
        input_note: receipt.input_note.clone(),
        effects: receipt.effects.iter().map(effect_line).collect(),
        decision: receipt.decision.as_ref().map(|decision| CallDecision {
            verdict: decision.verdict.word().to_owned(),
            reason: decision.reason.clone(),
            rule: decision.rule.clone(),
        }),
        error: receipt.error.clone(),
        result: result.map(|mut text| {
            text.truncate(text.floor_char_boundary(MAX_RESULT_BYTES));
            text
        }),
        result_is_cut,
        full_output: receipt.full_output.clone(),
        enforcement: receipt.enforcement.clone(),
        denials: receipt.denials.iter().map(denial).collect(),
        runs_on_build: receipt.runs_on_build.clone(),
        irreversible_why: receipt.reversible.why().map(str::to_owned),
        agents: sessions::agents_of_call(ledger, &receipt)?,
        changes,
    })
}

fn missing(id: i64, error: ToolError) -> ApiError {
    match error.kind {
        haft_tool::ErrorKind::NotFound | haft_tool::ErrorKind::TargetNotFound => {
            ApiError::not_found(format!("There is no call {id} in the ledger."))
        }
        _ => error.into(),
    }
}

fn denial(denial: &haft_tool::Denial) -> CallDenial {
    let times = if denial.times > 1 { format!(" ({} times)", denial.times) } else { String::new() };
    CallDenial {
        what: format!("{} {}: {}{times}", denial.what, denial.place, denial.rule),
        remedy: denial.allow.clone(),
    }
}

/// The changes of a call.
pub(super) fn changes(api: &Api, id: i64, query: &Query) -> Result<ChangeList, ApiError> {
    let Receipt { changes, workspace, .. } = api.ledger.receipt(id).map_err(|error| missing(id, error))?;
    let offset = query.number("offset")?.unwrap_or(0);
    let limit = query.limit(FIRST_CHANGE_COUNT, MAX_CHANGES)?;
    let wanted = query.get("path").map(str::to_lowercase);
    let is_wanted = |path: &std::path::Path| {
        wanted.as_ref().is_none_or(|text| shown_path(path, &workspace).to_lowercase().contains(text))
    };
    let changes: Vec<_> = changes
        .iter()
        .filter(|change| is_wanted(&change.path) || change.moved_to.as_deref().is_some_and(is_wanted))
        .collect();
    Ok(part_of(&changes, offset, limit, |change| of_change(change, &workspace)))
}

/// The output of a running call, or the whole output of a finished one.
pub(super) fn output(api: &Api, id: i64, query: &Query) -> Result<OutputPart, ApiError> {
    let from: u64 = query.number("from")?.unwrap_or(0);
    let ledger = &api.ledger;
    let receipt = ledger.receipt(id).map_err(|error| missing(id, error))?;
    if receipt.state == ReceiptState::Running
        && let Some(output) = live_output(ledger, LiveSource::Call(id), from)
    {
        return Ok(output);
    }
    let mut bytes: Box<dyn Read> = match &receipt.full_output {
        Some(hash) => ledger.open_blob(hash)?,
        None => Box::new(Cursor::new(ledger.result(id)?.unwrap_or_default())),
    };
    let read_error = |error: std::io::Error| ToolError::io("read the output in the ledger", &error);
    std::io::copy(&mut bytes.by_ref().take(from), &mut std::io::sink()).map_err(read_error)?;
    let mut part = Vec::new();
    bytes.take(MAX_OUTPUT_BYTES as u64 + 1).read_to_end(&mut part).map_err(read_error)?;
    if part.is_empty() {
        return Err(ApiError::not_found(format!("Call {id} has no output after byte {from}.")));
    }
    let is_end = part.len() <= MAX_OUTPUT_BYTES;
    part.truncate(MAX_OUTPUT_BYTES);
    Ok(text_output(from, &part, is_end))
}

/// Live text from a position on, as much as fits into an answer.
pub(super) fn live_output(ledger: &Ledger, source: LiveSource<'_>, from: u64) -> Option<OutputPart> {
    let live = ledger.live_text(source, from)?;
    let part = &live.bytes[..live.bytes.len().min(MAX_OUTPUT_BYTES)];
    Some(text_output(live.from, part, false))
}

/// The same, but at most its last `max_bytes` bytes.
pub(crate) fn live_tail(
    ledger: &Ledger,
    source: LiveSource<'_>,
    from: u64,
    max_bytes: usize,
) -> Option<OutputPart> {
    let live = ledger.live_text(source, from)?;
    let mut skipped = live.bytes.len().saturating_sub(max_bytes);
    if skipped > 0 {
        // The text must not begin within a character.
        let is_within = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        skipped +=
            live.bytes[skipped..].iter().take(MAX_CHAR_BYTES).take_while(|byte| is_within(byte)).count();
    }
    Some(text_output(live.from + skipped as u64, &live.bytes[skipped..], false))
}

/// Decodes bytes. An incomplete character at the end is left for the next part, unless nothing follows.
fn text_output(from: u64, bytes: &[u8], is_end: bool) -> OutputPart {
    let end = if is_end { bytes.len() } else { complete_end(bytes) };
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    OutputPart { from, next: from + end as u64, text }
}

/// Where the last complete character ends.
fn complete_end(bytes: &[u8]) -> usize {
    let is_incomplete = |start: &usize| {
        // The suffix is the beginning of a character whose rest is still to come.
        let found = std::str::from_utf8(&bytes[*start..]);
        found.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    let first = bytes.len().saturating_sub(MAX_CHAR_BYTES - 1);
    (first..bytes.len()).find(is_incomplete).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_characters_wait_for_the_rest() {
        let text = "aé€😀".as_bytes();
        for end in 0..=text.len() {
            let first = text_output(0, &text[..end], false);
            let rest = text_output(first.next, &text[usize::try_from(first.next).unwrap()..], true);
            assert_eq!(first.text + &rest.text, "aé€😀", "{end}");
        }
        assert_eq!(text_output(0, b"a\xff\xfeb", false).text, "a\u{fffd}\u{fffd}b");
        assert_eq!(text_output(5, b"\xff\xff\xff\xff\xff", false).next, 10);
    }
}
