//! One processor for the witness and a program that opens file after file.
//!
//! To hand a descriptor over, the kernel wakes the program and then the witness, and puts each on an idle processor if
//! there is one. To wake that takes longer than all the rest. So while one thread calls in quick succession, the witness
//! stays where it is, and the thread is held there for the moment of the handing over: before it goes on, it may run
//! again wherever it might before.

use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Calls further apart than this are not in quick succession.
const CLOSE: Duration = Duration::from_millis(1);
/// So many of them make it worth while.
const ENOUGH: u32 = 8;

/// Who called last, and how often in quick succession.
#[derive(Default)]
pub(super) struct Pairing {
    caller: i32,
    last: Option<Instant>,
    calls: u32,
    /// The processor that the witness stays on, and where else it might run.
    here: Option<(usize, CpuSet)>,
}

/// A thread that is held on the witness's processor until this is dropped.
pub(super) struct Held {
    thread: Option<Pid>,
    before: CpuSet,
}

impl Drop for Held {
    fn drop(&mut self) {
        // A thread that is gone needs no processor.
        let _ = sched_setaffinity(self.thread, &self.before);
    }
}

impl Pairing {
    /// Notes a handing over to `thread`, and holds it if that is worth while.
    pub(super) fn hold(&mut self, thread: i32) -> Option<Held> {
        let now = Instant::now();
        let close = self.caller == thread && self.last.is_some_and(|last| now - last < CLOSE);
        (self.caller, self.last) = (thread, Some(now));
        self.calls = if close { self.calls.saturating_add(1) } else { 0 };
        if self.calls < ENOUGH {
            self.part();
            return None;
        }
        let processor = self.stay()?;
        let thread = Pid::from_raw(thread);
        let before = sched_getaffinity(thread).ok()?;
        if !before.is_set(processor) || before.count() < 2 {
            return None;
        }
        sched_setaffinity(thread, &only(processor)).ok()?;
        Some(Held { thread, before })
    }

    /// Stays on this processor, which the program called from.
    fn stay(&mut self) -> Option<usize> {
        if let Some((processor, _)) = self.here {
            return Some(processor);
        }
        let (processor, before) = (sched_getcpu(), sched_getaffinity(None).ok()?);
        sched_setaffinity(None, &only(processor)).ok()?;
        self.here = Some((processor, before));
        Some(processor)
    }

    /// Runs wherever there is room again. Threads that the witness starts would stay where it does.
    pub(super) fn part(&mut self) {
        if let Some((_, before)) = self.here.take() {
            let _ = sched_setaffinity(None, &before);
        }
    }
}

fn only(processor: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(processor);
    set
}
