//! Converts receipts, changes and sessions to the types of the API.

use std::path::Path;

use haft_agent::{RunEvent, parent_of_agent};
use haft_ledger::{CumulativeChange, EventLog as _, Ledger, ReceiptQuery, ReceiptSummary, SessionInfo};
use haft_model::ContentPart;
use haft_runtime::about;
use haft_tool::{Change, ChangeKind, Node, Receipt, ReceiptState, ToolError, path_to_text};

use super::types::{CallSummary, ChangeEntry, ChangeList, ChangeSide, SessionEntry};

/// Characters of what a call is about.
const MAX_ABOUT_CHARS: usize = 300;
/// Characters of a session's title.
const MAX_TITLE_CHARS: usize = 120;
/// Entry points that make a session for each call.
const ENTRY_POINTS_OF_ONE_CALL: [&str; 2] = ["cli", "serve"];
/// The first message of a run is among this many events.
const MAX_EVENTS_BEFORE_TITLE: usize = 4;

/// The first characters of a text, on one line.
pub(crate) fn clipped(text: &str, max_chars: usize) -> String {
    let line = text.trim().replace('\n', " ⏎ ");
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

pub(crate) fn of_summary(summary: &ReceiptSummary) -> CallSummary {
    of_receipt(&summary.receipt, summary.change_count, summary.undone_by)
}

pub(crate) fn of_receipt(receipt: &Receipt, change_count: u64, undone_by: Option<i64>) -> CallSummary {
    let is_running = receipt.state == ReceiptState::Running;
    CallSummary {
        id: receipt.id,
        session: receipt.session.clone(),
        call_id: receipt.call_id.clone(),
        tool: receipt.tool.clone(),
        about: clipped(&about(receipt), MAX_ABOUT_CHARS),
        workspace: path_to_text(&receipt.workspace).into_owned(),
        state: receipt.state.word().to_owned(),
        started_at: receipt.started_at,
        duration_us: if is_running { 0 } else { receipt.duration_us },
        change_count,
        reversible: receipt.reversible.word().to_owned(),
        undone_by,
        undoes: receipt.undoes.clone(),
        exit_code: receipt.exit_code,
        error_kind: receipt.error_kind.map(|kind| kind.name().to_owned()),
        denials: receipt.denials.iter().map(|denial| u64::from(denial.times)).sum(),
        output: None,
    }
}

pub(crate) fn state_of(node: &Node) -> ChangeSide {
    let mut state =
        ChangeSide { kind: "special".to_owned(), size: None, hash: None, mode: None, target: None };
    let kind = match node {
        Node::Absent => "absent",
        Node::File(file) => {
            state.size = Some(file.size);
            // A file that could not be read is recorded without a hash.
            state.hash = Some(file.hash.clone()).filter(|hash| !hash.is_empty());
            state.mode = Some(format!("{:o}", file.mode));
            "file"
        }
        Node::Dir(dir) => {
            state.mode = Some(format!("{:o}", dir.mode));
            "dir"
        }
        Node::Link { target, .. } => {
            state.target = Some(path_to_text(target).into_owned());
            "link"
        }
        Node::Fifo { mode, .. } => {
            state.mode = Some(format!("{mode:o}"));
            "fifo"
        }
        Node::Special => "special",
    };
    kind.clone_into(&mut state.kind);
    state
}

/// A path as it is shown: relative to the workspace, absolute outside it.
pub(crate) fn shown_path(path: &Path, workspace: &Path) -> String {
    let short = path.strip_prefix(workspace).ok().filter(|short| !short.as_os_str().is_empty());
    path_to_text(short.unwrap_or(path)).into_owned()
}

pub(crate) fn of_change(change: &Change, workspace: &Path) -> ChangeEntry {
    ChangeEntry {
        path: shown_path(&change.path, workspace),
        what: ChangeKind::of(change).word().to_owned(),
        moved_to: change.moved_to.as_deref().map(|to| shown_path(to, workspace)),
        moved_from: None,
        before: state_of(&change.before),
        after: state_of(&change.after),
        contested: change.contested,
        calls: Vec::new(),
    }
}

pub(crate) fn of_cumulative(change: &CumulativeChange, workspace: &Path, calls: Vec<i64>) -> ChangeEntry {
    ChangeEntry {
        path: shown_path(&change.path, workspace),
        what: ChangeKind::between(&change.before, &change.after).word().to_owned(),
        moved_to: None,
        moved_from: change.moved_from.as_deref().map(|from| shown_path(from, workspace)),
        before: state_of(&change.before),
        after: state_of(&change.after),
        contested: false,
        calls,
    }
}

/// The part of a list of changes that begins at `offset`. Only its entries are converted.
pub(crate) fn part_of<T>(
    changes: &[T],
    offset: usize,
    limit: usize,
    make: impl Fn(&T) -> ChangeEntry,
) -> ChangeList {
    let end = offset.saturating_add(limit).min(changes.len());
    let part = changes.get(offset..end).unwrap_or_default();
    ChangeList {
        changes: part.iter().map(make).collect(),
        total: changes.len() as u64,
        next: (end < changes.len()).then_some(end as u64),
    }
}

/// Describes a session; `driven` lists the sessions whose runs are driven now.
pub(crate) fn of_session(
    ledger: &Ledger,
    info: &SessionInfo,
    driven: &[String],
) -> Result<SessionEntry, ToolError> {
    let events = ledger.read(&info.id, 1, MAX_EVENTS_BEFORE_TITLE)?;
    let said = events.iter().find_map(|event| match serde_json::from_value(event.body.clone()) {
        Ok(RunEvent::UserMessage { content, .. }) => Some(text_of(&content)),
        _ => None,
    });
    Ok(SessionEntry {
        id: info.id.clone(),
        // Programs name sessions by UUIDs, which tell people nothing.
        name: info.name.clone().filter(|name| !is_uuid(name)),
        title: match said {
            Some(text) => Some(clipped(&text, MAX_TITLE_CHARS)),
            None => title_of_call(ledger, info)?,
        },
        workspace: path_to_text(&info.workspace).into_owned(),
        dialect: info.dialect.clone(),
        entry_point: info.entry_point.clone(),
        parent: parent_of_agent(&info.entry_point).map(str::to_owned),
        started_at: info.started_at,
        calls: info.calls,
        has_run: !events.is_empty(),
        is_driven: driven.contains(&info.id),
    })
}

/// What the only call of a session is about, if the session was made for it, as `haft call` and the page do.
fn title_of_call(ledger: &Ledger, info: &SessionInfo) -> Result<Option<String>, ToolError> {
    if info.calls != 1 || !ENTRY_POINTS_OF_ONE_CALL.contains(&info.entry_point.as_str()) {
        return Ok(None);
    }
    let query = ReceiptQuery { session: Some(info.id.clone()), limit: 1, ..ReceiptQuery::default() };
    let call = ledger.summaries(&query)?.pop();
    Ok(call.map(|ReceiptSummary { receipt, .. }| {
        clipped(&format!("{} {}", receipt.tool, about(&receipt)), MAX_TITLE_CHARS)
    }))
}

/// Whether a name has the form of a UUID.
fn is_uuid(name: &str) -> bool {
    let lengths: Vec<usize> = name.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && name.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// The text of a message.
pub(crate) fn text_of(content: &[ContentPart]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        ContentPart::Text { text } => Some(text.as_str()),
        ContentPart::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
