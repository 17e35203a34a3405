//! The thread that makes spans from what this process writes to its ledger, and sends them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use haft_ledger::{Ledger, LedgerWrite, ReceiptQuery, SessionInfo};
use haft_tool::{ToolError, lock, now_ms};

use crate::call_span::call_span;
use crate::content::ContentCapture;
use crate::old_session::read_events;
use crate::partial_success::RejectedItems;
use crate::run_spans::RunSpans;
use crate::sender::{OtlpSender, SendError};
use crate::span::{ExportedSpan, ms_to_ns};
use crate::span_metrics::SpanMetrics;
use crate::span_queue::SpanQueue;

/// How many writes may wait to be read. More than that come only if the collector does not answer while very many calls are
/// made.
const MAX_QUEUED_WRITES: u64 = 10_000;
/// How long spans wait to be sent together with others.
const BATCH_INTERVAL: Duration = Duration::from_secs(1);
const METRICS_INTERVAL: Duration = Duration::from_mins(1);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// How many sessions are remembered.
const MAX_KNOWN_SESSIONS_COUNT: usize = 1_000;
/// How many runs are kept between their turns, so that a new turn does not have to read all earlier ones.
const MAX_IDLE_RUNS_COUNT: usize = 100;
/// How many events are read at once.
const READ_COUNT: usize = 200;

/// What an exporter needs.
pub struct ExporterParts {
    /// Sends requests to the collector.
    pub sender: OtlpSender,
    /// Adds contents to spans, if the user wants them sent.
    pub content: Option<ContentCapture>,
    /// Opens the ledger, on the exporter's thread.
    pub open_ledger: Box<dyn FnOnce() -> Result<Ledger, ToolError> + Send>,
}

/// Sends the spans of this process while it runs.
pub struct Exporter {
    messages: Sender<ExporterMessage>,
    shared: Arc<ExportCounts>,
    ended: Mutex<Receiver<ExportReport>>,
}

/// What was not sent when the process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// How many spans were not sent.
    pub unsent_spans: u64,
    /// Why something was not sent.
    pub problem: Option<String>,
}

enum ExporterMessage {
    Call {
        session: String,
        call: i64,
    },
    Event {
        session: String,
        seq: u64,
    },
    /// Ends the thread, at the latest at this time.
    End {
        until: Instant,
        limit: Duration,
    },
}

#[derive(Default)]
struct ExportCounts {
    queued_writes: AtomicU64,
    lost_writes: AtomicU64,
    /// Spans that were made and not sent.
    unsent_spans: AtomicU64,
}

impl Exporter {
    /// Starts the thread.
    pub fn start(parts: ExporterParts) -> Result<Self, ToolError> {
        let (messages, received) = channel();
        let (report, ended) = channel();
        let shared = Arc::<ExportCounts>::default();
        let counts = Arc::clone(&shared);
        let work = move || {
            let thread = ExporterThread::new(parts, received, counts);
            // The process may no longer wait for the report.
            let _ = report.send(thread.run());
        };
        let spawned = thread::Builder::new().name("haft-telemetry".to_owned()).spawn(work);
        spawned.map_err(|error| ToolError::io("start a thread for telemetry", &error))?;
        Ok(Self { messages, shared, ended: Mutex::new(ended) })
    }

