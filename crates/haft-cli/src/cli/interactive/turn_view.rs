//! What a turn shows: the model's text, one line per call with what came of it, and the lines that change meanwhile.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use haft_agent::{LoopEvent, RunObserver};
use haft_ledger::Ledger;
use haft_model::{CallArguments, ModelEvent, ToolCall, ToolResult};
use haft_runtime::recorded_content;
use haft_tool::{EffectKind, Progress, Receipt, Value, clip_chars};

use super::super::diff::{FileDiff, change_lines, diff};
use super::super::screen::{self, BAD, FAINT, GOOD, NAME, NOTE, styled};
use super::super::view::clip_columns;
use super::live::{LiveCall, LiveScreen, columns};
use super::markdown::{MarkdownStream, wrapped};
use super::todos;

/// Lines of a diff that are shown.
const MAX_DIFF_LINES: usize = 24;
/// More changed files are listed without their lines.
const MAX_DIFF_FILES: usize = 3;
/// Changed paths that are listed.
const MAX_LISTED_CHANGES: usize = 5;
/// Lines of a result that are shown.
const MAX_RESULT_LINES: usize = 3;
/// How much of a message of a running call is kept.
const MAX_MESSAGE_CHARS: usize = 400;
/// The least columns for what a call is about.
const MIN_ABOUT_COLUMNS: usize = 20;
/// The indentation of what belongs to a call.
const INDENT: &str = "  ";

/// Shows a turn.
pub(super) struct TurnView {
    screen: LiveScreen,
    ledger: Option<Ledger>,
    workspace: PathBuf,
    is_plain: bool,
    markdown: MarkdownStream,
    /// A line of plain text that is not complete.
    plain_line: String,
    calls: HashMap<String, ToolCall>,
    /// Lines about calls that ended in the middle of a line of text.
    after_line: String,
    last_call: Option<i64>,
}

impl TurnView {
    /// Diffs need the ledger.
    pub(super) fn new(ledger: Option<Ledger>, workspace: &Path, is_plain: bool) -> Self {
        let screen = LiveScreen::new();
        screen.update(|live| live.waiting = Some(("waiting for the model".to_owned(), Instant::now())));
        Self {
            screen,
            ledger,
            workspace: workspace.to_owned(),
            is_plain,
            markdown: MarkdownStream::default(),
            plain_line: String::new(),
            calls: HashMap::new(),
            after_line: String::new(),
            last_call: None,
        }
    }

    /// The number of the last call in the ledger.
    pub(super) fn last_call(&self) -> Option<i64> {
        self.last_call
    }

    /// Writes a line that stays.
    fn print(&mut self, text: &str) {
        if self.markdown.is_in_line() || !self.plain_line.is_empty() {
            self.after_line.push_str(text);
        } else {
            self.screen.print(text);
        }
    }

    fn text(&mut self, delta: &str) {
        let delta = delta.replace("\r\n", "\n");
        let delta = screen::sanitize(&delta);
        if self.is_plain {
            self.plain_line.push_str(&delta);
            if let Some(end) = self.plain_line.rfind('\n') {
                let rest = self.plain_line.split_off(end + 1);
                let lines = std::mem::replace(&mut self.plain_line, rest);
                self.screen.print(&lines);
            }
        } else {
            let rows = self.markdown.push(&delta, columns().saturating_sub(1));
            let row = self.markdown.partial_row();
            self.screen.update(|live| live.row = row);
            self.screen.print(&rows);
        }
        if !self.markdown.is_in_line() && self.plain_line.is_empty() {
            let held = std::mem::take(&mut self.after_line);
            self.screen.print(&held);
        }
    }

    /// Writes what is left of the text.
    fn end_text(&mut self) {
        let mut rest = self.markdown.finish();
        if !self.plain_line.is_empty() {
            rest = std::mem::take(&mut self.plain_line) + "\n";
        }
        rest.push_str(&std::mem::take(&mut self.after_line));
        self.screen.update(|live| live.row.clear());
        self.screen.print(&rest);
    }

    fn wait_for(&mut self, what: &str) {
        self.screen.update(|live| {
            let since = live.waiting.take().map_or_else(Instant::now, |(_, since)| since);
            live.waiting = Some((what.to_owned(), since));
        });
    }

