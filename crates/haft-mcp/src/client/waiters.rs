//! Those who wait for answers that all come the same way.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use serde_json::Value;

use super::ear::Ear;
use super::patience::Patience;
use super::{ClientError, Trouble, lock};
use crate::wire::{Id, Message};

/// How many notes of progress wait to be heard; of more, the oldest are dropped.
const MOST_NOTES: usize = 32;

/// All who wait on one connection.
#[derive(Default)]
pub(super) struct Waiters(Mutex<State>);

#[derive(Default)]
struct State {
    open: HashMap<Id, Open>,
    /// Why there will be no more answers.
    ended: Option<ClientError>,
}

/// A question that has not been answered.
#[derive(Clone)]
struct Open {
    slot: Arc<Slot>,
    /// Whether somebody waits for the answer, and not only for whatever may come of it one day.
    soon: bool,
}

/// Where one answer comes.
#[derive(Default)]
struct Slot {
    state: Mutex<Arrived>,
    changed: Condvar,
}

#[derive(Default)]
struct Arrived {
    outcome: Option<Result<Value, ClientError>>,
    progress: VecDeque<Value>,
}

impl Waiters {
    /// Somebody is about to ask with this id, and needs the answer soon or has time for ever.
    pub(super) fn open(&self, id: &Id, soon: bool) -> Result<Waiting<'_>, ClientError> {
        let mut state = lock(&self.0);
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        let slot = Arc::new(Slot::default());
        state.open.insert(id.clone(), Open { slot: Arc::clone(&slot), soon });
        Ok(Waiting { waiters: self, id: id.clone(), slot })
    }

    /// An answer has come. Of two the first counts; one that nobody waits for is nobody's.
    pub(super) fn answer(&self, id: &Id, outcome: Result<Value, ClientError>) -> bool {
        let open = lock(&self.0).open.remove(id);
        open.map(|open| open.slot.fill(outcome)).is_some()
    }

    /// A note of progress has come, with a request's id for a token.
    pub(super) fn progress(&self, params: Value) {
        let slot = params
            .get("progressToken")
            .and_then(Id::read)
            .and_then(|id| lock(&self.0).open.get(&id).cloned());
        if let Some(Open { slot, .. }) = slot {
            let mut arrived = lock(&slot.state);
            if arrived.progress.len() == MOST_NOTES {
                arrived.progress.pop_front();
            }
            arrived.progress.push_back(params);
            slot.changed.notify_all();
        }
    }

    /// Takes a message that has come: an answer to whoever waits for it, the rest to `ear`.
    pub(super) fn take(&self, message: Message, ear: &Arc<Ear>) {
        match message {
            Message::Response { id: Some(id), outcome } => {
                self.answer(&id, outcome.map_err(ClientError::from));
            }
            Message::Response { id: None, .. } => {}
            Message::Notification { method, params } if method == "notifications/progress" => {
                self.progress(params);
            }
            // In the new era only this says that a server stops telling news; in the old one it is about its own questions.
            Message::Notification { method, params }
                if method == "notifications/cancelled" && !ear.may_be_asked() =>
            {
                if let Some(id) = params.get("requestId").and_then(Id::read) {
                    self.answer(&id, Err(ClientError::new(Trouble::Ended, "the server has ended it")));
                }
            }
            Message::Notification { method, params } => ear.note(&method, &params),
            Message::Request { id, method, params } => ear.request(id, method, params),
        }
    }

    /// Something came that may have been anybody's answer.
    pub(super) fn fail_all(&self, error: &ClientError) {
        let open = std::mem::take(&mut lock(&self.0).open);
        for Open { slot, .. } in open.values() {
            slot.fill(Err(error.clone()));
        }
    }

    /// Whether anybody waits for an answer.
    pub(super) fn somebody_waits(&self) -> bool {
        lock(&self.0).open.values().any(|open| open.soon)
    }

    /// Whether there will be no more answers.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.0).ended.is_some()
    }

    /// There will be no more answers. Only the first reason counts.
    pub(super) fn end(&self, error: ClientError) {
        let (open, error) = {
            let mut state = lock(&self.0);
            let error = state.ended.get_or_insert(error).clone();
            (std::mem::take(&mut state.open), error)
        };
        for Open { slot, .. } in open.values() {
            slot.fill(Err(error.clone()));
        }
    }
}

impl Slot {
    fn fill(&self, outcome: Result<Value, ClientError>) {
        lock(&self.state).outcome.get_or_insert(outcome);
        self.changed.notify_all();
    }
}

/// One who waits; gone, nobody does.
pub(super) struct Waiting<'a> {
    waiters: &'a Waiters,
    id: Id,
    slot: Arc<Slot>,
}

