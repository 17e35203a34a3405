//! Drains the pipes of a command, enforces its deadline and waits for the reaper's report.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use haft_net::proxy::LazyProxy;
use haft_tool::{Capture, RunRequest};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::head_tail::HeadTailBuffer;
use super::report::{REPORT_BYTES, ReaperReport, StopReason};
use super::spawn::RunningCommand;
use super::sys;

/// Bytes taken by one read; a pipe holds as many.
const READ_BYTES: usize = 64 * 1024;
/// Bytes taken by one read of the report pipe.
const REPORT_READ_BYTES: usize = 256;
/// How long the reaper may take to end the tree before it is killed itself.
const REAPER_TIMEOUT: Duration = Duration::from_secs(30);

/// Wakes the loop from another thread.
#[derive(Debug)]
pub(super) struct Waker {
    read_end: OwnedFd,
    write_end: OwnedFd,
}

impl Waker {
    pub(super) fn new() -> Result<Self, Errno> {
        let (read_end, write_end) = sys::pipe()?;
        Ok(Self { read_end, write_end })
    }

    pub(super) fn wake(&self) {
        // Called once or twice, so the pipe is never full.
        let _ = rustix::io::write(&self.write_end, &[1]);
    }
}

/// Receives the output of a command as it is written.
pub(crate) type OutputSink<'a> = &'a dyn Fn(&[u8]);

/// What the loop returns.
pub(super) struct Drained {
    /// `None` if the reaper died without a report.
    pub(super) report: Option<ReaperReport>,
    pub(super) stdout: Capture,
    pub(super) stderr: Capture,
    /// What the reaper was asked for.
    pub(super) stopped: Option<StopReason>,
}

/// Drains the command's streams until the reaper has reported the end of the tree. `sink` receives all output; `proxy` is
/// started by its first connection.
pub(super) fn drain(
    running: &mut RunningCommand,
    waker: &Waker,
    mut proxy: Option<&mut LazyProxy>,
    deadline: Option<Instant>,
    request: &RunRequest,
    sink: Option<OutputSink<'_>>,
) -> Drained {
    let mut buffer = Vec::with_capacity(READ_BYTES);
    let mut stdout = OutputStream::new(running.stdout.take(), request.keep_bytes, sink);
    let stderr_sink = sink.filter(|_| !request.quiet_stderr);
    let mut stderr = OutputStream::new(running.stderr.take(), request.keep_bytes, stderr_sink);
    let mut report = Vec::new();
    let mut stopped = None;
    let mut limit = deadline;
    loop {
        let mut fds = vec![PollFd::new(&running.report, PollFlags::IN)];
        if stopped.is_none() {
            fds.push(PollFd::new(&waker.read_end, PollFlags::IN));
        }
        let first_stream = fds.len();
        fds.extend(stdout.pipe.iter().chain(&stderr.pipe).map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let after_streams = fds.len();
        let first_connection = proxy.as_ref().and_then(|proxy| proxy.first_connection());
        fds.extend(first_connection.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let timeout =
            limit.and_then(|limit| Timespec::try_from(limit.saturating_duration_since(Instant::now())).ok());
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
        let ready: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);

        if let Some(proxy) = proxy.as_mut().filter(|_| ready.get(after_streams) == Some(&true)) {
            proxy.start();
        }
        if ready[first_stream..after_streams].contains(&true) {
            stdout.read(&mut buffer);
            stderr.read(&mut buffer);
        }
        let at_end = ready[0] && read_report(&running.report, &mut report);
        while let Some(message @ (ReaperReport::Paused | ReaperReport::Started)) =
            ReaperReport::first(&report)
        {
            report.drain(..REPORT_BYTES);
            match message {
                ReaperReport::Paused => running.pause(),
                _ => crate::detached::tell_started(),
            }
        }
        if at_end || ReaperReport::first(&report).is_some() {
            break;
        }
        let cancelled = stopped.is_none() && ready[1];
        let expired = limit.is_some_and(|limit| Instant::now() >= limit);
        if cancelled || (expired && stopped.is_none()) {
            let reason = if cancelled { StopReason::Cancelled } else { StopReason::Timeout };
            running.stop(reason);
            stopped = Some(reason);
            limit = Instant::now().checked_add(REAPER_TIMEOUT);
        } else if expired {
            running.kill_reaper();
            limit = None;
        }
    }
    for stream in [&mut stdout, &mut stderr] {
        stream.read_rest(&mut buffer);
    }
    Drained {
        report: ReaperReport::first(&report),
        stdout: stdout.kept.finish(),
        stderr: stderr.kept.finish(),
        stopped,
    }
}

/// Reads from the report pipe; true at its end.
fn read_report(pipe: &OwnedFd, report: &mut Vec<u8>) -> bool {
    let mut bytes = [0; REPORT_READ_BYTES];
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

/// A captured output stream.
struct OutputStream<'a> {
    /// `None` after EOF.
    pipe: Option<OwnedFd>,
    kept: HeadTailBuffer,
    sink: Option<OutputSink<'a>>,
}

impl<'a> OutputStream<'a> {
    fn new(pipe: Option<OwnedFd>, keep_bytes: usize, sink: Option<OutputSink<'a>>) -> Self {
        Self { pipe, kept: HeadTailBuffer::new(keep_bytes), sink }
    }

    /// Reads once and returns the number of bytes.
    fn read(&mut self, buffer: &mut Vec<u8>) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        buffer.clear();
        match rustix::io::read(pipe.as_fd(), rustix::buffer::spare_capacity(buffer)) {
            Ok(length @ 1..) => {
                self.kept.push(buffer);
                if let Some(sink) = self.sink {
                    sink(buffer);
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

    /// Reads what the pipe holds now. Not until EOF: a process outside of the tree may keep the pipe open.
    fn read_rest(&mut self, buffer: &mut Vec<u8>) {
        let waiting = self.pipe.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok());
        let mut waiting = waiting.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default();
        while waiting > 0 {
            match self.read(buffer) {
                0 => break,
                length => waiting = waiting.saturating_sub(length),
            }
        }
    }
}
