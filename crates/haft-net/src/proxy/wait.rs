//! Waiting on sockets in such a way that the end of the proxy is heard at once.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// Why there is nothing more to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The proxy ends.
    Ended,
    /// The time has passed.
    Late,
    /// The other side has hung up.
    Gone,
}

/// What to wait for on one descriptor.
pub(super) type Want<'a> = (BorrowedFd<'a>, PollFlags);

/// Says once, to all who wait, that something is over.
#[derive(Debug)]
pub(super) struct Bell(PipeWriter);

/// Where a [`Bell`] is heard; whoever waits here hears it also when it rang before.
#[derive(Debug, Clone)]
pub(super) struct Ear(Arc<PipeReader>);

/// A bell, and where it is heard.
pub(super) fn bell() -> io::Result<(Bell, Ear)> {
    let (hear, strike) = io::pipe()?;
    Ok((Bell(strike), Ear(Arc::new(hear))))
}

impl Bell {
    pub(super) fn ring(&mut self) {
        // A byte that nobody takes out again, not a close: a fork of Haft may hold a copy of this end for a while.
        let _ = self.0.write(&[1]);
    }
}

impl Ear {
    /// What to wait for to hear the bell as one event among others.
    pub(super) fn rung(&self) -> Want<'_> {
        (self.0.as_fd(), PollFlags::IN)
    }

    /// Waits until one of `wants` can be had and says which; a want of None never can.
    pub(super) fn wait<const N: usize>(
        &self,
        wants: [Option<Want<'_>>; N],
        deadline: Option<Instant>,
    ) -> Result<[bool; N], Stop> {
        let own = [Some(self.rung())];
        loop {
            let mut fds: Vec<_> = own
                .iter()
                .chain(&wants)
                .flatten()
                .map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
                .collect();
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            match rustix::event::poll(&mut fds, timeout.as_ref()) {
                Err(Errno::INTR) => continue,
                // Out of memory, or a descriptor that is none: nobody could go on from here.
                Err(_) => return Err(Stop::Gone),
                Ok(0) if left.is_some_and(|left| left.is_zero()) => return Err(Stop::Late),
                Ok(_) => {}
            }
            let mut seen = fds.iter().map(|fd| !fd.revents().is_empty());
            if seen.next() == Some(true) {
                return Err(Stop::Ended);
            }
            let ready = wants.map(|want| want.is_some() && seen.next() == Some(true));
            if ready.contains(&true) {
                return Ok(ready);
            }
        }
    }
}
