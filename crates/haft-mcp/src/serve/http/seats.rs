//! Room for connections: only so many, and whoever says nothing makes room for whoever comes.
//!
//! A client that opens connections and is slow to ask for something, by accident or on purpose, keeps a seat only as long as
//! nobody else wants it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::serve::peer::lock;

/// All the seats.
pub(super) struct Seats {
    most: usize,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    taken: usize,
    numbers: u64,
    /// Those who have not said what they want, the longest first.
    silent: BTreeMap<u64, Arc<Notify>>,
}

/// One seat.
pub(super) struct Seat {
    seats: Arc<Seats>,
    leave: Arc<Notify>,
    /// Under which number the seat is among the silent ones.
    silent: Mutex<Option<u64>>,
}

/// For as long as this lives somebody works for whoever has the seat.
pub(super) struct Busy(Arc<Seat>);

impl Seats {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, inside: Mutex::default() })
    }

    /// A seat, if there is one or somebody gives up theirs.
    pub(super) fn take(self: &Arc<Self>) -> Option<Arc<Seat>> {
        let leave = Arc::new(Notify::new());
        let mut inside = lock(&self.inside);
        if inside.taken >= self.most {
            let (_, longest) = inside.silent.pop_first()?;
            longest.notify_one();
            // The seat changes hands at once, even if its holder takes a moment to leave.
            inside.taken -= 1;
        }
        inside.taken += 1;
        let number = inside.add(&leave);
        drop(inside);
        Some(Arc::new(Seat { seats: Arc::clone(self), leave, silent: Mutex::new(Some(number)) }))
    }
}

impl Inside {
    fn add(&mut self, leave: &Arc<Notify>) -> u64 {
        self.numbers += 1;
        self.silent.insert(self.numbers, Arc::clone(leave));
        self.numbers
    }
}

impl Seat {
    /// Returns when somebody else has got the seat.
    pub(super) async fn given_away(&self) {
        self.leave.notified().await;
    }

    /// Whoever has the seat has said what they want; none if the seat is somebody else's by now.
    pub(super) fn busy(self: &Arc<Self>) -> Option<Busy> {
        let number = lock(&self.silent).take()?;
        lock(&self.seats.inside).silent.remove(&number)?;
        Some(Busy(Arc::clone(self)))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut silent = lock(&self.0.silent);
        *silent = Some(lock(&self.0.seats.inside).add(&self.0.leave));
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut inside = lock(&self.seats.inside);
        // One who is neither silent nor busy has given the seat away.
        if lock(&self.silent).take().is_some_and(|number| inside.silent.remove(&number).is_some()) {
            inside.taken -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_silent_the_longest_makes_room_and_who_is_busy_does_not() {
        let seats = Seats::new(2);
        let first = seats.take().unwrap();
        let second = seats.take().unwrap();
        let working = first.busy().unwrap();
        let third = seats.take().unwrap();
        assert!(second.busy().is_none(), "the second was silent and lost its seat");
        let also_working = third.busy().unwrap();
        assert!(seats.take().is_none(), "everybody works");
        drop(second);
        assert!(seats.take().is_none(), "who lost a seat frees none");
        drop(also_working);
        drop(third);
        let fourth = seats.take().unwrap();
        drop(working);
        drop(first);
        let fifth = seats.take().unwrap();
        assert!(fourth.busy().is_some() && fifth.busy().is_some(), "there was room for both");
    }
}
