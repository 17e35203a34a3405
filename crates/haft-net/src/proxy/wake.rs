//! Waiting on sockets, interrupted at once by a stop signal.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// Why a wait ended without an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// The stop signal was sent.
    Stopped,
    /// The deadline has passed.
    TimedOut,
    /// The peer has closed the connection.
    Closed,
}

/// An event to wait for on a descriptor.
pub(super) type PollEvent<'a> = (BorrowedFd<'a>, PollFlags);

/// Sends the signal.
#[derive(Debug)]
pub(super) struct WakeSender(PipeWriter);

/// Receives the signal; it stays set for all clones once it was sent.
#[derive(Debug, Clone)]
pub(super) struct WakeReceiver(Arc<PipeReader>);

/// A signal that can be polled like a socket.
pub(super) fn wake_channel() -> io::Result<(WakeSender, WakeReceiver)> {
    let (reader, writer) = io::pipe()?;
    Ok((WakeSender(writer), WakeReceiver(Arc::new(reader))))
}

impl WakeSender {
    pub(super) fn wake(&self) {
        // A byte that is never read, instead of closing the pipe: a forked child may hold a copy of this end for a while.
        let _ = (&self.0).write(&[1]);
    }
}

impl WakeReceiver {
    /// The signal as an event.
    pub(super) fn event(&self) -> PollEvent<'_> {
        (self.0.as_fd(), PollFlags::IN)
    }

    /// Waits until one of `events` occurs and returns which ones did; `None` never occurs.
    pub(super) fn poll<const N: usize>(
        &self,
        events: [Option<PollEvent<'_>>; N],
        deadline: Option<Instant>,
    ) -> Result<[bool; N], WaitEnd> {
        loop {
            let all = std::iter::once(self.event()).chain(events.into_iter().flatten());
            let mut fds: Vec<_> = all.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            match rustix::event::poll(&mut fds, timeout.as_ref()) {
                Err(Errno::INTR) => continue,
                // No memory, or an invalid descriptor.
                Err(_) => return Err(WaitEnd::Closed),
                Ok(0) if left.is_some_and(|left| left.is_zero()) => return Err(WaitEnd::TimedOut),
                Ok(_) => {}
            }
            let mut occurred = fds.iter().map(|fd| !fd.revents().is_empty());
            if occurred.next() == Some(true) {
                return Err(WaitEnd::Stopped);
            }
            let ready = events.map(|event| event.is_some() && occurred.next() == Some(true));
            if ready.contains(&true) {
                return Ok(ready);
            }
        }
    }
}
