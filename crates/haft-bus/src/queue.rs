//! One bounded queue of messages, and the end that takes them out.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use haft_tool::{Message, lock};

#[derive(Debug)]
struct State {
    messages: VecDeque<Message>,
    /// Nothing more comes in.
    closed: bool,
    /// Nobody takes anything out any more.
    left: bool,
}

/// A queue that refuses what does not fit.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    capacity: usize,
}

impl Queue {
    pub(crate) fn new(capacity: usize) -> Arc<Self> {
        let state = State { messages: VecDeque::new(), closed: false, left: false };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new(), capacity })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lock().messages.len() >= self.capacity
    }

    /// Whether somebody still takes messages out.
    pub(crate) fn is_heard(&self) -> bool {
        !self.lock().left
    }

    /// Puts a message in; only the bus does, and it has asked whether there is room.
    pub(crate) fn push(&self, message: Message) {
        self.lock().messages.push_back(message);
        self.changed.notify_all();
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

/// The messages to one channel, in order.
#[derive(Debug)]
pub struct Subscription {
    queue: Arc<Queue>,
}

impl Subscription {
    pub(crate) fn new(queue: Arc<Queue>) -> Self {
        Self { queue }
    }

    /// The next message; waits for it. None when the bus is closed and everything has been taken.
    pub fn next(&self) -> Option<Message> {
        let mut state = self.queue.lock();
        loop {
            if let Some(message) = state.messages.pop_front() {
                return Some(message);
            }
            if state.closed {
                return None;
            }
            state = self.queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next message, if one is there.
    pub fn try_next(&self) -> Option<Message> {
        self.queue.lock().messages.pop_front()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.queue.lock().left = true;
    }
}
