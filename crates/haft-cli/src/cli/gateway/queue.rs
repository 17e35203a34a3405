//! The messages that wait: bounded per chat and in total. Those of one chat are handled in their order, chats side by side.

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_bus::InboundMessage;
use haft_ledger::{Inbox, InboxMessage};
use haft_tool::{ToolError, lock};

use super::super::screen;

/// Messages of one chat that wait.
const MAX_WAITING_PER_CHAT: usize = 16;
/// Messages of all chats that wait.
const MAX_WAITING: usize = 256;

/// What became of a message that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acceptance {
    /// It is stored and waits.
    Accepted,
    /// It was accepted before.
    Duplicate,
    /// Too many messages of its chat wait.
    ChatFull,
    /// Too many messages wait, or the gateway is being stopped.
    Full,
}

/// The chat that a message belongs to, as the name of its session.
pub(super) fn session_key(channel: &str, chat: &str) -> String {
    format!("{channel}:{chat}")
}

pub(super) struct MessageQueue {
    inbox: Inbox,
    state: Mutex<WaitingMessages>,
    changed: Condvar,
}

#[derive(Default)]
struct WaitingMessages {
    /// By session key.
    waiting: HashMap<String, VecDeque<InboxMessage>>,
    /// The chats with waiting messages of which none is being handled, in the order of their turn.
    ready: VecDeque<String>,
    /// The chats of which a message is being handled.
    busy: HashSet<String>,
    count: usize,
    is_closed: bool,
}

impl WaitingMessages {
    fn push(&mut self, message: InboxMessage) {
        let key = session_key(&message.channel, &message.chat);
        let waiting = self.waiting.entry(key.clone()).or_default();
        if waiting.is_empty() && !self.busy.contains(&key) {
            self.ready.push_back(key);
        }
        waiting.push_back(message);
        self.count += 1;
    }

    fn take(&mut self) -> Option<(String, InboxMessage)> {
        let key = self.ready.pop_front()?;
        let message = self.waiting.get_mut(&key)?.pop_front()?;
        self.count -= 1;
        self.busy.insert(key.clone());
        Some((key, message))
    }

    /// A message of the chat was handled.
    fn release(&mut self, key: &str) {
        self.busy.remove(key);
        match self.waiting.get(key) {
            Some(waiting) if !waiting.is_empty() => self.ready.push_back(key.to_owned()),
            _ => drop(self.waiting.remove(key)),
        }
    }
}

impl MessageQueue {
    /// The queue of an inbox, with the messages that were accepted and not finished.
    pub(super) fn open(inbox: Inbox) -> Result<Self, ToolError> {
        let mut state = WaitingMessages::default();
        for message in inbox.open_messages()? {
            state.push(message);
        }
        Ok(Self { inbox, state: Mutex::new(state), changed: Condvar::new() })
    }

    pub(super) fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// How many messages wait.
    pub(super) fn waiting(&self) -> usize {
        lock(&self.state).count
    }

    /// Stores a message in the ledger and adds it to the queue. The lock is held meanwhile, so that the order is the same in both.
    pub(super) fn accept(&self, channel: &str, message: &InboundMessage) -> Result<Acceptance, ToolError> {
        let mut state = lock(&self.state);
        let InboundMessage { message_id, chat_id, sender, text } = message;
        // Also where the queue is full: a service that gets an error sends the message again.
        if self.inbox.has(channel, chat_id, message_id)? {
            return Ok(Acceptance::Duplicate);
        }
        if state.is_closed || state.count >= MAX_WAITING {
            return Ok(Acceptance::Full);
        }
        let key = session_key(channel, chat_id);
        if state.waiting.get(&key).is_some_and(|waiting| waiting.len() >= MAX_WAITING_PER_CHAT) {
            return Ok(Acceptance::ChatFull);
        }
        let stored = self.inbox.accept(channel, chat_id, message_id, sender.as_deref(), text)?;
        let Some(id) = stored else { return Ok(Acceptance::Duplicate) };
        state.push(InboxMessage {
            id,
            channel: channel.to_owned(),
            chat: chat_id.clone(),
            message: message_id.clone(),
            sender: sender.clone(),
            text: text.clone(),
            begun_after: None,
        });
        drop(state);
        self.changed.notify_all();
        Ok(Acceptance::Accepted)
    }

    /// Handles messages until the queue is closed. A message whose handling fails stays in the ledger for the next start.
    pub(super) fn work(&self, handle: impl Fn(&InboxMessage) -> Result<(), ToolError>) {
        while let Some((key, message)) = self.next() {
            let handled = catch_unwind(AssertUnwindSafe(|| handle(&message)));
            let handled =
                handled.unwrap_or_else(|_| Err(ToolError::internal("the handling of the message panicked")));
            if let Err(error) = handled {
                screen::error(&format!(
                    "{}: message {} is kept for the next start: {}",
                    screen::escape(&key),
                    screen::escape(&message.message),
                    error.message
                ));
            }
            lock(&self.state).release(&key);
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Option<(String, InboxMessage)> {
        let mut state = lock(&self.state);
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(next) = state.take() {
                return Some(next);
            }
            state = self.wait(state, None);
        }
    }

    /// Accepts no more messages and begins with none that wait.
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until no message is being handled; false if the time is over first.
    pub(super) fn wait_until_idle(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut state = lock(&self.state);
        while !state.busy.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.wait(state, Some(left));
        }
        true
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, WaitingMessages>,
        timeout: Option<Duration>,
    ) -> MutexGuard<'a, WaitingMessages> {
        match timeout {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => {
                self.changed.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }
}
