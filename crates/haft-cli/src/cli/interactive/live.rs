//! The lines below the text that change while a turn runs: calls under way, and the row of text that is not complete.
//!
//! The cursor stays at the beginning of these lines, so that they can be erased and written again after any change of the window.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use haft_tool::lock;

use super::super::screen::{self, FAINT, NAME, styled};
use super::super::terminal::OpenQuestion;
use super::super::view::{clip_columns, width};

/// How often the lines are written again.
const REFRESH_INTERVAL: Duration = Duration::from_millis(100);
/// Columns where the width of the terminal is not known.
const DEFAULT_COLUMNS: usize = 80;
/// The least columns for what a call says.
const MIN_MESSAGE_COLUMNS: usize = 10;

/// A call under way. The texts are without control characters.
pub(super) struct LiveCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) about: String,
    pub(super) since: Instant,
    /// The last line of its output, or its latest message.
    pub(super) says: String,
}

/// What the changing lines show.
#[derive(Default)]
pub(super) struct LiveContent {
    /// The row of text that is not complete, with styles.
    pub(super) row: String,
    pub(super) calls: VecDeque<LiveCall>,
    /// What is waited for if no call runs, and since when.
    pub(super) waiting: Option<(String, Instant)>,
}

struct LiveState {
    content: LiveContent,
    /// Text that came while a question was open.
    held_back: String,
    is_shown: bool,
}

/// The screen of a turn: text that stays, and lines that change below it.
pub(super) struct LiveScreen {
    state: Arc<Mutex<LiveState>>,
    painter: Option<(Sender<()>, JoinHandle<()>)>,
}

impl LiveScreen {
    /// Lines change only on a terminal on which the cursor can be moved.
    pub(super) fn new() -> Self {
        let state = LiveState { content: LiveContent::default(), held_back: String::new(), is_shown: false };
        let state = Arc::new(Mutex::new(state));
        let (stop, stopped) = channel::<()>();
        let painted = Arc::clone(&state);
        let painter = std::thread::spawn(move || {
            while stopped.recv_timeout(REFRESH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                lock(&painted).write("");
            }
        });
        Self { state, painter: Some((stop, painter)) }
    }

    /// Writes text that stays: whole lines, with our styles.
    pub(super) fn print(&self, text: &str) {
        if !text.is_empty() {
            lock(&self.state).write(text);
        }
    }

    /// Changes what the changing lines show.
    pub(super) fn update(&self, change: impl FnOnce(&mut LiveContent)) {
        change(&mut lock(&self.state).content);
    }
}

impl Drop for LiveScreen {
    fn drop(&mut self) {
        if let Some((stop, painter)) = self.painter.take() {
            drop(stop);
            let _ = painter.join();
        }
        let mut state = lock(&self.state);
        state.content = LiveContent::default();
        state.write("");
    }
}

impl LiveState {
    /// Writes text that stays above the changing lines, and those again. While a question is open nothing is written.
    fn write(&mut self, text: &str) {
        let mut terminal = std::io::stderr().lock();
        self.held_back.push_str(text);
        // A question is counted before it clears the lines, for which it needs the same lock.
        if OpenQuestion::exists() {
            self.is_shown = false;
            return;
        }
        let mut all = String::new();
        let moves = screen::moves_cursor();
        if self.is_shown && moves {
            all.push_str("\r\x1b[J");
        }
        let text = std::mem::take(&mut self.held_back);
        let lines = if moves { self.content.lines() } else { Vec::new() };
        if text.is_empty() && lines.is_empty() && !self.is_shown {
            return;
        }
        all.push_str(&shown(&text));
        for (at, line) in lines.iter().enumerate() {
            let end = if at == 0 { "" } else { "\r\n" };
            all.push_str(&format!("{end}{}", shown(line)));
        }
        if lines.len() > 1 {
            all.push_str(&format!("\x1b[{}A", lines.len() - 1));
        }
        if !lines.is_empty() {
            all.push('\r');
        }
        self.is_shown = !lines.is_empty();
        let _ = terminal.write_all(all.as_bytes()).and_then(|()| terminal.flush());
    }
}

/// Text of ours as the terminal gets it: without foreign control characters, and without styles where there are no colours.
fn shown(text: &str) -> String {
    let text = screen::visible(text);
    if screen::has_colors() { text.into_owned() } else { anstream::adapter::strip_str(&text).to_string() }
}

/// The columns of the terminal.
pub(super) fn columns() -> usize {
    screen::width().unwrap_or(DEFAULT_COLUMNS)
}

impl LiveContent {
    /// The lines, each shorter than the terminal is wide.
    fn lines(&self) -> Vec<String> {
        // The last column stays empty: some terminals wrap as soon as it is written.
        let columns = columns().saturating_sub(1);
        let rows =
            rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_row));
        let mut lines = Vec::new();
        if !self.row.is_empty() {
            // The row was made for the width at the beginning of its line, which may have changed.
            let plain = anstream::adapter::strip_str(&self.row).to_string();
            let fits = width(&plain) <= columns;
            lines.push(if fits { self.row.clone() } else { clip_columns(&plain, columns).into_owned() });
        }
        lines.extend(self.calls.iter().map(|call| call.line(columns)));
        if self.calls.is_empty()
            && let Some((what, since)) = &self.waiting
        {
            let line = format!("{what} … {}s (Ctrl-C stops)", since.elapsed().as_secs());
            lines.push(styled(FAINT, &clip_columns(&line, columns)));
        }
        lines.truncate(rows.saturating_sub(1).max(1));
        lines
    }
}

impl LiveCall {
    fn line(&self, columns: usize) -> String {
        let seconds = self.since.elapsed().as_secs();
        let head = format!("{} {}", self.name, self.about);
        let facts = format!("  {seconds}s");
        let head = clip_columns(&head, columns.saturating_sub(facts.len() + 1)).into_owned();
        let used = width(&head) + facts.len();
        let room = columns.saturating_sub(used + 2);
        let says = if self.says.is_empty() || room < MIN_MESSAGE_COLUMNS {
            String::new()
        } else {
            format!("  {}", clip_columns(&self.says, room))
        };
        let head = match head.split_once(' ') {
            Some((name, rest)) => format!("{} {rest}", styled(NAME, name)),
            None => styled(NAME, &head),
        };
        format!("{head}{}", styled(FAINT, &format!("{facts}{says}")))
    }
}
