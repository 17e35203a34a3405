//! Writes messages to a server's standard input: whole lines, one at a time, each within its deadline.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::super::{ClientError, McpError, lock};

/// How often a blocked writer checks its deadline and whether the connection was closed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The writing end of a server's standard input.
pub(super) struct LineWriter {
    state: Mutex<WriterState>,
    unlocked: Condvar,
}

struct WriterState {
    /// `None` after close.
    input: Option<Arc<OwnedFd>>,
    is_locked: bool,
    /// The rest of a line whose deadline passed while it was written; the next writer has to finish it.
    unwritten: Vec<u8>,
}

/// Returns the time that is left, or the error if there is none.
type Remaining<'a> = &'a dyn Fn() -> Result<Duration, ClientError>;

impl LineWriter {
    pub(super) fn new(input: OwnedFd) -> Result<Self, ClientError> {
        rustix::io::ioctl_fionbio(&input, true).map_err(|error| {
            ClientError::unreachable(format!("cannot make the server's input non-blocking: {error}"))
        })?;
        let state = WriterState { input: Some(Arc::new(input)), is_locked: false, unwritten: Vec::new() };
        Ok(Self { state: Mutex::new(state), unlocked: Condvar::new() })
    }

    /// Writes one line.
    pub(super) fn write(&self, line: &[u8], remaining: Remaining<'_>) -> Result<(), ClientError> {
        let mut guard = self.lock_input(remaining)?;
        let unwritten = std::mem::take(&mut guard.unwritten);
        if let Err((count, error)) = self.write_all(&guard.input, &unwritten, remaining) {
            guard.unwritten = unwritten.get(count..).unwrap_or_default().to_vec();
            return Err(error);
        }
        self.write_all(&guard.input, line, remaining).map_err(|(count, error)| {
            if count > 0 {
                guard.unwritten = line.get(count..).unwrap_or_default().to_vec();
            }
            error
        })
    }

    /// Waits until no other thread writes.
    fn lock_input(&self, remaining: Remaining<'_>) -> Result<InputGuard<'_>, ClientError> {
        let mut state = lock(&self.state);
        loop {
            let Some(input) = state.input.clone() else { return Err(closed()) };
            if !state.is_locked {
                state.is_locked = true;
                let unwritten = std::mem::take(&mut state.unwritten);
                return Ok(InputGuard { writer: self, input, unwritten });
            }
            let timeout = remaining()?.min(POLL_INTERVAL);
            state = self.unlocked.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes `bytes`. An error comes with the number of bytes that were written before it.
    fn write_all(
        &self,
        input: &OwnedFd,
        bytes: &[u8],
        remaining: Remaining<'_>,
    ) -> Result<(), (usize, ClientError)> {
        let mut count = 0;
        while let Some(rest) = bytes.get(count..).filter(|rest| !rest.is_empty()) {
            match rustix::io::write(input, rest) {
                Ok(written) => count += written,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if lock(&self.state).input.is_none() {
                        return Err((count, closed()));
                    }
                    let timeout = remaining().map_err(|error| (count, error))?.min(POLL_INTERVAL);
                    let timeout: Option<Timespec> = timeout.try_into().ok();
                    // The next write reports what is wrong with the descriptor.
                    let _ = poll(&mut [PollFd::new(input, PollFlags::OUT)], timeout.as_ref());
                }
                Err(error) => {
                    let why = format!("the server no longer reads its input: {error}");
                    return Err((count, ClientError::new(McpError::Disconnected, why)));
                }
            }
        }
        Ok(())
    }

    /// Closes the server's standard input.
    pub(super) fn close(&self) {
        lock(&self.state).input = None;
        self.unlocked.notify_all();
    }
}

fn closed() -> ClientError {
    ClientError::new(McpError::Closed, "the connection to the server was closed")
}

/// The right to write; dropping it lets the next thread write.
struct InputGuard<'a> {
    writer: &'a LineWriter,
    input: Arc<OwnedFd>,
    unwritten: Vec<u8>,
}

impl Drop for InputGuard<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.writer.state);
        state.is_locked = false;
        state.unwritten = std::mem::take(&mut self.unwritten);
        self.writer.unlocked.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn no_time() -> Result<Duration, ClientError> {
        Err(ClientError::timed_out("no time"))
    }

    #[expect(clippy::unnecessary_wraps, reason = "the type that write takes")]
    fn enough_time() -> Result<Duration, ClientError> {
        Ok(Duration::from_mins(1))
    }

    #[test]
    fn truncated_line_is_finished_before_the_next_line() {
        let (reading, writing) = rustix::pipe::pipe().unwrap();
        let writer = LineWriter::new(writing).unwrap();
        let long = [vec![b'a'; 1 << 20], vec![b'\n']].concat();
        assert_eq!(writer.write(&long, &no_time).unwrap_err().kind, McpError::TimedOut);
        assert_eq!(writer.write(b"never\n", &no_time).unwrap_err().kind, McpError::TimedOut);
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            std::fs::File::from(reading).read_to_end(&mut all).unwrap();
            all
        });
        writer.write(b"next\n", &enough_time).unwrap();
        writer.close();
        assert_eq!(writer.write(b"late\n", &enough_time).unwrap_err().kind, McpError::Closed);
        drop(writer);
        assert!(reader.join().unwrap() == [long.as_slice(), b"next\n"].concat());
    }

    #[test]
    fn write_fails_when_the_reading_end_is_closed() {
        let (reading, writing) = rustix::pipe::pipe().unwrap();
        let writer = LineWriter::new(writing).unwrap();
        drop(reading);
        assert_eq!(writer.write(b"line\n", &enough_time).unwrap_err().kind, McpError::Disconnected);
    }

    #[test]
    fn lines_of_several_threads_do_not_mix() {
        let (reading, writing) = rustix::pipe::pipe().unwrap();
        let writer = LineWriter::new(writing).unwrap();
        let reader = std::thread::spawn(move || {
            let mut all = String::new();
            std::fs::File::from(reading).read_to_string(&mut all).unwrap();
            all
        });
        std::thread::scope(|scope| {
            for letter in ["a", "b", "c", "d"] {
                let (line, writer) = (letter.repeat(100_000) + "\n", &writer);
                scope
                    .spawn(move || (0..5).for_each(|_| writer.write(line.as_bytes(), &enough_time).unwrap()));
            }
        });
        drop(writer);
        let all = reader.join().unwrap();
        assert_eq!(all.lines().count(), 20);
        let is_uniform = |line: &str| line.bytes().all(|byte| byte == line.as_bytes()[0]);
        assert!(all.lines().all(|line| line.len() == 100_000 && is_uniform(line)));
    }
}
