//! The thread that follows the ledger while anyone listens.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_ledger::FeedItem;
use haft_tool::{ToolError, lock};

use super::hub::Hub;
use super::live::LiveTexts;
use super::render;

/// How often the feed is read.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How often live texts are read.
const LIVE_INTERVAL: Duration = Duration::from_millis(100);
/// How often the ledger is checked for dead processes.
const DEAD_INTERVAL: Duration = Duration::from_secs(1);
/// How often the ledger is told that this server shows questions. Short enough that no question is given up after the machine was
/// suspended.
const ANSWERING_INTERVAL: Duration = Duration::from_secs(20);
/// The longest time between two attempts to recover calls.
const MAX_RECOVERY_INTERVAL: Duration = Duration::from_mins(1);
/// Feed entries per read.
const READ_ENTRIES: usize = 500;
/// If more has happened while there were no listeners, it is not rendered; clients read it from the ledger.
const MAX_MISSED_ENTRIES: u64 = 1_000;

/// Follows the ledger until the hub is stopped.
pub(super) fn run(hub: &Arc<Hub>) {
    let mut follower = Follower::new(hub);
    while let Some(listeners) = hub.wait_for_work() {
        if let Err(error) = follower.step(listeners.can_answer, listeners.has_listeners) {
            tracing::warn!(%error, "the ledger cannot be followed at the moment");
            hub.pause(DEAD_INTERVAL);
        }
        hub.pause(POLL_INTERVAL);
    }
    if follower.can_answer {
        // If this fails, the entry ends with the process.
        let _ = hub.ledger.set_answering(false);
    }
}

struct Follower<'a> {
    hub: &'a Arc<Hub>,
    texts: LiveTexts,
    looked_at_texts: Option<Instant>,
    looked_for_dead: Option<Instant>,
    /// Whether the ledger says that this server shows questions to people who can answer them.
    can_answer: bool,
    noted_answering: Option<Instant>,
    recovery: Arc<Mutex<RecoveryState>>,
}

/// How the recovery of dead processes' calls is going.
#[derive(Default)]
struct RecoveryState {
    is_running: bool,
    /// Failures since the last success, and the time of the latest one.
    failures: u32,
    failed_at: Option<Instant>,
}

impl RecoveryState {
    /// Begins a recovery, unless one is under way or failed recently; returns whether it did.
    fn begin(&mut self) -> bool {
        let is_too_early = self.failed_at.is_some_and(|at| at.elapsed() < pause_after(self.failures));
        let begins = !self.is_running && !is_too_early;
        self.is_running |= begins;
        begins
    }

    fn end(&mut self, has_failed: bool) {
        self.is_running = false;
        self.failures = if has_failed { self.failures.saturating_add(1) } else { 0 };
        self.failed_at = has_failed.then(Instant::now);
    }
}

/// The wait after a number of failures. It doubles each time, because wrong settings stay wrong until they are edited.
fn pause_after(failures: u32) -> Duration {
    DEAD_INTERVAL.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX)).min(MAX_RECOVERY_INTERVAL)
}

impl<'a> Follower<'a> {
    fn new(hub: &'a Arc<Hub>) -> Self {
        Self {
            hub,
            texts: LiveTexts::default(),
            looked_at_texts: None,
            looked_for_dead: None,
            can_answer: false,
            noted_answering: None,
            recovery: Arc::default(),
        }
    }

    fn step(&mut self, can_answer: bool, has_listeners: bool) -> Result<(), ToolError> {
        let ledger = &self.hub.ledger;
        if can_answer != self.can_answer
            || (can_answer && is_due(&mut self.noted_answering, ANSWERING_INTERVAL))
        {
            ledger.set_answering(can_answer)?;
            self.can_answer = can_answer;
        }
        if !has_listeners {
            return Ok(());
        }
        if is_due(&mut self.looked_for_dead, DEAD_INTERVAL) && ledger.forget_dead_processes()? {
            self.recover();
        }
        if self.follow_feed()? || is_due(&mut self.looked_at_texts, LIVE_INTERVAL) {
            self.texts.poll(ledger, |part| self.hub.send_part(part))?;
        }
        Ok(())
    }

    /// Renders the next feed entries; returns whether there were any.
    fn follow_feed(&mut self) -> Result<bool, ToolError> {
        let ledger = &self.hub.ledger;
        let end = self.hub.state().end;
        let newest = ledger.feed_position()?;
        if newest == end {
            return Ok(false);
        }
        if newest < end || newest - end > MAX_MISSED_ENTRIES {
            self.hub.skip_to(newest);
            return Ok(true);
        }
        match ledger.feed_after(end, READ_ENTRIES)? {
            Some(entries) => {
                // An answer with an event is complete; the next one begins at 0.
                self.texts
                    .forget_answers(entries.iter().filter(|entry| matches!(entry.item, FeedItem::Event(_))));
                let (frames, reached) = render::frames(ledger, &entries, end)?;
                self.hub.push(frames, reached);
            }
            None => self.hub.skip_to(newest),
        }
        Ok(true)
    }

    /// Recovers dead processes' calls on a separate thread, because recovery waits for what they left running.
    fn recover(&self) {
        if !lock(&self.recovery).begin() {
            return;
        }
        let (hub, recovery) = (Arc::clone(self.hub), Arc::clone(&self.recovery));
        let started = std::thread::Builder::new().name("haft-recovery".to_owned()).spawn(move || {
            let recovered = hub.backend.runtime(&hub.workspace, None).and_then(|runtime| runtime.recover());
            if let Err(error) = &recovered {
                tracing::warn!(%error, "calls of processes that have died cannot be recovered");
            }
            lock(&recovery).end(recovered.is_err());
        });
        if started.is_err() {
            lock(&self.recovery).end(true);
        }
    }
}

/// Whether the interval has passed since this last returned true.
fn is_due(last: &mut Option<Instant>, interval: Duration) -> bool {
    if last.is_some_and(|last| last.elapsed() < interval) {
        return false;
    }
    *last = Some(Instant::now());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_that_fails_is_tried_less_and_less_often() {
        let seconds = |failures| pause_after(failures).as_secs();
        assert_eq!([1, 2, 3, 6, 40].map(seconds), [2, 4, 8, 60, 60]);
        let mut recovery = RecoveryState::default();
        assert!(recovery.begin());
        assert!(!recovery.begin(), "it is under way");
        recovery.end(true);
        assert!(!recovery.begin(), "it has just failed");
        recovery.end(false);
        assert!(recovery.begin());
    }
}
