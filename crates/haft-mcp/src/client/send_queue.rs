//! Sends messages that the caller does not wait for.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, Weak};
use std::time::Duration;

use super::connection::ServerConnection;
use super::lock;
use crate::wire::RpcMessage;

/// Queued messages; more are dropped.
const MAX_QUEUED: usize = 64;
/// How long sending one message may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// A queue with a thread of its own, which starts with the first message.
#[derive(Default)]
pub(super) struct SendQueue(Mutex<QueueState>);

#[derive(Default)]
struct QueueState {
    connection: Option<Weak<dyn ServerConnection>>,
    queue: Option<SyncSender<RpcMessage>>,
}

impl SendQueue {
    pub(super) fn attach(&self, connection: Weak<dyn ServerConnection>) {
        lock(&self.0).connection = Some(connection);
    }

    /// Queues a message. Never blocks; a server that does not read fast enough loses messages.
    pub(super) fn push(&self, message: RpcMessage) {
        let mut state = lock(&self.0);
        let Some(connection) = state.connection.clone() else { return };
        let queue = state.queue.get_or_insert_with(|| {
            let (queue, messages) = sync_channel(MAX_QUEUED);
            // If the thread does not start, the queue is closed and its messages are dropped.
            let _ = std::thread::Builder::new()
                .name("mcp-sender".to_owned())
                .spawn(move || send_all(&connection, &messages));
            queue
        });
        let _ = queue.try_send(message);
    }

    /// Stops sending.
    pub(super) fn close(&self) {
        *lock(&self.0) = QueueState::default();
    }
}

fn send_all(connection: &Weak<dyn ServerConnection>, messages: &Receiver<RpcMessage>) {
    while let Ok(message) = messages.recv() {
        let Some(connection) = connection.upgrade() else { return };
        // No caller waits for the outcome.
        let _ = connection.send(&message, SEND_TIMEOUT);
    }
}