    /// Tells the exporter what was written. Does not block.
    pub fn on_write(&self, write: &LedgerWrite<'_>) {
        let message = match *write {
            LedgerWrite::CallEnded { session, call } => {
                ExporterMessage::Call { session: session.to_owned(), call }
            }
            LedgerWrite::Event { session, seq } => {
                ExporterMessage::Event { session: session.to_owned(), seq }
            }
            _ => return,
        };
        let shared = &self.shared;
        if shared.queued_writes.fetch_add(1, Ordering::Relaxed) >= MAX_QUEUED_WRITES {
            shared.queued_writes.fetch_sub(1, Ordering::Relaxed);
            shared.lost_writes.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // The thread has ended only if the process is about to.
        let _ = self.messages.send(message);
    }

    /// Has everything left sent, and waits for that for at most `limit`.
    pub fn end(&self, limit: Duration) -> ExportReport {
        let until = Instant::now() + limit;
        let _ = self.messages.send(ExporterMessage::End { until, limit });
        lock(&self.ended).recv_timeout(limit).unwrap_or_else(|_| ExportReport {
            unsent_spans: self.shared.unsent_spans.load(Ordering::Relaxed),
            problem: Some(too_late(limit)),
        })
    }
}

struct ExporterThread {
    sender: OtlpSender,
    content: Option<ContentCapture>,
    open_ledger: Option<Box<dyn FnOnce() -> Result<Ledger, ToolError> + Send>>,
    ledger: Option<Ledger>,
    messages: Receiver<ExporterMessage>,
    shared: Arc<ExportCounts>,
    sessions: KnownSessions,
    /// The runs that have or had a turn under way.
    runs: HashMap<String, RunSpans>,
    queue: SpanQueue,
    metrics: SpanMetrics,
    started_ns: u64,
    /// When spans are sent next, if any are waiting.
    send_at: Option<Instant>,
    metrics_at: Instant,
    retry_interval: Duration,
    /// How many spans the collector has refused.
    refused: u64,
    /// Why spans were not sent.
    problem: Option<String>,
    /// Why the last metrics were not sent.
    metrics_problem: Option<String>,
}

impl ExporterThread {
    fn new(parts: ExporterParts, messages: Receiver<ExporterMessage>, shared: Arc<ExportCounts>) -> Self {
        let started_ns = ms_to_ns(now_ms());
        let instance = format!("{}-{started_ns}", std::process::id());
        Self {
            sender: parts.sender.with_instance(&instance),
            content: parts.content,
            open_ledger: Some(parts.open_ledger),
            ledger: None,
            messages,
            shared,
            sessions: KnownSessions::default(),
            runs: HashMap::new(),
            queue: SpanQueue::default(),
            metrics: SpanMetrics::default(),
            started_ns,
            send_at: None,
            metrics_at: Instant::now() + METRICS_INTERVAL,
            retry_interval: BATCH_INTERVAL,
            refused: 0,
            problem: None,
            metrics_problem: None,
        }
    }

    fn run(mut self) -> ExportReport {
        loop {
            let next = self.send_at.map_or(self.metrics_at, |send_at| send_at.min(self.metrics_at));
            match self.messages.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(ExporterMessage::End { until, limit }) => return self.end(until, limit),
                Ok(message) => {
                    self.shared.queued_writes.fetch_sub(1, Ordering::Relaxed);
                    self.add(message);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.report(),
            }
            self.send_what_is_due();
        }
    }

    /// Makes the spans of what was written.
    fn add(&mut self, message: ExporterMessage) {
        let added = match message {
            ExporterMessage::Call { session, call } => self.add_call(&session, call),
            ExporterMessage::Event { session, seq } => self.add_events(&session, seq),
            ExporterMessage::End { .. } => Ok(()),
        };
        if let Err(error) = added {
            tracing::debug!(%error, "a span could not be made");
        }
    }

    fn ledger(&mut self) -> Result<Ledger, ToolError> {
        if let Some(open) = self.open_ledger.take() {
            self.ledger = Some(open()?);
        }
        self.ledger.clone().ok_or_else(|| ToolError::internal("the ledger could not be opened"))
    }

    fn add_call(&mut self, session: &str, call: i64) -> Result<(), ToolError> {
        let ledger = self.ledger()?;
        let query = ReceiptQuery {
            session: Some(session.to_owned()),
            before: Some(call.saturating_add(1)),
            limit: 1,
            ..ReceiptQuery::default()
        };
        let Some(summary) = ledger.summaries(&query)?.pop().filter(|found| found.receipt.id == call) else {
            return Ok(());
        };
        let content = self.content.as_ref().map(|capture| (capture, &ledger));
        let span = match self.runs.get(session) {
            Some(run) => call_span(&summary, run.session(), run.turn(), content)?,
            None => call_span(&summary, &self.sessions.get(&ledger, session)?, None, content)?,
        };
        self.push(span);
        Ok(())
    }

    fn add_events(&mut self, session: &str, seq: u64) -> Result<(), ToolError> {
        let ledger = self.ledger()?;
        let mut run = match self.runs.remove(session) {
            Some(run) => run,
            None => RunSpans::new(self.sessions.get(&ledger, session)?),
        };
        let read = self.read_up_to(&ledger, &mut run, seq);
        if run.is_idle() && self.runs.len() >= MAX_IDLE_RUNS_COUNT {
            self.runs.retain(|_, run| !run.is_idle());
        }
        // Kept also after an error, so that the next event does not read the whole log again.
        self.runs.insert(session.to_owned(), run);
        read
    }

