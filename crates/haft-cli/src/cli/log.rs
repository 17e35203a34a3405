//! `haft log`: the calls, newest first.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use haft_ledger::{Ledger, ReceiptFilter, ReceiptQuery, ReceiptSummary};
use haft_runtime::about;
use haft_tool::{Receipt, ReceiptState, ToolError, json};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::args::WorkspaceArgs;
use super::diff::change_lines;
use super::exit::CliExit;
use super::local_time::{local_time, point_in_time};
use super::screen::{self, BAD, FAINT, GOOD, NAME, NOTE, styled};
use super::view::{ViewArgs, clip_columns, terminal_size, width};
use super::{CommandResult, paths};

/// How often `--follow` looks for new calls.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The columns of a line that is not for a terminal.
const PLAIN_COLUMNS: usize = 240;
/// What a call was about gets at least so many columns.
const MIN_TARGET_COLUMNS: usize = 20;
/// The longest word is "interrupted".
const OUTCOME_COLUMNS: usize = 11;
/// More changes of a call are counted, not listed by `--stat`.
const MAX_STAT_LINES: usize = 50;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft log --failed --since 1h\n  \
haft log --tool Bash --grep 'npm install'\n  \
haft log --path src --stat\n  \
haft log --session review --json")]
pub(super) struct LogArgs {
    /// Number of calls to list.
    #[arg(short = 'n', long, default_value_t = 20, value_parser = paths::list_length)]
    limit: usize,
    /// List the calls of every workspace.
    #[arg(long)]
    all: bool,
    /// Only calls of this session: its name, its id, or the beginning of its id.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only calls that changed something.
    #[arg(long)]
    changes: bool,
    /// Only calls with this text in the tool's name, the arguments, the error or the result; case does not matter.
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Only calls that named or changed this path, or one below it.
    #[arg(long, value_name = "PATH")]
    path: Option<PathBuf>,
    /// Only calls since then: an age such as 10m, 2h or 3d, or a date such as 2026-11-18 or '2026-11-18 09:30'.
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    since: Option<u64>,
    /// Only calls of this tool; repeatable.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tool: Vec<String>,
    /// Only calls that failed, were denied or interrupted, or whose command returned another exit code than 0.
    #[arg(long)]
    failed: bool,
    /// Go on: print new calls as they start and end. Ctrl-C stops it.
    #[arg(short, long)]
    follow: bool,
    /// List the paths that each call changed.
    #[arg(long)]
    stat: bool,
    /// Print one JSON receipt per line.
    #[arg(long, conflicts_with = "stat")]
    json: bool,
    #[command(flatten)]
    view: ViewArgs,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

pub(super) fn run(args: &LogArgs) -> CommandResult {
    args.view.set_colors();
    let runtime = args.workspace.builder()?.build()?;
    runtime.recover()?;
    let ledger = runtime.ledger()?;
    let session = args.session.as_ref().map(|id| ledger.session_in(id, runtime.workspace())).transpose()?;
    let session = session.map(|session| session.id);
    let here = !args.all && session.is_none();
    let query = ReceiptQuery {
        workspace: here.then(|| runtime.workspace().to_owned()),
        session,
        limit: args.limit,
        only_changes: args.changes,
        ..ReceiptQuery::default()
    };
    let filter = ReceiptFilter {
        tools: args.tool.clone(),
        failed: args.failed,
        since_ms: args.since,
        path: args.path.as_deref().map(paths::named).transpose()?,
        changed: None,
        text: args.grep.clone(),
        one_per_session: false,
    };
    let mut printer = LogPrinter { args, ledger: &ledger, sessions: HashMap::new() };
    let entries = ledger.search(&query, &filter)?;
    warn_of_damaged(&ledger);
    if args.follow {
        return follow(&mut printer, query, &filter, entries);
    }
    if entries.is_empty() && !args.json {
        let place = if here { format!(" in {}", runtime.workspace().display()) } else { String::new() };
        let such = if filter.is_empty() { "" } else { "such " };
        screen::note(&format!("no {such}calls are recorded{place}"));
    }
    let mut text = String::new();
    for entry in entries {
        text.push_str(&printer.entry(entry)?);
    }
    if args.json {
        // Not through the screen, which would escape what JSON does not.
        if !text.is_empty() {
            screen::result(&text);
        }
    } else {
        args.view.show(&text);
    }
    Ok(CliExit::Done)
}

/// Names the calls that cannot be listed.
fn warn_of_damaged(ledger: &Ledger) {
    let warning = |id: &i64| format!("call {id} is left out: its row in the ledger is damaged");
    screen::warnings(&ledger.damaged_calls().iter().map(warning).collect::<Vec<_>>());
}

/// Prints the newest calls, oldest first, then each call that starts or ends.
fn follow(
    printer: &mut LogPrinter<'_>,
    mut query: ReceiptQuery,
    filter: &ReceiptFilter,
    mut entries: Vec<ReceiptSummary>,
) -> CommandResult {
    let mut running: Vec<i64> = Vec::new();
    let mut last = 0;
    query.limit = usize::MAX;
    loop {
        entries.sort_by_key(|entry| entry.receipt.id);
        for entry in entries {
            let (id, is_running) = (entry.receipt.id, entry.receipt.state == ReceiptState::Running);
            running.retain(|known| *known != id);
            running.extend(is_running.then_some(id));
            last = last.max(id);
            // A reader that has gone ends the command.
            let text = printer.entry(entry)?;
            if !print_line(&text, printer.args.json) {
                return Ok(CliExit::Done);
            }
        }
        if is_closed_within(POLL_INTERVAL)? {
            return Ok(CliExit::Done);
        }
        let oldest = running.iter().min().map_or(last, |id| id - 1);
        let newer = printer.ledger.search_after(&query, filter, oldest)?;
        let is_news = |entry: &ReceiptSummary| {
            let (id, state) = (entry.receipt.id, entry.receipt.state);
            id > last || (running.contains(&id) && state != ReceiptState::Running)
        };
        entries = newer.into_iter().filter(is_news).collect();
    }
}

/// Waits for the time given; true if the reader of standard output goes meanwhile.
fn is_closed_within(time: Duration) -> Result<bool, ToolError> {
    let stdout = std::io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let timeout = Timespec::try_from(time).map_err(|_| ToolError::internal("the time does not fit"))?;
    match poll(&mut watched, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {
            Ok(watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL))
        }
        Err(error) => Err(ToolError::io("wait for calls", &error.into())),
    }
}

