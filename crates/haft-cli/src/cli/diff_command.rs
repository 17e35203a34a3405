//! `haft diff`: what calls changed together.

use std::path::{Path, PathBuf};

use clap::Args;
use haft_ledger::{CumulativeChange, Ledger, ReceiptQuery, cumulative_changes};
use haft_runtime::recorded_content;
use haft_tool::{ChangeKind, ErrorKind, Node, Receipt, ToolError, Value, json, lies_in};

use super::args::WorkspaceArgs;
use super::diff::{FileDiff, diff, line, line_counts};
use super::exit::CliExit;
use super::local_time::point_in_time;
use super::screen::{self, BAD, FAINT, GOOD, styled};
use super::view::ViewArgs;
use super::{CommandResult, paths};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft diff                     # the last session that changed something here\n  \
haft diff 24                  # one call\n  \
haft diff 20..24 -- src       # several calls, in one directory\n  \
haft diff --session review --stat\n  \
haft diff --since 1h")]
pub(super) struct DiffArgs {
    /// Number of a call, or a range A..B of calls in this workspace; A.. means up to the last one.
    #[arg(value_name = "ID|A..B", conflicts_with_all = ["session", "since"])]
    calls: Option<CallNumbers>,
    /// The calls of this session.
    #[arg(long, value_name = "SESSION", conflicts_with = "since")]
    session: Option<String>,
    /// The calls in this workspace since then: an age such as 10m, or a date.
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    since: Option<u64>,
    /// Only these paths.
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// List the paths with the number of lines added and removed.
    #[arg(long)]
    stat: bool,
    /// Print one JSON object per path.
    #[arg(long, conflicts_with = "stat")]
    json: bool,
    #[command(flatten)]
    view: ViewArgs,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

/// Calls by their numbers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CallNumbers {
    first: i64,
    last: i64,
}

impl std::str::FromStr for CallNumbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is neither a call nor a range. Examples: 24, 20..24, 20..");
        let number = |text: &str| text.parse::<i64>().ok().filter(|id| *id > 0).ok_or_else(invalid);
        let (first, last) = match text.split_once("..") {
            None => (number(text)?, number(text)?),
            Some((first, "")) => (number(first)?, i64::MAX),
            Some((first, last)) => (number(first)?, number(last)?),
        };
        if first > last { Err(invalid()) } else { Ok(Self { first, last }) }
    }
}

pub(super) fn run(args: &DiffArgs) -> CommandResult {
    args.view.set_colors();
    let runtime = args.workspace.builder()?.build()?;
    runtime.recover()?;
    let ledger = runtime.ledger()?;
    let wanted = args.paths.iter().map(|path| paths::named(path)).collect::<Result<Vec<_>, _>>()?;
    let receipts = find(args, &ledger, runtime.workspace())?;
    let workspace =
        receipts.first().map_or_else(|| runtime.workspace().to_owned(), |first| first.workspace.clone());
    let mut changes = cumulative_changes(&receipts);
    let is_wanted = |path: &Path| wanted.is_empty() || wanted.iter().any(|wanted| lies_in(path, wanted));
    changes.retain(|change| is_wanted(&change.path) || change.moved_from.as_deref().is_some_and(is_wanted));
    if changes.is_empty() && !args.json {
        screen::note("no changes");
    }
    if args.json {
        for change in &changes {
            screen::result(&as_json(&ledger, change).to_string());
        }
        return Ok(CliExit::Done);
    }
    let text: String = changes.iter().map(|change| shown(&ledger, change, &workspace, args.stat)).collect();
    args.view.show(&text);
    Ok(CliExit::Done)
}

/// The calls whose changes are shown.
fn find(args: &DiffArgs, ledger: &Ledger, workspace: &Path) -> Result<Vec<Receipt>, ToolError> {
    let mut query = ReceiptQuery { only_changes: true, limit: usize::MAX, ..ReceiptQuery::default() };
    if let Some(CallNumbers { first, last }) = args.calls {
        if first == last {
            return Ok(vec![ledger.receipt(first)?]);
        }
        ledger.receipt(first)?;
        query.workspace = Some(workspace.to_owned());
        query.before = last.checked_add(1);
        let mut receipts = ledger.receipts(&query)?;
        receipts.retain(|receipt| receipt.id >= first);
        return Ok(receipts);
    }
    if let Some(since) = args.since {
        query.workspace = Some(workspace.to_owned());
        let mut receipts = ledger.receipts(&query)?;
        receipts.retain(|receipt| receipt.started_at >= since);
        return Ok(receipts);
    }
    query.session = Some(if let Some(name) = &args.session {
        ledger.session_in(name, workspace)?.id
    } else {
        let newest = ReceiptQuery { workspace: Some(workspace.to_owned()), limit: 1, ..query.clone() };
        let newest = ledger.summaries(&newest)?.pop();
        let none = || {
            let why = format!("No call has changed anything in {}.", workspace.display());
            ToolError::new(ErrorKind::TargetNotFound, why)
        };
        newest.ok_or_else(none)?.receipt.session
    });
    ledger.receipts(&query)
}

fn shown(ledger: &Ledger, change: &CumulativeChange, workspace: &Path, only_stat: bool) -> String {
    let short = |path: &Path| path.strip_prefix(workspace).unwrap_or(path).to_owned();
    let path = short(&change.path);
    let moved = change
        .moved_from
        .as_ref()
        .map(|from| line(&short(from), &ChangeKind::Moved(path.display().to_string())));
    if change.before.fully_same_as(&change.after) {
        // What lies in a moved directory is not listed again.
        let is_dir = matches!(change.after, Node::Dir(_));
        return moved.filter(|_| is_dir).unwrap_or_default();
    }
    let (before, after) = contents(ledger, change);
    let name = path.display().to_string();
    let sides = FileDiff {
        path: &name,
        from: (&change.before, before.as_deref()),
        to: (&change.after, after.as_deref()),
    };
    if !only_stat {
        return diff(&sides);
    }
    let counts = line_counts(&sides).filter(|_| is_file(change)).map(|(added, removed)| {
        format!("  {} {}", styled(GOOD, &format!("+{added}")), styled(BAD, &format!("-{removed}")))
    });
    let counts = counts.unwrap_or_else(|| {
        if is_file(change) { format!("  {}", styled(FAINT, "not text")) } else { String::new() }
    });
    let line = line(&path, &ChangeKind::between(&change.before, &change.after));
    format!("{}{counts}\n", line.trim_end_matches('\n'))
}

fn is_file(change: &CumulativeChange) -> bool {
    change.before.as_file().is_some() || change.after.as_file().is_some()
}

fn contents(ledger: &Ledger, change: &CumulativeChange) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    (
        recorded_content(ledger, &change.path, &change.before),
        recorded_content(ledger, &change.path, &change.after),
    )
}

fn as_json(ledger: &Ledger, change: &CumulativeChange) -> Value {
    let (before, after) = contents(ledger, change);
    let path = change.path.display().to_string();
    let sides = FileDiff {
        path: &path,
        from: (&change.before, before.as_deref()),
        to: (&change.after, after.as_deref()),
    };
    let mut object = json!({
        "path": path,
        "change": ChangeKind::between(&change.before, &change.after).word(),
        "before": change.before,
        "after": change.after,
    });
    if let Some(from) = &change.moved_from {
        object["moved_from"] = json!(from.display().to_string());
    }
    if let Some((added, removed)) = line_counts(&sides).filter(|_| is_file(change)) {
        (object["added"], object["removed"]) = (json!(added), json!(removed));
    }
    object
}
