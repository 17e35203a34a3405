//! The way back to a client: lines, alone or several at once.

use std::cell::RefCell;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::peer::{Outbox, lock};
use super::server::Server;
use crate::wire::{Id, Message, RpcError};

/// Answers of more bytes than this are sent, whatever else there is to answer.
const MOST_KEPT: usize = 32 << 10;

/// Whole lines.
#[derive(Default)]
struct Kept {
    lines: Vec<u8>,
    /// The answers that must not be sent before the service has settled, and where they stand.
    unsettled: Vec<(Id, Range<usize>)>,
}

impl Kept {
    /// Has these answers say something else.
    fn withhold(&mut self, why: &RpcError) {
        let (mut lines, mut from) = (Vec::new(), 0);
        for (id, place) in self.unsettled.drain(..) {
            lines.extend_from_slice(&self.lines[from..place.start]);
            Message::response(id, Err(why.clone())).write_line(&mut lines);
            from = place.end;
        }
        lines.extend_from_slice(&self.lines[from..]);
        self.lines = lines;
    }
}

/// How a message is sent.
#[derive(Clone, Copy, Default)]
struct How {
    /// Not before others, or before somebody waits for the client.
    later: bool,
    /// Not before the service has settled.
    settled: bool,
}

/// Where answers go: whole lines, one behind the other.
pub(super) struct Pipe {
    output: OwnedFd,
    /// Whose answers they are.
    server: Arc<Server>,
    /// What has been said and not been sent yet.
    kept: Mutex<Kept>,
    /// What is being sent; always taken before what is kept.
    sending: Mutex<Kept>,
    /// Whether nobody reads it any more.
    closed: AtomicBool,
}

thread_local! {
    /// The line that a thread is writing.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Pipe {
    pub(super) fn new(output: OwnedFd, server: Arc<Server>) -> Self {
        let (kept, sending, closed) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        Self { output, server, kept, sending, closed }
    }

    /// Sends a message, and all that was kept; or keeps it, too, unless that is much already.
    fn put(&self, message: &Message, how: How) -> bool {
        // Written where nobody else has to wait for it, and where there is room from the time before.
        let much = LINE.with_borrow_mut(|line| {
            message.write_line(line);
            let mut kept = lock(&self.kept);
            let from = kept.lines.len();
            kept.lines.extend_from_slice(line);
            if let (true, Message::Response { id: Some(id), .. }) = (how.settled, message) {
                let place = from..kept.lines.len();
                kept.unsettled.push((id.clone(), place));
            }
            line.clear();
            line.shrink_to(MOST_KEPT);
            kept.lines.len() > MOST_KEPT
        });
        if !how.later || much {
            self.flush();
        }
        !self.closed.load(Ordering::SeqCst)
    }

    /// Sends all that was kept.
    pub(super) fn flush(&self) {
        if lock(&self.kept).lines.is_empty() {
            // What was not answered, because nobody wants it any more, has been done all the same.
            let _ = self.server.service().settle();
            return;
        }
        let mut sending = lock(&self.sending);
        // Whoever was here before may have sent it.
        std::mem::swap(&mut *sending, &mut *lock(&self.kept));
        if let Err(why) = self.server.service().settle() {
            sending.withhold(&why);
        }
        let Kept { lines: sent, unsettled } = &mut *sending;
        unsettled.clear();
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
        self.put(message, How::default())
    }

    fn send_settled(&self, answer: &Message) -> bool {
        self.put(answer, How { settled: true, later: false })
    }
}

/// The same, for answers after which others will follow at once.
pub(super) struct Later(pub(super) Arc<Pipe>);

impl Outbox for Later {
    fn send(&self, message: &Message) -> bool {
        // What is told on the way to an answer is worth nothing beside it.
        let later = matches!(message, Message::Response { .. });
        self.0.put(message, How { later, settled: false })
    }

    fn send_settled(&self, answer: &Message) -> bool {
        self.0.put(answer, How { later: true, settled: true })
    }

    fn keeps(&self) -> bool {
        true
    }
}

/// Somebody else may have made the descriptor one that does not wait by itself; it is theirs as well as ours.
pub(super) fn wait_for(descriptor: &OwnedFd, event: PollFlags) -> std::io::Result<()> {
    match poll(&mut [PollFd::new(descriptor, event)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
