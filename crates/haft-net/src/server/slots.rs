//! Limits the number of connections. When all slots are taken, the connection that has been idle the longest is closed, so
//! that idle connections cannot lock out active clients.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use haft_tool::lock;
use tokio::sync::Notify;

/// All slots.
pub(super) struct ConnectionSlots {
    max: usize,
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    taken: usize,
    last_number: u64,
    /// Idle connections, the longest idle first.
    idle: BTreeMap<u64, Arc<Notify>>,
}

/// The slot of one connection.
pub struct ConnectionSlot {
    peer: SocketAddr,
    slots: Arc<ConnectionSlots>,
    evicted: Arc<Notify>,
    /// The key in [`SlotState::idle`]; `None` while a request is active.
    idle_number: Mutex<Option<u64>>,
}

/// Keeps a connection from being evicted.
pub struct ActiveRequest(Arc<ConnectionSlot>);

impl ConnectionSlots {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, state: Mutex::default() })
    }

    /// Takes a free slot, or that of the longest idle connection. `None` if all connections are active.
    pub(super) fn take(self: &Arc<Self>, peer: SocketAddr) -> Option<Arc<ConnectionSlot>> {
        let evicted = Arc::new(Notify::new());
        let mut state = lock(&self.state);
        if state.taken >= self.max {
            let (_, longest_idle) = state.idle.pop_first()?;
            longest_idle.notify_one();
            // Its slot is free at once, although the connection takes a moment to close.
            state.taken -= 1;
        }
        state.taken += 1;
        let number = state.add_idle(&evicted);
        drop(state);
        let idle_number = Mutex::new(Some(number));
        Some(Arc::new(ConnectionSlot { peer, slots: Arc::clone(self), evicted, idle_number }))
    }
}

impl SlotState {
    fn add_idle(&mut self, evicted: &Arc<Notify>) -> u64 {
        self.last_number += 1;
        self.idle.insert(self.last_number, Arc::clone(evicted));
        self.last_number
    }
}

impl ConnectionSlot {
    /// The address of the client.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns when the connection has lost its slot.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Marks the connection as active. `None` if it has lost its slot.
    pub fn activate(self: &Arc<Self>) -> Option<ActiveRequest> {
        let number = lock(&self.idle_number).take()?;
        lock(&self.slots.state).idle.remove(&number)?;
        Some(ActiveRequest(Arc::clone(self)))
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut idle_number = lock(&self.0.idle_number);
        *idle_number = Some(lock(&self.0.slots.state).add_idle(&self.0.evicted));
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut state = lock(&self.slots.state);
        // An evicted connection is no longer among the idle ones, and has no slot to free.
        if lock(&self.idle_number).take().is_some_and(|number| state.idle.remove(&number).is_some()) {
            state.taken -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_idle_connection_is_evicted_and_active_ones_are_not() {
        let slots = ConnectionSlots::new(2);
        let peer = SocketAddr::from(([127, 0, 0, 1], 4711));
        let first = slots.take(peer).unwrap();
        let second = slots.take(peer).unwrap();
        let active = first.activate().unwrap();
        let third = slots.take(peer).unwrap();
        assert!(second.activate().is_none(), "the second was idle and lost its slot");
        let also_active = third.activate().unwrap();
        assert!(slots.take(peer).is_none(), "all are active");
        drop(second);
        assert!(slots.take(peer).is_none(), "an evicted connection frees no slot");
        drop(also_active);
        drop(third);
        let fourth = slots.take(peer).unwrap();
        drop(active);
        drop(first);
        let fifth = slots.take(peer).unwrap();
        assert!(fourth.activate().is_some() && fifth.activate().is_some(), "there was a slot for both");
    }
}
