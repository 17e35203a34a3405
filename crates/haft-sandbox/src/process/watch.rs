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
use crate::stops;

/// As much as a pipe holds at first, and so one read takes.
const READ: usize = 64 * 1024;
/// As much as one read takes of a larger pipe: enough for full speed, and small enough to stay in the processor's cache.
#[cfg(target_os = "linux")]
const READ_MUCH: usize = 256 * 1024;
/// What a pipe grows to once a command prints much; more needs privileges.
#[cfg(target_os = "linux")]
const PIPE: usize = 1024 * 1024;
/// A read of this size shows that the pipe, 64 KiB at first, fills up faster than it is drained.
#[cfg(target_os = "linux")]
const MUCH: usize = 32 * 1024;
/// How long a keeper may take to end its tree before it is ended itself.
const PATIENCE: Duration = Duration::from_secs(30);
/// A command that is over sooner is not worth a thread that listens for signals.
const MOMENT: Duration = Duration::from_millis(20);

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
    let captured = running.stdout.is_some() || running.stderr.is_some();
    let mut buffer = vec![0; if captured { READ } else { 0 }];
    let mut stdout = Stream::new(running.stdout.take(), keep_bytes, hear);
    let mut stderr = Stream::new(running.stderr.take(), keep_bytes, hear);
    let mut report = Vec::new();
    let mut asked = None;
    let mut limit = deadline;
    let mut moment = stops::unattended().then(|| Instant::now() + MOMENT);
    loop {
        let mut fds = Vec::with_capacity(4);
        fds.push(PollFd::new(&running.report, PollFlags::IN));
        if asked.is_none() {
            fds.push(PollFd::new(&bell.hear, PollFlags::IN));
        }
        let streams_from = fds.len();
        fds.extend(stdout.pipe.iter().chain(&stderr.pipe).map(|pipe| PollFd::new(pipe, PollFlags::IN)));

        let next = moment.into_iter().chain(limit).min();
        let timeout =
            next.and_then(|next| Timespec::try_from(next.saturating_duration_since(Instant::now())).ok());
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
        let ready: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);

        if ready[streams_from..].contains(&true) {
            stdout.read(&mut buffer, usize::MAX);
            stderr.read(&mut buffer, usize::MAX);
        }
        if ready[0] && (hear_report(&running.report, &mut report) || Report::first(&report).is_some()) {
            break;
        }
        if moment.take_if(|moment| Instant::now() >= *moment).is_some() {
            // Without it the command goes on; only a second signal is still heard, by the handler.
            let _ = stops::attend_stops();
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
    #[cfg(target_os = "linux")]
    grown: bool,
}

impl<'a> Stream<'a> {
    fn new(pipe: Option<OwnedFd>, keep_bytes: usize, hear: Option<Hear<'a>>) -> Self {
        Self {
            pipe,
            keep: Keep::new(keep_bytes),
            hear,
            #[cfg(target_os = "linux")]
            grown: false,
        }
    }

    /// Takes what one read of no more than `most` bytes gives, and returns how much that was.
    fn read(&mut self, buffer: &mut Vec<u8>, most: usize) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        let part = most.min(buffer.len());
        match rustix::io::read(pipe.as_fd(), &mut buffer[..part]) {
            Ok(length @ 1..) => {
                self.keep.push(&buffer[..length]);
                if let Some(hear) = self.hear {
                    hear(&buffer[..length]);
                }
                #[cfg(target_os = "linux")]
                if length >= MUCH && !self.grown {
                    // Only speed is lost if the user's share of pipe memory is used up.
                    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
                    buffer.resize(READ_MUCH, 0);
                    self.grown = true;
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
            match self.read(buffer, waiting) {
                0 => break,
                length => waiting -= length,
            }
        }
    }
}
