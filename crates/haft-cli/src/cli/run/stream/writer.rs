//! What the program that drives the run reads: one JSON object per line, each within the limit.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use haft_compat::stream::{MAX_LINE_BYTES, fit_line};
use haft_tool::{Cancel, ToolError, Value, lock};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::super::args::RunOutputFormat;

/// Writes messages to standard output. Several threads may use it; no line is written into another.
pub(super) struct StreamWriter {
    form: WrittenForm,
    lock: Mutex<()>,
    /// Fires when standard output cannot be written: the reader is gone.
    lost: Cancel,
    is_open: AtomicBool,
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
        Self { form, lock: Mutex::default(), lost: Cancel::new(), is_open: AtomicBool::new(true) }
    }

    /// Fires when the reader is gone.
    pub(super) fn lost(&self) -> &Cancel {
        &self.lost
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
        let _line = lock(&self.lock);
        if !self.is_open.load(Ordering::Relaxed) {
            return;
        }
        let mut out = std::io::stdout().lock();
        if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
            self.is_open.store(false, Ordering::Relaxed);
            drop(out);
            self.lost.cancel();
        }
    }
}
