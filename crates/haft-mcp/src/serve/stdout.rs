//! The output side of a stdio connection.

use std::os::fd::OwnedFd;
use std::sync::Mutex;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::peer::{MessageSink, lock};
use crate::wire::RpcMessage;

/// Writes whole lines to one descriptor. Threads take turns; a client that does not read blocks the writing thread.
pub(super) struct LineOutput {
    output: OwnedFd,
    /// Set after the first write error: the client no longer reads.
    closed: Mutex<bool>,
}

impl LineOutput {
    pub(super) fn new(output: OwnedFd) -> Self {
        Self { output, closed: Mutex::new(false) }
    }
}

impl MessageSink for LineOutput {
    fn send(&self, message: &RpcMessage) -> bool {
        let line = message.to_line();
        let mut closed = lock(&self.closed);
        if !*closed {
            *closed = write_all(&self.output, &line).is_err();
        }
        !*closed
    }
}

fn write_all(output: &OwnedFd, mut rest: &[u8]) -> rustix::io::Result<()> {
    while !rest.is_empty() {
        match rustix::io::write(output, rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_for(output, PollFlags::OUT)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until the descriptor is ready. Another process that shares it may have set `O_NONBLOCK`.
fn wait_for(descriptor: &OwnedFd, event: PollFlags) -> rustix::io::Result<()> {
    match poll(&mut [PollFd::new(descriptor, event)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}
