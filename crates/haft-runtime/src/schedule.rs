//! Which calls may run at the same time: those whose effects cannot conflict. The others keep their order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use haft_tool::{Effect, conflicts, lock};
use tokio::sync::Notify;

/// The number last given out, and the calls that have not ended.
type Line = (u64, VecDeque<(u64, Vec<Effect>)>);

#[derive(Default)]
struct Inner {
    queue: Mutex<Line>,
    freed: Notify,
}

/// The calls that are under way, in the order they came.
#[derive(Clone, Default)]
pub(crate) struct Schedule(Arc<Inner>);

/// A place in the queue; dropping it lets those behind go on.
pub(crate) struct Ticket {
    inner: Arc<Inner>,
    number: u64,
}

impl Schedule {
    /// Takes a place behind every call that came before.
    pub(crate) fn enter(&self, effects: &[Effect]) -> Ticket {
        let mut queue = lock(&self.0.queue);
        queue.0 += 1;
        let number = queue.0;
        queue.1.push_back((number, effects.to_vec()));
        Ticket { inner: Arc::clone(&self.0), number }
    }
}

impl Ticket {
    /// Waits until no earlier call conflicts with this one.
    pub(crate) async fn turn(&self) {
        loop {
            let freed = self.inner.freed.notified();
            let mut freed = std::pin::pin!(freed);
            freed.as_mut().enable();
            if !self.blocked() {
                return;
            }
            freed.await;
        }
    }

    /// Lets those behind go on.
    pub(crate) fn leave(&self) {
        let mut queue = lock(&self.inner.queue);
        queue.1.retain(|(number, _)| *number != self.number);
        drop(queue);
        self.inner.freed.notify_waiters();
    }

    fn blocked(&self) -> bool {
        let queue = lock(&self.inner.queue);
        let Some((_, mine)) = queue.1.iter().find(|(number, _)| *number == self.number) else { return false };
        queue
            .1
            .iter()
            .take_while(|(number, _)| *number < self.number)
            .any(|(_, earlier)| conflicts(earlier, mine))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.leave();
    }
}