    fn model(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Started { .. } => self.wait_for("thinking"),
            ModelEvent::Text { delta } => {
                self.wait_for("writing");
                self.text(delta);
            }
            ModelEvent::CallBegun { name, .. } => {
                let name = screen::escape(&clip_chars(name, MAX_MESSAGE_CHARS, 0));
                self.wait_for(&format!("writing a call of {name}"));
            }
            ModelEvent::Restarted => {
                self.end_text();
                self.note("the answer broke off and begins again");
            }
            ModelEvent::Retrying(pause) => self.note(&pause.line()),
            ModelEvent::Notice { text } => self.note(text),
            _ => {}
        }
    }

    fn note(&mut self, text: &str) {
        let line = format!("{}: {}\n", styled(NOTE, "note"), screen::escape(text));
        self.print(&line);
    }

    fn start_call(&mut self, call: &ToolCall) {
        let running = LiveCall {
            id: call.id.clone(),
            name: screen::escape(&clip_chars(&call.name, MAX_MESSAGE_CHARS, 0)),
            about: self.about(call),
            since: Instant::now(),
            says: String::new(),
        };
        self.calls.insert(call.id.clone(), call.clone());
        self.screen.update(|live| live.calls.push_back(running));
    }

    fn end_call(&mut self, call_id: &str) -> Option<ToolCall> {
        self.screen.update(|live| live.calls.retain(|call| call.id != call_id));
        self.calls.remove(call_id)
    }

    fn show_result(&self, result: &ToolResult, receipt: Option<i64>) -> String {
        let made = self.ledger.as_ref().zip(receipt).and_then(|(ledger, id)| ledger.receipt(id).ok());
        match (&self.ledger, made) {
            (Some(ledger), Some(made)) if !made.changes.is_empty() => {
                let changes = shown_changes(ledger, &made);
                // The result of an edit says what the diff says.
                let is_command = made.effects.iter().any(|effect| effect.kind() == EffectKind::Run);
                let has_more = is_command || result.is_error;
                if has_more { self.result_lines(result, receipt) + &changes } else { changes }
            }
            _ => self.result_lines(result, receipt),
        }
    }

    /// The line of a call that has ended.
    fn call_line(&self, about: &str, result: &ToolResult, facts: &str) -> String {
        let name = screen::escape(&clip_chars(&result.name, MAX_MESSAGE_CHARS, 0));
        if self.is_plain {
            let failed = if result.is_error { " failed" } else { "" };
            let about = if about.is_empty() { String::new() } else { format!(": {about}") };
            return format!("{name}{failed}{about} ({facts})\n");
        }
        let room = columns().saturating_sub(name.chars().count() + facts.chars().count() + 6);
        let about = match about {
            "" => String::new(),
            about => format!(" {}", clip_columns(about, room.max(MIN_ABOUT_COLUMNS))),
        };
        let (mark, style) = if result.is_error { (styled(BAD, "x"), BAD) } else { (styled(GOOD, "+"), NAME) };
        format!("{mark} {}{about}  {}\n", styled(style, &name), styled(FAINT, facts))
    }

    /// What a call is about: its first argument that is text, on one line. A path in the workspace is shown without it.
    fn about(&self, call: &ToolCall) -> String {
        let text = match &call.arguments {
            CallArguments::Object(object) => object.values().find_map(Value::as_str).unwrap_or_default(),
            CallArguments::Invalid(text) => text,
        };
        let line = text.lines().next().unwrap_or_default();
        let line = Path::new(line).strip_prefix(&self.workspace).ok().and_then(Path::to_str).unwrap_or(line);
        screen::escape(&line.chars().take(MAX_MESSAGE_CHARS).collect::<String>())
    }

    /// The beginning of a result; of an error more than of other results.
    fn result_lines(&self, result: &ToolResult, receipt: Option<i64>) -> String {
        let text = result.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let style = if result.is_error { BAD } else { FAINT };
        let room = columns().saturating_sub(INDENT.len() + 1);
        let mut shown = String::new();
        for line in lines.iter().take(MAX_RESULT_LINES) {
            let line = screen::escape(&clip_chars(&line.replace('\t', "  "), MAX_MESSAGE_CHARS, 0));
            let rows = match (self.is_plain, result.is_error) {
                (true, _) => vec![line],
                (false, true) => wrapped(&line, room),
                (false, false) => vec![clip_columns(&line, room).into_owned()],
            };
            for row in rows {
                shown.push_str(&format!("{INDENT}{}\n", styled(style, &row)));
            }
        }
        let hidden = lines.len().saturating_sub(MAX_RESULT_LINES);
        if hidden > 0 {
            shown.push_str(&more(hidden, receipt));
        }
        shown
    }
}

