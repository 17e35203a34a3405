//! What the program that drives the run has sent and Haft has not handled yet.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

use haft_compat::stream::UserLine;
use haft_tool::{Value, lock};
use serde_json::Map;

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
    /// Adds a message of the user; false if too many wait.
    pub(super) fn add_prompt(&self, prompt: UserLine) -> bool {
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

    /// The ids of the messages that wait. They are dropped if that is asked for.
    pub(super) fn queued(&self, drops: bool) -> Vec<String> {
        let mut state = lock(&self.state);
        let ids = state.prompts.iter().filter_map(|prompt| prompt.uuid.clone()).collect();
        if drops {
            state.prompts.clear();
        }
        ids
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

    /// Waits for the next message of the user, or until `is_ready`.
    pub(super) fn next_prompt(&self, is_ready: &dyn Fn() -> bool) -> NextInput {
        let mut state = lock(&self.state);
        loop {
            if state.is_ended {
                return NextInput::End;
            }
            if let Some(prompt) = state.prompts.pop_front() {
                return NextInput::Prompt(prompt);
            }
            if state.is_closed {
                return NextInput::End;
            }
            if is_ready() {
                return NextInput::Ready;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