impl Waiting<'_> {
    /// Whether the answer is here.
    pub(super) fn has_come(&self) -> bool {
        lock(&self.slot.state).outcome.is_some()
    }

    /// Waits for the answer, hearing of its progress meanwhile.
    pub(super) fn wait(self, method: &str, patience: &Patience<'_>) -> Result<Value, ClientError> {
        let slot = Arc::clone(&self.slot);
        let _guard = patience.cancel.on_cancel(move || {
            drop(lock(&slot.state));
            slot.changed.notify_all();
        });
        let mut arrived = lock(&self.slot.state);
        loop {
            let notes = std::mem::take(&mut arrived.progress);
            if !notes.is_empty() {
                drop(arrived);
                for note in &notes {
                    patience.hear(note);
                }
                arrived = lock(&self.slot.state);
            }
            // Nothing comes behind an answer, so what came before it has been heard when there is no more.
            if arrived.progress.is_empty()
                && let Some(outcome) = arrived.outcome.take()
            {
                return outcome;
            }
            let left = patience.left(method)?;
            if arrived.progress.is_empty() {
                let woken = self.slot.changed.wait_timeout(arrived, left);
                arrived = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.waiters.0).open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use haft_tool::Cancel;
    use serde_json::json;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn waited(waiters: &Waiters, id: i64, act: impl FnOnce(&Waiters)) -> Result<Value, ClientError> {
        let waiting = waiters.open(&Id::Number(id), true)?;
        act(waiters);
        waiting.wait("test", &Patience::of(LONG, &Cancel::new()))
    }

    #[test]
    fn an_answer_finds_its_question_by_id_and_type_and_the_first_one_counts() {
        let waiters = Waiters::default();
        let answer = waited(&waiters, 5, |waiters| {
            assert!(!waiters.answer(&Id::Text("5".to_owned()), Ok(json!("text"))));
            assert!(!waiters.answer(&Id::Number(6), Ok(json!("other"))));
            assert!(waiters.answer(&Id::Number(5), Ok(json!("first"))));
            assert!(!waiters.answer(&Id::Number(5), Ok(json!("second"))));
        });
        assert_eq!(answer.unwrap(), "first");
    }

    #[test]
    fn who_was_given_up_gets_nothing_and_who_comes_after_the_end_hears_of_it() {
        let waiters = Waiters::default();
        drop(waiters.open(&Id::Number(1), true));
        assert!(!waiters.answer(&Id::Number(1), Ok(json!("late"))));
        let garbled = ClientError::garbled("?");
        assert_eq!(waited(&waiters, 2, |waiters| waiters.fail_all(&garbled)), Err(garbled));
        assert_eq!(
            waited(&waiters, 3, |waiters| assert!(waiters.answer(&Id::Number(3), Ok(json!(3))))),
            Ok(json!(3))
        );
        let ended = ClientError::new(Trouble::Ended, "first");
        let end = |waiters: &Waiters| {
            waiters.end(ended.clone());
            waiters.end(ClientError::new(Trouble::Closed, "second"));
        };
        assert_eq!(waited(&waiters, 4, end), Err(ended.clone()));
        assert_eq!(waited(&waiters, 5, |_| ()), Err(ended));
    }

    #[test]
    fn progress_is_heard_in_order_before_the_answer_and_never_without_bound() {
        let waiters = Waiters::default();
        let heard = RefCell::new(Vec::new());
        let waiting = waiters.open(&Id::Number(1), true).unwrap();
        for step in [1.0, 3.0, 2.0, 4.0] {
            waiters.progress(json!({"progressToken": 1, "progress": step}));
        }
        waiters.progress(json!({"progressToken": "1", "progress": 9}));
        waiters.progress(json!({"progressToken": 1, "progress": "half"}));
        waiters.answer(&Id::Number(1), Ok(json!({})));
        let cancel = Cancel::new();
        let hear = |progress: &super::super::Progress| heard.borrow_mut().push(progress.progress);
        waiting.wait("test", &Patience::stretching(LONG, LONG, &cancel, &hear)).unwrap();
        assert_eq!(*heard.borrow(), [1.0, 3.0, 4.0]);
        let _waiting = waiters.open(&Id::Number(2), true).unwrap();
        for step in 0..1000 {
            waiters.progress(json!({"progressToken": 2, "progress": step}));
        }
        assert_eq!(lock(&lock(&waiters.0).open[&Id::Number(2)].slot.state).progress.len(), MOST_NOTES);
    }

    #[test]
    fn no_flood_of_progress_keeps_a_wait_from_ending() {
        let (waiters, stop) = (Waiters::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let waiting = waiters.open(&Id::Number(1), true).unwrap();
            scope.spawn(|| {
                for step in 0_u64.. {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    waiters.progress(json!({"progressToken": 1, "progress": step}));
                }
            });
            let (cancel, limit) = (Cancel::new(), Duration::from_millis(50));
            let late = waiting.wait("test", &Patience::stretching(limit, limit, &cancel, &|_| {}));
            stop.store(true, Ordering::SeqCst);
            assert_eq!(late.unwrap_err().kind, Trouble::Late);
        });
    }

    #[test]
    fn a_wait_ends_with_its_time_or_when_it_is_cancelled() {
        let waiters = Waiters::default();
        let cancel = Cancel::new();
        let waiting = waiters.open(&Id::Number(1), true).unwrap();
        let late = waiting.wait("test", &Patience::of(Duration::from_millis(5), &cancel));
        assert_eq!(late.unwrap_err().kind, Trouble::Late);
        let waiting = waiters.open(&Id::Number(2), true).unwrap();
        let other = cancel.clone();
        let canceller = std::thread::spawn(move || other.cancel());
        assert_eq!(waiting.wait("test", &Patience::of(LONG, &cancel)).unwrap_err().kind, Trouble::Cancelled);
        canceller.join().unwrap();
    }
}
