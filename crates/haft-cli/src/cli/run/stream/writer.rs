//! What the program that drives the run reads: one JSON object per line, each within the limit.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use haft_compat::stream::{MAX_LINE_BYTES, fit_line};
use haft_tool::{Cancel, ToolError, Value, lock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::super::args::RunOutputFormat;

/// A pipe that can be written takes this much without a wait: the smallest `PIPE_BUF` of the supported systems.
const CHUNK_BYTES: usize = 512;
/// How long the end of the run waits for a reader that does not read.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a write that waits looks whether the run ends.
const LOOK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Writes messages to standard output. Several threads may use it; no line is written into another.
pub(super) struct StreamWriter {
    form: WrittenForm,
    lock: Mutex<()>,
    /// Fires when standard output cannot be written: the reader is gone.
    lost: Cancel,
    is_open: AtomicBool,
    /// Since when the run ends.
    ends_since: OnceLock<Instant>,
}

enum WrittenForm {
    /// Each message as a line.
    Lines,
    /// Only the result.
    Result,
    /// All messages as one array, at the end.
    Array(Mutex<Vec<Value>>),
}

impl StreamWriter {
    pub(super) fn new(format: RunOutputFormat, verbose: bool) -> Self {
        let form = match format {
            RunOutputFormat::Json if verbose => WrittenForm::Array(Mutex::default()),
            RunOutputFormat::Json => WrittenForm::Result,
            RunOutputFormat::Text | RunOutputFormat::StreamJson => WrittenForm::Lines,
        };
        Self {
            form,
            lock: Mutex::default(),
            lost: Cancel::new(),
            is_open: AtomicBool::new(true),
            ends_since: OnceLock::new(),
        }
    }

    /// Fires when the reader is gone.
    pub(super) fn lost(&self) -> &Cancel {
        &self.lost
    }

    /// The run ends: a reader that does not read is waited for only a little longer.
    pub(super) fn end(&self) {
        self.ends_since.get_or_init(Instant::now);
    }

    /// Waits until the reader of a pipe is gone. A program that was killed has closed its stream, too, and would leave a turn
    /// running that writes nothing.
    pub(super) fn wait_for_reader(&self) {
        let stdout = std::io::stdout();
        loop {
            let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
            match poll(&mut watched, None) {
                Err(Errno::INTR) => {}
                Ok(_)
                    if watched.iter().any(|it| it.revents().intersects(PollFlags::ERR | PollFlags::HUP)) =>
                {
                    return self.lost.cancel();
                }
                // Standard output is something else that cannot be watched; a failed write is noticed.
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Writes a message, cut if it is too long.
    pub(super) fn send(&self, message: Value) {
        match &self.form {
            WrittenForm::Lines => self.write(&fit_line(&message)),
            WrittenForm::Result if message["type"] == "result" => self.write(&fit_line(&message)),
            WrittenForm::Result => {}
            WrittenForm::Array(messages) => lock(messages).push(message),
        }
    }

    /// Writes a message whose content must not be cut; an error if it is too long or the reader is gone.
    pub(super) fn send_whole(&self, message: &Value) -> Result<(), ToolError> {
        let line = format!("{message}\n");
        if line.len() > MAX_LINE_BYTES {
            let (bytes, limit) = (line.len(), MAX_LINE_BYTES);
            return Err(ToolError::failed(format!(
                "the message has {bytes} bytes, and the program that drives Haft reads at most {limit}"
            )));
        }
        self.write(&line);
        if self.lost.is_cancelled() { Err(ToolError::failed("no program reads the output")) } else { Ok(()) }
    }

    /// Writes what was kept for the end.
    pub(super) fn finish(&self) {
        if let WrittenForm::Array(messages) = &self.form {
            let messages = std::mem::take(&mut *lock(messages));
            self.write(&format!("{}\n", Value::Array(messages)));
        }
    }

    fn write(&self, line: &str) {
        let line_lock = lock(&self.lock);
        if !self.is_open.load(Ordering::Relaxed) {
            return;
        }
        let mut out = std::io::stdout().lock();
        for chunk in line.as_bytes().chunks(CHUNK_BYTES) {
            if !self.wait_for_room(&out) || out.write_all(chunk).and_then(|()| out.flush()).is_err() {
                self.is_open.store(false, Ordering::Relaxed);
                drop((out, line_lock));
                return self.lost.cancel();
            }
        }
    }

    /// Waits until standard output takes a chunk; false if it does not and the run ends.
    fn wait_for_room(&self, out: &std::io::StdoutLock<'_>) -> bool {
        loop {
            let mut watched = [PollFd::new(out, PollFlags::OUT)];
            match poll(&mut watched, Some(&LOOK_INTERVAL)) {
                Ok(0) | Err(Errno::INTR) => {
                    if self.ends_since.get().is_some_and(|since| since.elapsed() > END_TIMEOUT) {
                        return false;
                    }
                }
                // What cannot be watched is written at once.
                Ok(_) | Err(_) => return true,
            }
        }
    }
}
