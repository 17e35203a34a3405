//! The status line of a running call: elapsed time, progress and its latest message.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use haft_runtime::Watch;
use haft_tool::{Execution, Progress, clip_chars, lock};

use super::screen;
use super::terminal::OpenQuestion;

/// How often the line is repainted.
const REFRESH_INTERVAL: Duration = Duration::from_millis(250);
/// A call that takes less shows no line.
const SHOW_AFTER: Duration = Duration::from_secs(1);
/// How much of a message is shown.
const MAX_MESSAGE_CHARS: usize = 60;

/// What the line shows.
#[derive(Default)]
struct CallStatus {
    since: Option<Instant>,
    percent: Option<u8>,
    says: String,
}

impl CallStatus {
    fn take(&mut self, progress: &Progress) {
        if let Some(fraction) = progress.fraction {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "clamped to 0 to 100"
            )]
            let percent = (fraction.clamp(0.0, 1.0) * 100.0) as u8;
            self.percent = Some(percent);
        }
        let last = |text: &String| {
            let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
            Some(clip_chars(line, MAX_MESSAGE_CHARS, 0).into_owned())
        };
        if let Some(says) = progress.message.as_ref().or(progress.output.as_ref()).and_then(last) {
            self.says = says;
        }
    }
}

/// A line on standard error that shows a running call; removed when dropped.
pub(super) struct StatusLine {
    status: Arc<Mutex<CallStatus>>,
    stop: Option<(Sender<()>, JoinHandle<()>)>,
}

impl StatusLine {
    /// Prepares the status line if standard error is a terminal on which the cursor can be moved.
    pub(super) fn on(what: &str) -> Self {
        let mut status_line = Self::silent();
        if !screen::moves_cursor() {
            return status_line;
        }
        let (stop, stopped) = channel::<()>();
        let (what, status) = (screen::sanitize(what).into_owned(), Arc::clone(&status_line.status));
        let painter = std::thread::spawn(move || {
            let mut shown = false;
            while stopped.recv_timeout(REFRESH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if OpenQuestion::exists() {
                    continue;
                }
                if let Some(line) = line(&what, &lock(&status)) {
                    shown = true;
                    // The width is asked for each time, because the window may have changed.
                    paint(&format!("\r{}\x1b[K", fitting(&line, screen::width())));
                }
            }
            if shown {
                paint("\r\x1b[K");
            }
        });
        status_line.stop = Some((stop, painter));
        status_line
    }

    /// The same for work that starts now and reports no progress.
    pub(super) fn started(what: &str) -> Self {
        let status_line = Self::on(what);
        lock(&status_line.status).since = Some(Instant::now());
        status_line
    }

    /// Shows nothing.
    pub(super) fn silent() -> Self {
        Self { status: Arc::default(), stop: None }
    }

    /// Receives the progress of the call.
    pub(super) fn watch(&self) -> Option<Watch> {
        self.stop.as_ref()?;
        let status = Arc::clone(&self.status);
        Some(Arc::new(move |execution| {
            let mut status = lock(&status);
            match execution {
                Execution::Running { progress, .. } => {
                    status.since.get_or_insert_with(Instant::now);
                    if let Some(progress) = progress {
                        status.take(progress);
                    }
                }
                // A question to the user takes precedence over the status line.
                _ => *status = CallStatus::default(),
            }
        }))
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        if let Some((stop, painter)) = self.stop.take() {
            drop(stop);
            // The line must be gone before the result is printed.
            let _ = painter.join();
        }
    }
}

fn line(what: &str, status: &CallStatus) -> Option<String> {
    let running = status.since?.elapsed();
    (running >= SHOW_AFTER).then(|| {
        let percent = status.percent.map(|percent| format!(" {percent}%")).unwrap_or_default();
        let says = if status.says.is_empty() {
            String::new()
        } else {
            format!(": {}", screen::escape(&status.says))
        };
        format!("{what} … {}s{percent} (Ctrl-C stops it){says}", running.as_secs())
    })
}

/// As much of the line as fits, because a line that wraps cannot be erased. Characters outside ASCII may be two columns wide.
fn fitting(line: &str, columns: Option<usize>) -> &str {
    let Some(columns) = columns else { return line };
    let mut used = 0;
    let end = line.char_indices().find(|(_, c)| {
        used += if c.is_ascii() { 1 } else { 2 };
        // The last column stays empty: some terminals wrap as soon as it is written.
        used >= columns
    });
    end.map_or(line, |(at, _)| &line[..at])
}

/// Removes the line, or the lines of an interactive session, before a question is asked, if there can be any.
pub(super) fn clear() {
    if screen::moves_cursor() {
        paint("\r\x1b[J");
    }
}

/// Writes text of ours, with the sequences that move the cursor, which are no colours.
fn paint(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn line_never_reaches_the_last_column() {
        assert_eq!(fitting("Bash: abcdef", Some(8)), "Bash: a");
        assert_eq!(fitting("Bash: ab", Some(80)), "Bash: ab");
        assert_eq!(fitting("日本語", Some(5)), "日本");
        assert_eq!(fitting("日本語", Some(4)), "日");
        assert_eq!(fitting("abc", Some(1)), "");
        assert_eq!(fitting("abc", None), "abc");
    }
}
