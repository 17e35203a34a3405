//! Sends what nobody waits for, so that nobody has to wait for it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, Weak};
use std::time::Duration;

use super::link::Link;
use super::lock;
use crate::wire::RpcMessage;

/// How many messages may wait to be sent; more are dropped.
const MOST_WAITING: usize = 64;
/// How long one of them may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Sends what nobody waits for, one after the other, on a thread that starts with the first.
#[derive(Default)]
pub(super) struct Courier(Mutex<State>);

#[derive(Default)]
struct State {
    link: Option<Weak<dyn Link>>,
    queue: Option<SyncSender<RpcMessage>>,
}

impl Courier {
    pub(super) fn attach(&self, link: Weak<dyn Link>) {
        lock(&self.0).link = Some(link);
    }

    pub(super) fn send(&self, message: RpcMessage) {
        let mut state = lock(&self.0);
        let Some(link) = state.link.clone() else { return };
        let queue = state.queue.get_or_insert_with(|| {
            let (queue, waiting) = sync_channel(MOST_WAITING);
            // Without a thread the queue is closed, and what is sent is dropped.
            let _ = std::thread::Builder::new()
                .name("mcp-courier".to_owned())
                .spawn(move || carry(&link, &waiting));
            queue
        });
        // A server that asks faster than it reads does without some answers.
        let _ = queue.try_send(message);
    }

    /// Sends no more.
    pub(super) fn close(&self) {
        *lock(&self.0) = State::default();
    }
}

fn carry(link: &Weak<dyn Link>, waiting: &Receiver<RpcMessage>) {
    while let Ok(message) = waiting.recv() {
        let Some(link) = link.upgrade() else { return };
        // Nobody waits for it, so nobody hears that it did not arrive.
        let _ = link.tell(&message, LIMIT);
    }
}
