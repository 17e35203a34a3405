//! How much work one document may cause: every loop that a file can steer pays here.

use std::cell::Cell;

use crate::Fault;

/// Steps of parsing, interpreting and layout for all pages of one call.
const MOST_STEPS: u64 = 8_000_000;
/// Bytes that come out of filters for all pages of one call.
const MOST_BYTES: u64 = 128 << 20;
/// How often the caller is asked whether it still waits.
const STEPS_PER_LOOK: u64 = 4_096;

pub(crate) struct Budget<'a> {
    steps: Cell<u64>,
    bytes: Cell<u64>,
    since_look: Cell<u64>,
    stop: &'a dyn Fn() -> bool,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(stop: &'a dyn Fn() -> bool) -> Self {
        Self { steps: Cell::new(MOST_STEPS), bytes: Cell::new(MOST_BYTES), since_look: Cell::new(0), stop }
    }

    /// Pays for `count` steps.
    pub(crate) fn steps(&self, count: u64) -> Result<(), Fault> {
        self.steps.set(self.steps.get().checked_sub(count).ok_or(Fault::TooMuch)?);
        let since = self.since_look.get() + count;
        if since < STEPS_PER_LOOK {
            self.since_look.set(since);
            return Ok(());
        }
        self.since_look.set(0);
        if (self.stop)() { Err(Fault::Cancelled) } else { Ok(()) }
    }

    /// Pays for bytes that a filter made.
    pub(crate) fn bytes(&self, count: usize) -> Result<(), Fault> {
        self.bytes.set(self.bytes.get().checked_sub(count as u64).ok_or(Fault::TooMuch)?);
        self.steps(1 + count as u64 / 64)
    }
}
