//! Reads what a process writes, line after line, until one of them ends.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::Shared;
use crate::wire::Lines;

/// How long a process that has ended may still be heard, if others write where it wrote.
const ECHO: Duration = Duration::from_millis(500);
/// How much is read of a line that is too long before its writer is given up; shorter ones are skipped.
const MOST_SKIPPED: usize = 256 << 20;

/// What came first.
pub(super) enum Came {
    /// Something to read, or the end of it.
    Something,
    /// The end of the process, and nothing to read.
    Death,
    /// Nothing, for as long as was said.
    Nothing,
    /// The end of the wish to read.
    Stop,
}

/// Waits for something to read, for a death or for the end of the wish to read.
pub(super) fn wait_for(
    from: &OwnedFd,
    stop: &OwnedFd,
    death: Option<BorrowedFd<'_>>,
    limit: Option<Duration>,
) -> Came {
    let limit = limit.and_then(|limit| limit.try_into().ok());
    let mut all = vec![PollFd::new(from, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
    if let Some(death) = death {
        all.push(PollFd::from_borrowed_fd(death, PollFlags::IN));
    }
    loop {
        match poll(&mut all, limit.as_ref()) {
            Err(Errno::INTR) => {}
            Err(_) => return Came::Stop,
            Ok(0) => return Came::Nothing,
            Ok(_) => break,
        }
    }
    let happened = |at: usize| all.get(at).is_some_and(|one| !one.revents().is_empty());
    match (happened(1), happened(0)) {
        (true, _) => Came::Stop,
        (_, true) => Came::Something,
        _ => Came::Death,
    }
}

/// Reads until the process has ended, said its last or said too much, or nobody wants more.
pub(super) fn read(shared: &Arc<Shared>, output: &OwnedFd, stop: &OwnedFd) {
    let cap = shared.limits.message_bytes;
    let mut lines = Lines::new(cap);
    let mut since_a_line = 0_usize;
    let mut died: Option<Instant> = None;
    loop {
        while let Some(line) = lines.take() {
            shared.line(&line);
            since_a_line = 0;
        }
        let came = match died {
            None => wait_for(output, stop, shared.process.signal(), None),
            Some(died) => wait_for(output, stop, None, Some(ECHO.saturating_sub(died.elapsed()))),
        };
        match came {
            Came::Stop => return,
            // What it had written before is there to be read now, or never.
            Came::Death => {
                died = Some(Instant::now());
                if matches!(wait_for(output, stop, None, Some(Duration::ZERO)), Came::Nothing) {
                    break;
                }
            }
            Came::Nothing => break,
            Came::Something => match lines.read_from(&mut Descriptor(output.as_fd())) {
                Ok(0) | Err(_) => break,
                Ok(count) => since_a_line += count,
            },
        }
        if died.is_some_and(|died| died.elapsed() >= ECHO) {
            break;
        }
        if since_a_line > MOST_SKIPPED.max(cap.saturating_mul(16)) {
            return shared.given_up();
        }
    }
    if let Some(line) = lines.rest() {
        shared.last_line(&line);
    }
    shared.ended();
}

struct Descriptor<'a>(BorrowedFd<'a>);

impl std::io::Read for Descriptor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match rustix::io::read(self.0, &mut *buffer) {
                Err(Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }
}