/// What a call changed: lines of a few files, else their names.
fn shown_changes(ledger: &Ledger, made: &Receipt) -> String {
    let files: Vec<_> = made.changes.iter().filter(|change| change.moved_to.is_none()).collect();
    if files.len() != made.changes.len() || files.len() > MAX_DIFF_FILES {
        return change_lines(made, MAX_LISTED_CHANGES, INDENT);
    }
    let mut text = String::new();
    for change in files {
        let path = change.path.strip_prefix(&made.workspace).unwrap_or(&change.path);
        let before = recorded_content(ledger, &change.path, &change.before);
        let after = recorded_content(ledger, &change.path, &change.after);
        text.push_str(&diff(&FileDiff {
            path: &path.display().to_string(),
            from: (&change.before, before.as_deref()),
            to: (&change.after, after.as_deref()),
        }));
    }
    let hidden = text.lines().count().saturating_sub(MAX_DIFF_LINES);
    let mut shown: String =
        text.lines().take(MAX_DIFF_LINES).map(|line| format!("{INDENT}{line}\n")).collect();
    if hidden > 0 {
        shown.push_str(&more(hidden, Some(made.id)));
    }
    shown
}

/// How many lines are not shown, and how to see them.
fn more(lines: usize, receipt: Option<i64>) -> String {
    let how = receipt.map(|id| format!(": /show {id}")).unwrap_or_default();
    format!("{INDENT}{}\n", styled(FAINT, &format!("+ {}{how}", screen::count(lines as u64, "line"))))
}

/// The last line that a running call wrote or reported.
fn last_line(progress: &Progress) -> Option<String> {
    let text = progress.message.as_ref().or(progress.output.as_ref())?;
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(screen::escape(&clip_chars(line, MAX_MESSAGE_CHARS, 0)))
}

impl RunObserver for TurnView {
    fn on_event(&mut self, event: &LoopEvent) {
        match event {
            LoopEvent::Model(event) => self.model(event),
            LoopEvent::Answered { .. } => {
                self.end_text();
                self.wait_for("waiting for the model");
            }
            LoopEvent::CallStarted(call) => self.start_call(call),
            LoopEvent::CallProgress { call_id, progress } => {
                if let Some(says) = last_line(progress) {
                    self.screen.update(|live| {
                        if let Some(call) = live.calls.iter_mut().find(|call| call.id == *call_id) {
                            call.says = says;
                        }
                    });
                }
            }
            LoopEvent::CallDropped { call_id } => {
                self.end_call(call_id);
            }
            LoopEvent::CallFinished { result, receipt, changes, elapsed, .. } => {
                let call = self.end_call(&result.call_id);
                self.last_call = receipt.or(self.last_call);
                let about = call.as_ref().map(|call| self.about(call)).unwrap_or_default();
                let took = screen::took(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX));
                let mut facts = vec![took];
                facts.extend(receipt.map(|receipt| format!("call {receipt}")));
                if *changes > 0 {
                    facts.push(screen::count(*changes as u64, "change"));
                }
                let head = self.call_line(&about, result, &facts.join(", "));
                let shown = self.show_result(result, *receipt);
                self.print(&format!("{head}{shown}"));
                self.wait_for("waiting for the model");
            }
            LoopEvent::TodosChanged { todos } => self.print(&todos::lines(todos)),
            LoopEvent::Elided { results } => {
                let count = screen::count(*results as u64, "old result");
                self.print(&format!(
                    "{}\n",
                    styled(FAINT, &format!("{count} left out of the context, which is nearly full"))
                ));
            }
            LoopEvent::Summarising => self.wait_for("summarising the conversation"),
            LoopEvent::Compacted { messages } => {
                let count = screen::count(*messages as u64, "message");
                self.print(&format!("{}\n", styled(FAINT, &format!("{count} replaced by a summary"))));
            }
            LoopEvent::Notice { text } => self.note(text),
            LoopEvent::TurnEnded { .. } => self.end_text(),
            _ => {}
        }
    }
}

impl Drop for TurnView {
    fn drop(&mut self) {
        self.end_text();
    }
}