    /// Reads the events of a run up to `seq`, and makes the spans of that last one.
    fn read_up_to(&mut self, ledger: &Ledger, run: &mut RunSpans, seq: u64) -> Result<(), ToolError> {
        while run.seq < seq {
            let limit = usize::try_from(seq - run.seq).unwrap_or(READ_COUNT).min(READ_COUNT);
            let events = read_events(ledger, &run.session().id, run.seq + 1, limit)?;
            if events.is_empty() {
                break;
            }
            for logged in &events {
                let spans = run.apply(logged, self.content.as_ref());
                // The spans of earlier events were made when those were written.
                if logged.seq == seq {
                    self.push(spans);
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, spans: impl IntoIterator<Item = ExportedSpan>) {
        for span in spans {
            self.metrics.add(&span);
            if self.sender.sends_traces() && span.context.is_sampled() {
                self.queue.push(span);
                self.send_at.get_or_insert_with(|| Instant::now() + BATCH_INTERVAL);
            }
        }
        self.count_unsent();
    }

    fn count_unsent(&self) {
        self.shared.unsent_spans.store(self.unsent(), Ordering::Relaxed);
    }

    fn unsent(&self) -> u64 {
        self.queue.len() + self.queue.dropped + self.refused
    }

    fn send_what_is_due(&mut self) {
        let now = Instant::now();
        let is_full = self.queue.is_full() && self.retry_interval == BATCH_INTERVAL;
        if is_full || self.send_at.is_some_and(|at| at <= now) {
            let timeout = self.sender.timeout();
            self.send_batch(timeout);
        }
        if self.metrics_at <= now {
            self.metrics_at = now + METRICS_INTERVAL;
            let timeout = self.sender.timeout();
            self.send_metrics(timeout);
        }
    }

    /// Sends one request; returns whether another one may follow at once.
    fn send_batch(&mut self, limit: Duration) -> bool {
        let batch = self.queue.batch();
        let (count, sent) = (batch.len(), self.sender.send_spans(batch, limit));
        let goes_on = match sent {
            Ok(rejected) => {
                self.queue.remove(count);
                self.retry_interval = BATCH_INTERVAL;
                if let Some(RejectedItems { count, message }) = rejected {
                    self.refused += count;
                    self.problem = Some(message);
                }
                true
            }
            Err(SendError { may_pass: false, message }) => {
                self.queue.remove(count);
                self.refused += count as u64;
                self.problem = Some(message);
                false
            }
            Err(SendError { may_pass: true, message }) => {
                self.problem = Some(message);
                self.retry_interval = (self.retry_interval * 2).min(MAX_RETRY_INTERVAL);
                false
            }
        };
        self.send_at = (!self.queue.is_empty()).then(|| Instant::now() + self.retry_interval);
        self.count_unsent();
        goes_on
    }

    fn send_metrics(&mut self, limit: Duration) {
        let metrics = self.metrics.all();
        if metrics.is_empty() || !self.sender.sends_metrics() {
            return;
        }
        let sent = self.sender.send_metrics(&metrics, self.started_ns, ms_to_ns(now_ms()), limit);
        self.metrics_problem = match sent {
            Ok(rejected) => rejected.map(|rejected| rejected.message),
            Err(error) => Some(error.message),
        };
    }

    /// Sends what is left, until this time.
    fn end(mut self, until: Instant, limit: Duration) -> ExportReport {
        let left = || until.saturating_duration_since(Instant::now());
        let mut goes_on = true;
        while goes_on && !self.queue.is_empty() && !left().is_zero() {
            goes_on = self.send_batch(left());
        }
        if goes_on && !left().is_zero() {
            self.send_metrics(left());
        }
        if left().is_zero() {
            self.problem = Some(too_late(limit));
        }
        self.report()
    }

    fn report(self) -> ExportReport {
        let unsent_spans = self.unsent();
        let lost = self.shared.lost_writes.load(Ordering::Relaxed);
        let too_fast = (lost > 0).then(|| {
            format!("{lost} calls and events were skipped because they came faster than they could be read")
        });
        // A failure is not reported if all spans were sent in the end.
        let of_spans = self.problem.filter(|_| unsent_spans > 0);
        ExportReport { unsent_spans, problem: of_spans.or(self.metrics_problem).or(too_fast) }
    }
}

/// A cache of sessions, because the ledger counts a session's calls each time it is asked for it.
#[derive(Default)]
struct KnownSessions(HashMap<String, SessionInfo>);

impl KnownSessions {
    fn get(&mut self, ledger: &Ledger, id: &str) -> Result<SessionInfo, ToolError> {
        if let Some(known) = self.0.get(id) {
            return Ok(known.clone());
        }
        if self.0.len() >= MAX_KNOWN_SESSIONS_COUNT {
            self.0.clear();
        }
        let info = ledger.session(id)?;
        self.0.insert(id.to_owned(), info.clone());
        Ok(info)
    }
}

fn too_late(limit: Duration) -> String {
    format!("the collector did not answer within {} ms", limit.as_millis())
}
