//! The output side of a stdio connection.

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::peer::{MessageSink, lock};
use crate::wire::RpcMessage;

/// After a pipe or socket is reported as writable, a write of this size does not block.
const MAX_WRITE_BYTES: usize = 4096;

/// How the end of a socket's input is reported; a pipe reports `HUP` unasked.
#[cfg(target_os = "linux")]
const INPUT_ENDED: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const INPUT_ENDED: PollFlags = PollFlags::empty();

/// Writes whole lines to one descriptor. Threads take turns; a client that does not read blocks the writing thread, until
/// the client has closed its side of the input as well.
pub(super) struct LineOutput {
    output: OwnedFd,
    /// Where the client writes.
    input: OwnedFd,
    /// How long a client that has closed the input may take to read on.
    grace_period: Duration,
    /// Set after the first write error: the client no longer reads.
    closed: Mutex<bool>,
}

impl LineOutput {
    pub(super) fn new(output: OwnedFd, input: OwnedFd, grace_period: Duration) -> Self {
        Self { output, input, grace_period, closed: Mutex::new(false) }
    }

    fn write_all(&self, mut rest: &[u8]) -> rustix::io::Result<()> {
        while !rest.is_empty() {
            self.wait_until_writable()?;
            let piece = rest.get(..MAX_WRITE_BYTES).unwrap_or(rest);
            match rustix::io::write(&self.output, piece) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until the client has made room. Fails if it has closed the input and reads nothing for the grace period.
    fn wait_until_writable(&self) -> rustix::io::Result<()> {
        loop {
            let mut both = [PollFd::new(&self.output, PollFlags::OUT), PollFd::new(&self.input, INPUT_ENDED)];
            match poll(&mut both, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            }
            let [output, input] = both.map(|fd| fd.revents());
            if !output.is_empty() {
                return Ok(());
            }
            if !input.is_empty() {
                return self.wait_for_last_reads();
            }
        }
    }

    fn wait_for_last_reads(&self) -> rustix::io::Result<()> {
        let limit = Timespec::try_from(self.grace_period).map_err(|_| Errno::INVAL)?;
        loop {
            match poll(&mut [PollFd::new(&self.output, PollFlags::OUT)], Some(&limit)) {
                Ok(0) => return Err(Errno::TIMEDOUT),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl MessageSink for LineOutput {
    fn send(&self, message: &RpcMessage) -> bool {
        let line = message.to_line();
        let mut closed = lock(&self.closed);
        if !*closed {
            *closed = self.write_all(&line).is_err();
        }
        !*closed
    }
}
