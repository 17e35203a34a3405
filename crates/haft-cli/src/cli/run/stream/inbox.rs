//! What the program that drives the run has sent and Haft has not handled yet, and the turn that handles a message now. Both are behind
//! one lock, so that a message always either waits or has a turn that can be stopped.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

use haft_compat::stream::UserLine;
use haft_tool::{Cancel, Value, lock};
use serde_json::Map;

use super::ids::new_uuid;

/// Messages that may wait. A program that sends more does not read the answers.
const MAX_PROMPTS: usize = 1_000;
/// Requests that may wait.
const MAX_REQUESTS: usize = 10_000;

/// A request of the program with its id.
pub(super) type HostRequestLine = (String, Map<String, Value>);

/// What waits to be handled.
#[derive(Default)]
pub(super) struct HostInbox {
    state: Mutex<InboxState>,
    changed: Condvar,
}

#[derive(Default)]
struct InboxState {
    prompts: VecDeque<UserLine>,
    requests: VecDeque<HostRequestLine>,
    /// Stops the turn that is under way.
    turn: Option<Cancel>,
    /// A rewind is under way; no turn begins meanwhile.
    is_rewinding: bool,
    /// The program sends nothing more.
    is_closed: bool,
    /// The run ends, whatever is still to come.
    is_ended: bool,
}

/// What comes next.
pub(super) enum NextInput {
    Prompt(UserLine),
    /// What was waited for has happened.
    Ready,
    /// Nothing more comes.
    End,
}

impl HostInbox {
    /// Adds a message of the user, which gets an id if it has none; false if too many wait.
    pub(super) fn add_prompt(&self, mut prompt: UserLine) -> bool {
        prompt.uuid.get_or_insert_with(new_uuid);
        let mut state = lock(&self.state);
        let has_room = state.prompts.len() < MAX_PROMPTS;
        if has_room {
            state.prompts.push_back(prompt);
            self.changed.notify_all();
        }
        has_room
    }

    /// Adds a request; false if too many wait.
    pub(super) fn add_request(&self, request: HostRequestLine) -> bool {
        let mut state = lock(&self.state);
        let has_room = state.requests.len() < MAX_REQUESTS;
        if has_room {
            state.requests.push_back(request);
            self.changed.notify_all();
        }
        has_room
    }

    /// The ids of the messages that wait, which are dropped if that is asked for, and what stops the turn that is under way.
    pub(super) fn queued(&self, drops: bool) -> (Vec<String>, Option<Cancel>) {
        let mut state = lock(&self.state);
        let ids = state.prompts.iter().filter_map(|prompt| prompt.uuid.clone()).collect();
        if drops {
            state.prompts.clear();
        }
        (ids, state.turn.clone())
    }

    /// What stops the turn that is under way.
    pub(super) fn turn(&self) -> Option<Cancel> {
        lock(&self.state).turn.clone()
    }

    /// The turn begins, if it did not begin when its message was taken; the result stops it.
    pub(super) fn begin_turn(&self) -> Cancel {
        let mut state = lock(&self.state);
        while state.is_rewinding {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.turn.get_or_insert_with(Cancel::new).clone()
    }

    pub(super) fn end_turn(&self) {
        lock(&self.state).turn = None;
    }

    /// Keeps turns from beginning until the result is dropped; `None` if one is under way or a message waits for its own.
    pub(super) fn begin_rewind(&self) -> Option<OpenRewind<'_>> {
        let mut state = lock(&self.state);
        let is_free = state.turn.is_none() && state.prompts.is_empty();
        state.is_rewinding |= is_free;
        // Only made if it is free: its end takes the lock.
        is_free.then(|| OpenRewind(self))
    }

    /// Puts a request back to where it was taken from.
    pub(super) fn return_request(&self, request: HostRequestLine) {
        lock(&self.state).requests.push_front(request);
    }

    /// The program sends nothing more.
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    /// The run ends.
    pub(super) fn end(&self) {
        lock(&self.state).is_ended = true;
        self.changed.notify_all();
    }

    /// Lets those who wait look again.
    pub(super) fn wake(&self) {
        let _state = lock(&self.state);
        self.changed.notify_all();
    }

    /// Waits until the program has sent something: its first request, or `None` if a message came first or nothing comes.
    pub(super) fn first_request(&self) -> Option<HostRequestLine> {
        let mut state = lock(&self.state);
        loop {
            if let Some(request) = state.requests.pop_front() {
                return Some(request);
            }
            if !state.prompts.is_empty() || state.is_closed || state.is_ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the next request; `None` if the run has ended.
    pub(super) fn next_request(&self) -> Option<HostRequestLine> {
        let mut state = lock(&self.state);
        loop {
            if let Some(request) = state.requests.pop_front() {
                return Some(request);
            }
            if state.is_ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the next message of the user, whose turn begins when it is taken, or until `is_ready`.
    pub(super) fn next_prompt(&self, is_ready: &dyn Fn() -> bool) -> NextInput {
        let mut state = lock(&self.state);
        loop {
            if state.is_ended {
                return NextInput::End;
            }
            if !state.is_rewinding
                && let Some(prompt) = state.prompts.pop_front()
            {
                state.turn = Some(Cancel::new());
                return NextInput::Prompt(prompt);
            }
            let is_empty = state.prompts.is_empty();
            if is_empty && state.is_closed {
                return NextInput::End;
            }
            if is_empty && is_ready() {
                return NextInput::Ready;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A rewind that is under way until this is dropped.
pub(super) struct OpenRewind<'a>(&'a HostInbox);

impl Drop for OpenRewind<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).is_rewinding = false;
        self.0.changed.notify_all();
    }
}
