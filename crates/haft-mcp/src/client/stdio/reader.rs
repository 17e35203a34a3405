//! The thread that reads a server's standard output.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::incoming::ServerOutput;
use crate::wire::LineSplitter;

/// How long output is still read after the process has exited, if another process keeps writing to the same pipe.
const MAX_READ_AFTER_EXIT: Duration = Duration::from_millis(500);
/// How much of an overlong line is skipped before the server is given up, if that is more than
/// `MAX_SKIPPED_MESSAGES` times the longest accepted message.
const MIN_SKIPPED_BYTES: usize = 256 << 20;
const MAX_SKIPPED_MESSAGES: usize = 16;

/// What a wait on a descriptor ended with.
pub(super) enum Readiness {
    /// There is data, or EOF.
    Readable,
    /// The process has exited and there is nothing to read.
    Exited,
    /// The timeout has passed.
    TimedOut,
    /// The reader was told to stop.
    Stopped,
}

/// Waits until `from` is readable, `stop` is closed or `exit` becomes readable.
pub(super) fn wait_readable(
    from: &OwnedFd,
    stop: &OwnedFd,
    exit: Option<BorrowedFd<'_>>,
    timeout: Option<Duration>,
) -> Readiness {
    let timeout: Option<Timespec> = timeout.and_then(|timeout| timeout.try_into().ok());
    let mut all = vec![PollFd::new(from, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
    all.extend(exit.map(|exit| PollFd::from_borrowed_fd(exit, PollFlags::IN)));
    loop {
        match poll(&mut all, timeout.as_ref()) {
            Err(Errno::INTR) => {}
            Err(_) => return Readiness::Stopped,
            Ok(0) => return Readiness::TimedOut,
            Ok(_) => break,
        }
    }
    let is_ready = |index: usize| all.get(index).is_some_and(|fd| !fd.revents().is_empty());
    match (is_ready(1), is_ready(0)) {
        (true, _) => Readiness::Stopped,
        (_, true) => Readiness::Readable,
        _ => Readiness::Exited,
    }
}

/// Reads lines until EOF, until the process has exited, or until `stop` is closed. Then no request waits any more.
pub(super) fn read_output(server: &Arc<ServerOutput>, output: &OwnedFd, stop: &OwnedFd) {
    let max_message = server.limits.max_message_bytes;
    let max_skipped = MIN_SKIPPED_BYTES.max(max_message.saturating_mul(MAX_SKIPPED_MESSAGES));
    let mut lines = LineSplitter::new(max_message);
    let mut bytes_since_line = 0;
    let mut exited_at: Option<Instant> = None;
    loop {
        while let Some(line) = lines.take() {
            server.receive(&line);
            bytes_since_line = 0;
        }
        if bytes_since_line > max_skipped {
            return server.close_overlong();
        }
        if exited_at.is_some_and(|at| at.elapsed() >= MAX_READ_AFTER_EXIT) {
            break;
        }
        // What the process wrote before it exited is in the pipe already.
        let readiness = match exited_at {
            None => wait_readable(output, stop, server.process.exit_fd(), None),
            Some(_) => wait_readable(output, stop, None, Some(Duration::ZERO)),
        };
        match readiness {
            Readiness::Stopped => return,
            Readiness::TimedOut => break,
            Readiness::Exited => exited_at = Some(Instant::now()),
            Readiness::Readable => match lines.read_from(&mut OutputReader(output)) {
                Ok(0) | Err(_) => break,
                Ok(count) => bytes_since_line += count,
            },
        }
    }
    if let Some(line) = lines.rest() {
        server.receive_last(&line);
    }
    server.close_ended();
}

struct OutputReader<'a>(&'a OwnedFd);

impl std::io::Read for OutputReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match rustix::io::read(self.0, &mut *buffer) {
                Err(Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }
}
