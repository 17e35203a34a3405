//! A server's standard error: drained, with the end of it kept for error messages.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::super::{lock, portable};
use super::reader::{Readiness, wait_readable};

/// Bytes that are kept.
const MAX_TAIL_BYTES: usize = 8 << 10;
const READ_BUFFER_BYTES: usize = 16 << 10;

/// The end of a standard error stream.
#[derive(Default)]
pub(super) struct StderrTail {
    state: Mutex<TailState>,
    eof: Condvar,
}

#[derive(Default)]
struct TailState {
    bytes: VecDeque<u8>,
    is_eof: bool,
}

impl StderrTail {
    /// Reads until EOF, or until `stop` is closed.
    pub(super) fn drain(&self, stderr: &OwnedFd, stop: &OwnedFd) {
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        while matches!(wait_readable(stderr, stop, None, None), Readiness::Readable) {
            match rustix::io::read(stderr, &mut *buffer) {
                Ok(0) => break,
                Ok(count) => self.keep(buffer.get(..count).unwrap_or_default()),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(_) => break,
            }
        }
        lock(&self.state).is_eof = true;
        self.eof.notify_all();
    }

    fn keep(&self, bytes: &[u8]) {
        let mut state = lock(&self.state);
        let bytes = bytes.get(bytes.len().saturating_sub(MAX_TAIL_BYTES)..).unwrap_or_default();
        let excess = (state.bytes.len() + bytes.len()).saturating_sub(MAX_TAIL_BYTES);
        state.bytes.drain(..excess);
        state.bytes.extend(bytes);
    }

    /// The kept text, cleaned. Waits up to `timeout` for EOF.
    pub(super) fn text(&self, timeout: Duration) -> String {
        let waited = self.eof.wait_timeout_while(lock(&self.state), timeout, |state| !state.is_eof);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let text = String::from_utf8_lossy(state.bytes.make_contiguous()).into_owned();
        portable::clean(&text, MAX_TAIL_BYTES).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn flood_is_drained_and_only_its_end_is_kept() {
        let (reading, writing) = rustix::pipe::pipe().unwrap();
        let (stop, _keep_running) = rustix::pipe::pipe().unwrap();
        let tail = Arc::new(StderrTail::default());
        let shared = Arc::clone(&tail);
        let drainer = std::thread::spawn(move || shared.drain(&reading, &stop));
        let mut stderr = std::fs::File::from(writing);
        stderr.write_all(&vec![b'x'; 10 << 20]).unwrap();
        stderr.write_all(b"\x1b[31mlast \xff words\x1b[0m\n").unwrap();
        drop(stderr);
        drainer.join().unwrap();
        let text = tail.text(Duration::ZERO);
        assert!(text.ends_with("xlast \u{fffd} words") && text.len() <= MAX_TAIL_BYTES + 3, "{}", text.len());
    }

    #[test]
    fn drain_ends_when_stopped_while_the_process_runs() {
        let (reading, _writing) = rustix::pipe::pipe().unwrap();
        let (stop, keep_running) = rustix::pipe::pipe().unwrap();
        let drainer = std::thread::spawn(move || StderrTail::default().drain(&reading, &stop));
        drop(keep_running);
        drainer.join().unwrap();
    }
}
