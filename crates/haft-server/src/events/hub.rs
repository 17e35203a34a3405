//! The newest events and their listeners.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft_ledger::Ledger;
use haft_tool::{ToolError, lock};
use tokio::sync::{broadcast, watch};

use super::follower;
use super::render::EventFrame;
use crate::access::Role;
use crate::backend::Backend;

/// Events kept for clients that fall behind; older ones are read from the ledger.
const MAX_KEPT_EVENTS: usize = 2_000;
/// Their total size.
const MAX_KEPT_BYTES: usize = 8 << 20;
/// How many parts of live texts a slow client may fall behind before it misses some.
const MAX_WAITING_PARTS: usize = 64;
/// How long questions still count as shown after the last page has gone, because it may only be reloading.
const RELOAD_TIME: Duration = Duration::from_secs(10);

/// What all streams share.
pub(crate) struct Hub {
    pub(super) ledger: Ledger,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) workspace: std::path::PathBuf,
    state: Mutex<HubState>,
    /// Wakes the follower.
    wake: Condvar,
    /// Changes when there are new events.
    news: watch::Sender<u64>,
    /// Parts of live texts.
    parts: broadcast::Sender<Bytes>,
}

/// The state of a hub.
pub(super) struct HubState {
    kept: VecDeque<EventFrame>,
    kept_bytes: usize,
    /// All events after this position, up to `end`, are kept.
    start: u64,
    pub(super) end: u64,
    listeners: usize,
    /// Listeners who can answer questions.
    answering: usize,
    last_answering_left: Option<Instant>,
    is_stopped: bool,
}

/// A registered listener; dropping it unregisters it.
pub(super) struct EventListener {
    hub: Arc<Hub>,
    role: Role,
    pub(super) news: watch::Receiver<u64>,
    pub(super) parts: broadcast::Receiver<Bytes>,
}

/// The next events of a client.
pub(super) enum NextEvents {
    /// The events, and the client's position after them.
    Kept(Vec<Bytes>, u64),
    /// The client has to read them from the ledger.
    InLedger,
}

impl Hub {
    /// Creates a hub and starts the thread that follows the ledger.
    pub(crate) fn start(
        ledger: Ledger,
        backend: Arc<dyn Backend>,
        workspace: std::path::PathBuf,
    ) -> Result<Arc<Self>, ToolError> {
        let end = ledger.feed_position()?;
        let state = HubState {
            kept: VecDeque::new(),
            kept_bytes: 0,
            start: end,
            end,
            listeners: 0,
            answering: 0,
            last_answering_left: None,
            is_stopped: false,
        };
        let hub = Arc::new(Self {
            ledger,
            backend,
            workspace,
            state: Mutex::new(state),
            wake: Condvar::new(),
            news: watch::Sender::new(end),
            parts: broadcast::Sender::new(MAX_WAITING_PARTS),
        });
        let followed = Arc::clone(&hub);
        std::thread::Builder::new()
            .name("haft-follower".to_owned())
            .spawn(move || follower::run(&followed))
            .map_err(|error| ToolError::io("start a thread", &error))?;
        Ok(hub)
    }

    /// Ends the follower and all streams.
    pub(crate) fn stop(&self) {
        self.state().is_stopped = true;
        self.wake.notify_all();
        self.news.send_modify(|_| {});
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state().is_stopped
    }

    /// Adds a listener. Questions wait for an answer as long as a listener can give one.
    pub(super) fn listen(self: &Arc<Self>, role: Role) -> EventListener {
        let mut state = self.state();
        state.listeners += 1;
        state.answering += usize::from(role >= Role::Approve);
        drop(state);
        self.wake.notify_all();
        EventListener {
            hub: Arc::clone(self),
            role,
            news: self.news.subscribe(),
            parts: self.parts.subscribe(),
        }
    }

    /// The events after a position, at most `limit`.
    pub(super) fn after(&self, position: u64, limit: usize) -> NextEvents {
        let state = self.state();
        if position < state.start {
            return NextEvents::InLedger;
        }
        let first = state.kept.partition_point(|frame| frame.position <= position);
        let next: Vec<&EventFrame> = state.kept.iter().skip(first).take(limit).collect();
        let reached = match next.last() {
            Some(last) if next.len() == limit => last.position,
            // Entries without an event count as seen.
            _ => state.end.max(position),
        };
        NextEvents::Kept(next.into_iter().map(|frame| frame.bytes.clone()).collect(), reached)
    }

    /// Adds the events up to a position.
    pub(super) fn push(&self, frames: Vec<EventFrame>, end: u64) {
        let mut state = self.state();
        for frame in frames {
            state.kept_bytes += frame.bytes.len();
            state.kept.push_back(frame);
        }
        state.end = end;
        while state.kept.len() > MAX_KEPT_EVENTS || state.kept_bytes > MAX_KEPT_BYTES {
            let Some(oldest) = state.kept.pop_front() else { break };
            state.kept_bytes -= oldest.bytes.len();
            state.start = oldest.position;
        }
        drop(state);
        self.news.send_replace(end);
    }

    /// Forgets all events; the next ones come after this position.
    pub(super) fn skip_to(&self, position: u64) {
        let mut state = self.state();
        state.kept.clear();
        state.kept_bytes = 0;
        (state.start, state.end) = (position, position);
        drop(state);
        self.news.send_replace(position);
    }

    /// Sends a part of a live text to all listeners.
    pub(super) fn send_part(&self, part: Bytes) {
        // Without listeners it is dropped.
        let _ = self.parts.send(part);
    }

    /// Waits for listeners, or until the ledger must be told that none can answer any more. `None` if the hub is stopped.
    pub(super) fn wait_for_work(&self) -> Option<ListenerState> {
        let mut state = self.state();
        loop {
            if state.is_stopped {
                return None;
            }
            if state.listeners > 0 || state.last_answering_left.is_some() {
                return Some(state.listener_state());
            }
            state = self.wake.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Waits for a while, or until the hub is stopped.
    pub(super) fn pause(&self, time: Duration) {
        let state = self.state();
        if !state.is_stopped {
            drop(self.wake.wait_timeout_while(state, time, |state| !state.is_stopped));
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, HubState> {
        lock(&self.state)
    }
}

/// Who listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListenerState {
    pub(super) has_listeners: bool,
    /// Whether questions are shown to people who can answer them.
    pub(super) can_answer: bool,
}

impl HubState {
    fn listener_state(&mut self) -> ListenerState {
        if self.last_answering_left.is_some_and(|left| left.elapsed() > RELOAD_TIME) {
            self.last_answering_left = None;
        }
        let can_answer = self.answering > 0 || self.last_answering_left.is_some();
        ListenerState { has_listeners: self.listeners > 0, can_answer }
    }
}

impl Drop for EventListener {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        state.listeners -= 1;
        if self.role >= Role::Approve {
            state.answering -= 1;
            if state.answering == 0 {
                state.last_answering_left = Some(Instant::now());
            }
        }
    }
}
