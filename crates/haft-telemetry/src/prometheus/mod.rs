//! Metrics for Prometheus, from the ledger, whichever process wrote it.
//!
//! Counters start at zero with the process and continue from a position in the ledger, so neither their memory nor the cost of
//! a request grows with it. No label is a path, a command or another text of a user or model.

mod call_counters;
mod model_counters;
mod text;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use haft_ledger::{FeedItem, Ledger, LedgerStats};
use haft_tool::{ReceiptState, ToolError, lock, now_ms};

use call_counters::CallCounters;
use model_counters::ModelCounters;
use text::MetricsText;

/// How many rows are read at once.
const READ_COUNT: usize = 1_000;
/// How many rows are read for one request. The next request counts the rest.
const MAX_ROWS_PER_UPDATE: usize = 50_000;
/// How long the measured size of the ledger is reused: measuring takes time for each of its files.
const STATS_AGE: Duration = Duration::from_mins(1);

/// The metrics of a ledger, for `GET /metrics`.
pub struct LedgerMetrics {
    state: Mutex<LedgerMetricsState>,
}

struct LedgerMetricsState {
    calls: CallCounters,
    models: ModelCounters,
    /// The newest call that was read.
    call: i64,
    /// Earlier calls that had not ended when they were read.
    running: BTreeSet<i64>,
    /// The newest entry of the feed that was read.
    feed: u64,
    /// How often entries of the feed were gone before they were read.
    gaps: u64,
    stats: Option<(Instant, LedgerStats)>,
}

impl LedgerMetrics {
    /// Counters that start at zero and count what happens from now on.
    pub fn new(ledger: &Ledger) -> Result<Self, ToolError> {
        let running = ledger.running_call_ids()?.into_iter().collect();
        let state = LedgerMetricsState {
            calls: CallCounters::default(),
            models: ModelCounters::default(),
            call: ledger.newest_call()?,
            running,
            feed: ledger.feed_position()?,
            gaps: 0,
            stats: None,
        };
        Ok(Self { state: Mutex::new(state) })
    }

    /// The metrics in Prometheus' text format, version 0.0.4. Counts what has happened since the last request first, as far as
    /// the feed still has it.
    pub fn text(&self, ledger: &Ledger) -> Result<String, ToolError> {
        let mut state = lock(&self.state);
        state.count_calls(ledger)?;
        state.count_answers(ledger)?;
        state.text(ledger)
    }
}

impl LedgerMetricsState {
    fn count_calls(&mut self, ledger: &Ledger) -> Result<(), ToolError> {
        for id in self.running.clone() {
            let call = ledger.counted_call(id)?;
            if call.as_ref().is_some_and(|call| call.state == ReceiptState::Running) {
                continue;
            }
            self.running.remove(&id);
            if let Some(call) = call {
                self.calls.add(&call);
            }
        }
        for _ in 0..MAX_ROWS_PER_UPDATE / READ_COUNT {
            let read = ledger.counted_calls(self.call, READ_COUNT)?;
            for call in &read {
                if call.state == ReceiptState::Running {
                    self.running.insert(call.id);
                } else {
                    self.calls.add(call);
                }
            }
            self.call = read.last().map_or(self.call, |last| last.id);
            if read.len() < READ_COUNT {
                break;
            }
        }
        Ok(())
    }

    fn count_answers(&mut self, ledger: &Ledger) -> Result<(), ToolError> {
        for _ in 0..MAX_ROWS_PER_UPDATE / READ_COUNT {
            let Some(entries) = ledger.feed_after(self.feed, READ_COUNT)? else {
                self.gaps += 1;
                self.feed = ledger.feed_position()?;
                return Ok(());
            };
            for entry in &entries {
                if let FeedItem::Event(seq) = entry.item {
                    self.models.add(ledger, &entry.session, seq);
                }
            }
            self.feed = entries.last().map_or(self.feed, |last| last.position);
            if entries.len() < READ_COUNT {
                break;
            }
        }
        Ok(())
    }

    fn stats(&mut self, ledger: &Ledger) -> Result<LedgerStats, ToolError> {
        if let Some((at, stats)) = self.stats
            && at.elapsed() < STATS_AGE
        {
            return Ok(stats);
        }
        let stats = ledger.stats()?;
        self.stats = Some((Instant::now(), stats));
        Ok(stats)
    }

    fn text(&mut self, ledger: &Ledger) -> Result<String, ToolError> {
        let mut text = MetricsText::default();
        self.calls.write(&mut text);
        self.models.write(&mut text);
        text.counter(
            "haft_feed_gaps_total",
            "How often events were gone before they were counted.",
            self.gaps,
        );

        text.gauge("haft_calls_running", "Calls that run now.", ledger.running_call_ids()?.len() as u64);
        text.gauge("haft_runs_active", "Runs that a process drives now.", ledger.driven_runs()?.len() as u64);
        let questions = ledger.open_questions()?;
        text.gauge("haft_questions_waiting", "Questions that wait for a person.", questions.len() as u64);
        let oldest = questions.iter().map(|question| question.asked_at).min();
        let age = oldest.map_or(Duration::ZERO, |at| Duration::from_millis(now_ms().saturating_sub(at)));
        text.gauge_of(
            "haft_questions_oldest_seconds",
            "How long the oldest of them has waited.",
            age.as_secs_f64(),
        );
        let LedgerStats { receipts, sessions, blobs, bytes } = self.stats(ledger)?;
        text.gauge("haft_ledger_calls", "Calls in the ledger.", receipts);
        text.gauge("haft_ledger_sessions", "Sessions in the ledger.", sessions);
        text.gauge("haft_ledger_blobs", "Different file contents in the ledger.", blobs);
        text.gauge("haft_ledger_bytes", "The size of the ledger on the disk.", bytes);
        Ok(text.finish())
    }
}
