//! One loop that drains the pipes, keeps the time and waits for the keeper's report.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use haft_tool::{Capture, ToolError};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::capture::Keep;
use super::report::{Ask, Report};
use super::spawn::Running;
use super::sys;

/// As much as a pipe holds at first, and so one read takes.
const READ: usize = 64 * 1024;
/// How long a keeper may take to end its tree before it is ended itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Lets a cancellation in another thread wake the loop.
#[derive(Debug)]
pub(super) struct Bell {
    hear: OwnedFd,
    strike: OwnedFd,
}

impl Bell {
    pub(super) fn new() -> Result<Self, ToolError> {
        let (hear, strike) = sys::pipe().map_err(|error| {
            ToolError::io("no command can be started now: Haft has too many files open", &error.into())
        })?;
        Ok(Self { hear, strike })
    }

    pub(super) fn ring(&self) {
        // It rings once in its life, so the pipe has room.
        let _ = rustix::io::write(&self.strike, &[1]);
    }
}

/// Gets what a command writes, as it comes.
pub(crate) type Hear<'a> = &'a dyn Fn(&[u8]);

/// What the loop saw.
pub(super) struct Watched {
    /// None if the keeper died without a word.
    pub(super) report: Option<Report>,
    pub(super) stdout: Capture,
    pub(super) stderr: Capture,
    /// What the keeper was asked for.
    pub(super) asked: Option<Ask>,
}

/// Drains the command's streams until its keeper has reported that the whole tree is gone. `hear` gets all of it.
pub(super) fn until_the_end(
    running: &mut Running,
    bell: &Bell,
    deadline: Option<Instant>,
    keep_bytes: usize,
    hear: Option<Hear<'_>>,
) -> Watched {
    let mut buffer = Vec::with_capacity(READ);
    let mut stdout = Stream::new(running.stdout.take(), keep_bytes, hear);
    let mut stderr = Stream::new(running.stderr.take(), keep_bytes, hear);
    let mut report = Vec::new();
    let mut asked = None;
    let mut limit = deadline;
    loop {
        let mut fds = Vec::with_capacity(4);
        fds.push(PollFd::new(&running.report, PollFlags::IN));
        if asked.is_none() {
            fds.push(PollFd::new(&bell.hear, PollFlags::IN));
        }
        let streams_from = fds.len();
        fds.extend(stdout.pipe.iter().chain(&stderr.pipe).map(|pipe| PollFd::new(pipe, PollFlags::IN)));

        let timeout =
            limit.and_then(|limit| Timespec::try_from(limit.saturating_duration_since(Instant::now())).ok());
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
        let ready: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);

        if ready[streams_from..].contains(&true) {
            stdout.read(&mut buffer);
            stderr.read(&mut buffer);
        }
        if ready[0] && (hear_report(&running.report, &mut report) || Report::first(&report).is_some()) {
            break;
        }
        let cancelled = asked.is_none() && ready[1];
        let expired = limit.is_some_and(|limit| Instant::now() >= limit);
        if cancelled || (expired && asked.is_none()) {
            let ask = if cancelled { Ask::Cancel } else { Ask::Timeout };
            running.ask(ask);
            asked = Some(ask);
            limit = Instant::now().checked_add(PATIENCE);
        } else if expired {
            running.give_up();
            limit = None;
        }
    }
    for stream in [&mut stdout, &mut stderr] {
        stream.read_rest(&mut buffer);
    }
    Watched {
        report: Report::first(&report),
        stdout: stdout.keep.finish(),
        stderr: stderr.keep.finish(),
        asked,
    }
}

/// Takes what has come; true if nothing more will.
fn hear_report(pipe: &OwnedFd, report: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 256];
    match rustix::io::read(pipe, &mut bytes) {
        Ok(0) => true,
        Ok(length) => {
            report.extend_from_slice(&bytes[..length]);
            false
        }
        Err(Errno::AGAIN | Errno::INTR) => false,
        Err(_) => true,
    }
}

/// One of the command's streams.
struct Stream<'a> {
    /// None once it has ended.
    pipe: Option<OwnedFd>,
    keep: Keep,
    hear: Option<Hear<'a>>,
}

impl<'a> Stream<'a> {
    fn new(pipe: Option<OwnedFd>, keep_bytes: usize, hear: Option<Hear<'a>>) -> Self {
        Self { pipe, keep: Keep::new(keep_bytes), hear }
    }

    /// Takes what one read gives, and returns how much that was.
    fn read(&mut self, buffer: &mut Vec<u8>) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        buffer.clear();
        match rustix::io::read(pipe.as_fd(), rustix::buffer::spare_capacity(buffer)) {
            Ok(length @ 1..) => {
                self.keep.push(buffer);
                if let Some(hear) = self.hear {
                    hear(buffer);
                }
                length
            }
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Ok(0) | Err(_) => {
                self.pipe = None;
                0
            }
        }
    }

    /// Takes what is in the pipe now. Not until its end: a process outside of the tree may hold it open.
    fn read_rest(&mut self, buffer: &mut Vec<u8>) {
        let waiting =
            self.pipe.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok()).unwrap_or_default();
        let mut waiting = usize::try_from(waiting).unwrap_or(usize::MAX);
        while waiting > 0 {
            match self.read(buffer) {
                0 => break,
                length => waiting = waiting.saturating_sub(length),
            }
        }
    }
}