/// Writes to standard output at once; false if that is closed.
fn print_line(text: &str, is_json: bool) -> bool {
    let mut out = anstream::stdout().lock();
    let text = if is_json { text.into() } else { screen::visible(text) };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

struct LogPrinter<'a> {
    args: &'a LogArgs,
    ledger: &'a Ledger,
    /// What sessions are called, by id.
    sessions: HashMap<String, String>,
}

impl LogPrinter<'_> {
    fn entry(&mut self, entry: ReceiptSummary) -> Result<String, ToolError> {
        if self.args.json {
            return Ok(format!("{}\n", json!(self.ledger.complete(entry)?)));
        }
        let mut text = format!("{}\n", self.line(&entry));
        if self.args.stat && entry.change_count > 0 {
            let receipt = self.ledger.complete(entry)?;
            text.push_str(&change_lines(&receipt, MAX_STAT_LINES, "         "));
        }
        Ok(text)
    }

    fn line(&mut self, summary: &ReceiptSummary) -> String {
        let ReceiptSummary { receipt, change_count, undone_by, .. } = summary;
        let tool = screen::escape(&receipt.tool);
        let took = match receipt.state {
            ReceiptState::Running => String::new(),
            _ => screen::took(receipt.duration_us),
        };
        let mut line = format!(
            "{:>6}  {}  {} {took:>7}  {} ",
            receipt.id,
            local_time(receipt.started_at),
            outcome(receipt, OUTCOME_COLUMNS),
            styled(NAME, &format!("{tool:<6}")),
        );
        let used = 6 + 2 + 19 + 2 + OUTCOME_COLUMNS + 1 + width(&took).max(7) + 2 + width(&tool).max(6) + 1;
        let mut notes = Vec::new();
        if *change_count > 0 {
            notes.push((FAINT, format!("{change_count} changed")));
        }
        if !receipt.runs_on_build.is_empty() {
            notes.push((NOTE, "changes what runs on build".to_owned()));
        }
        if receipt.input["preview"] == true {
            notes.push((NOTE, "preview, nothing was changed".to_owned()));
        }
        if let Some(by) = undone_by {
            notes.push((NOTE, format!("undone by {by}")));
        }
        if self.args.all {
            notes.push((FAINT, screen::escape(&receipt.workspace.display().to_string())));
        }
        if self.args.session.is_none() {
            notes.push((FAINT, self.session(&receipt.session)));
        }
        let noted: usize = notes.iter().map(|(_, note)| 2 + width(note)).sum();
        let columns = terminal_size().map_or(PLAIN_COLUMNS, |(columns, _)| columns);
        let left = columns.saturating_sub(used + noted).max(MIN_TARGET_COLUMNS);
        line.push_str(&clip_columns(&screen::escape(&about(receipt)), left));
        // Notes that do not fit are left out from the end, so that no line wraps.
        let mut left = columns.saturating_sub(used + MIN_TARGET_COLUMNS.min(left));
        for (style, note) in notes {
            let Some(rest) = left.checked_sub(2 + width(&note)) else { break };
            left = rest;
            let _ = write!(line, "  {}", styled(style, &note));
        }
        line
    }

    fn session(&mut self, id: &str) -> String {
        if let Some(known) = self.sessions.get(id) {
            return known.clone();
        }
        let name = self.ledger.session(id).ok().and_then(|session| session.name);
        let shown = screen::escape(&name.unwrap_or_else(|| id.to_owned()));
        self.sessions.insert(id.to_owned(), shown.clone());
        shown
    }
}

/// How a call ended, in one coloured word of at least so many columns; a command that failed by its exit code.
pub(super) fn outcome(receipt: &Receipt, columns: usize) -> String {
    let (style, word) = match (receipt.state, receipt.exit_code) {
        (ReceiptState::Completed | ReceiptState::Failed, Some(code)) if code != 0 => {
            (BAD, format!("exit {code}"))
        }
        (ReceiptState::Completed, _) => (GOOD, "done".to_owned()),
        (ReceiptState::Failed | ReceiptState::Denied, _) => (BAD, receipt.state.word().to_owned()),
        (other, _) => (NOTE, other.word().to_owned()),
    };
    styled(style, &format!("{word:<columns$}"))
}
