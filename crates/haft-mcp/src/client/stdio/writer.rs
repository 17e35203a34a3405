//! Writes messages to a server's standard input: whole lines, one at a time, each within its deadline.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::super::timed_mutex::{POLL_INTERVAL, Remaining, TimedMutex};
use super::super::{ClientError, lock};

/// The writing end of a server's standard input.
pub(super) struct LineWriter {
    /// `None` after close.
    input: Mutex<Option<Arc<OwnedFd>>>,
    /// Held by the thread that writes.
    writing: TimedMutex,
    /// The rest of a line whose deadline passed while it was written; the next line comes after it.
    unwritten: Mutex<Vec<u8>>,
}

impl LineWriter {
    pub(super) fn new(input: OwnedFd) -> Result<Self, ClientError> {
        rustix::io::ioctl_fionbio(&input, true).map_err(|error| {
            ClientError::unreachable(format!("cannot make the server's input non-blocking: {error}"))
        })?;
        let (input, unwritten) = (Mutex::new(Some(Arc::new(input))), Mutex::default());
        Ok(Self { input, writing: TimedMutex::default(), unwritten })
    }

    /// Writes one line.
    pub(super) fn write(&self, line: &[u8], remaining: Remaining<'_>) -> Result<(), ClientError> {
        let _guard = self.writing.lock(remaining)?;
        let input = self.input()?;
        let mut unwritten = lock(&self.unwritten);
        if let Err((count, error)) = self.write_all(&input, &unwritten, remaining) {
            unwritten.drain(..count);
            return Err(error);
        }
        unwritten.clear();
        self.write_all(&input, line, remaining).map_err(|(count, error)| {
            if count > 0 {
                unwritten.extend_from_slice(line.get(count..).unwrap_or_default());
            }
            error
        })
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
                    let timeout = self.input().and_then(|_| remaining()).map_err(|error| (count, error))?;
                    let timeout: Option<Timespec> = timeout.min(POLL_INTERVAL).try_into().ok();
                    // The next write reports what is wrong with the descriptor.
                    let _ = poll(&mut [PollFd::new(input, PollFlags::OUT)], timeout.as_ref());
                }
                Err(error) => {
                    let why = format!("the server no longer reads its input: {error}");
                    return Err((count, ClientError::disconnected(why)));
                }
            }
        }
        Ok(())
    }

    fn input(&self) -> Result<Arc<OwnedFd>, ClientError> {
        lock(&self.input).clone().ok_or_else(ClientError::closed)
    }

    /// Closes the server's standard input.
    pub(super) fn close(&self) {
        *lock(&self.input) = None;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::time::Duration;

    use super::*;
    use crate::client::McpError;

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
