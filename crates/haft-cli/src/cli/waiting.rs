//! The line that shows a running call: how long, how far, and what it says.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use haft_runtime::Watch;
use haft_tool::{Execution, Progress, clip_chars, lock};

use super::screen;

/// How often the line is looked at.
const TICK: Duration = Duration::from_millis(250);
/// A call that takes less shows no line.
const QUIET: Duration = Duration::from_secs(1);
/// As much of what a call says fits beside the rest.
const MOST_CHARS: usize = 60;

/// Where the call stands, as far as the line shows it.
#[derive(Default)]
struct Seen {
    since: Option<Instant>,
    percent: Option<u8>,
    says: String,
}

impl Seen {
    fn take(&mut self, progress: &Progress) {
        if let Some(fraction) = progress.fraction {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it lies between 0 and 100"
            )]
            let percent = (fraction.clamp(0.0, 1.0) * 100.0) as u8;
            self.percent = Some(percent);
        }
        let last = |text: &String| {
            let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
            Some(clip_chars(line, MOST_CHARS, 0).into_owned())
        };
        if let Some(says) = progress.message.as_ref().or(progress.output.as_ref()).and_then(last) {
            self.says = says;
        }
    }
}

/// A line on the screen that shows a running call; gone when dropped.
pub(super) struct Waiting {
    seen: Arc<Mutex<Seen>>,
    stop: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Waiting {
    /// Prepares the status line if standard error is a terminal.
    pub(super) fn on(what: &str) -> Self {
        let mut waiting = Self::silent();
        if !std::io::stderr().is_terminal() {
            return waiting;
        }
        let (stop, stopped) = channel::<()>();
        let (what, seen) = (screen::harmless(what).into_owned(), Arc::clone(&waiting.seen));
        let painter = std::thread::spawn(move || {
            let mut shown = false;
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if let Some(line) = line(&what, &locked(&seen)) {
                    shown = true;
                    paint(&format!("\r{line}\x1b[K"));
                }
            }
            if shown {
                paint("\r\x1b[K");
            }
        });
        waiting.stop = Some((stop, painter));
        waiting
    }

    /// No line at all.
    pub(super) fn silent() -> Self {
        Self { seen: Arc::default(), stop: None }
    }

    /// Hears how the call gets on.
    pub(super) fn watch(&self) -> Option<Watch> {
        self.stop.as_ref()?;
        let seen = Arc::clone(&self.seen);
        Some(Arc::new(move |execution| {
            let mut seen = locked(&seen);
            match execution {
                Execution::Running { progress, .. } => {
                    seen.since.get_or_insert_with(Instant::now);
                    if let Some(progress) = progress {
                        seen.take(progress);
                    }
                }
                // A question to the user takes precedence over the status line.
                _ => *seen = Seen::default(),
            }
        }))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((stop, painter)) = self.stop.take() {
            drop(stop);
            // The result must not come before the line is gone.
            let _ = painter.join();
        }
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    lock(seen)
}

fn line(what: &str, seen: &Seen) -> Option<String> {
    let running = seen.since?.elapsed();
    (running >= QUIET).then(|| {
        let percent = seen.percent.map(|percent| format!(" {percent}%")).unwrap_or_default();
        let says =
            if seen.says.is_empty() { String::new() } else { format!(": {}", screen::harmless(&seen.says)) };
        format!("{what} … {}s{percent} (Ctrl-C stops it){says}", running.as_secs())
    })
}

fn paint(text: &str) {
    let mut err = anstream::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}
