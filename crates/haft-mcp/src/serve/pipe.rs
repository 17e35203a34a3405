//! The way back to a client: lines, alone or several at once.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::peer::{Outbox, lock};
use crate::wire::Message;

/// Answers of more bytes than this are sent, whatever else there is to answer.
const MOST_KEPT: usize = 32 << 10;

/// Where answers go: whole lines, one behind the other.
pub(super) struct Pipe {
    output: OwnedFd,
    /// What has been said and not been sent yet.
    kept: Mutex<Vec<u8>>,
    /// What is being sent; always taken before what is kept.
    sending: Mutex<Vec<u8>>,
    /// Whether nobody reads it any more.
    closed: AtomicBool,
}

thread_local! {
    /// The line that a thread is writing.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Pipe {
    pub(super) fn new(output: OwnedFd) -> Self {
        Self { output, kept: Mutex::default(), sending: Mutex::default(), closed: AtomicBool::new(false) }
    }

    /// Sends a message, and all that was kept; or keeps it, too, unless that is much already.
    fn put(&self, message: &Message, keep: bool) -> bool {
        // Written where nobody else has to wait for it, and where there is room from the time before.
        let much = LINE.with_borrow_mut(|line| {
            message.write_line(line);
            let mut kept = lock(&self.kept);
            kept.extend_from_slice(line);
            line.clear();
            line.shrink_to(MOST_KEPT);
            kept.len() > MOST_KEPT
        });
        if !keep || much {
            self.flush();
        }
        !self.closed.load(Ordering::SeqCst)
    }

    /// Sends all that was kept.
    pub(super) fn flush(&self) {
        if lock(&self.kept).is_empty() {
            return;
        }
        let mut sent = lock(&self.sending);
        // Whoever was here before may have sent it.
        std::mem::swap(&mut *sent, &mut *lock(&self.kept));
        let mut rest = sent.as_slice();
        while !rest.is_empty() && !self.closed.load(Ordering::SeqCst) {
            let closed = match rustix::io::write(&self.output, rest) {
                Ok(count) => {
                    rest = rest.get(count..).unwrap_or_default();
                    false
                }
                Err(Errno::INTR) => false,
                Err(Errno::AGAIN) => wait_for(&self.output, PollFlags::OUT).is_err(),
                Err(_) => true,
            };
            self.closed.fetch_or(closed, Ordering::SeqCst);
        }
        sent.clear();
        // One long answer is no reason to hold on to so much for good.
        sent.shrink_to(4 * MOST_KEPT);
    }
}

impl Outbox for Pipe {
    fn send(&self, message: &Message) -> bool {
        self.put(message, false)
    }
}

/// The same, for answers after which others will follow at once.
pub(super) struct Later(pub(super) Arc<Pipe>);

impl Outbox for Later {
    fn send(&self, message: &Message) -> bool {
        self.0.put(message, true)
    }
}

/// Somebody else may have made the descriptor one that does not wait by itself; it is theirs as well as ours.
pub(super) fn wait_for(descriptor: &OwnedFd, event: PollFlags) -> std::io::Result<()> {
    match poll(&mut [PollFd::new(descriptor, event)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
