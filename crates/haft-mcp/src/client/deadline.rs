//! How long a request may take.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use haft_tool::Cancel;
use serde_json::Value;

use super::{ClientError, ProgressUpdate, lock};

/// The longest single wait of a request without a timeout.
const MAX_WAIT: Duration = Duration::from_hours(1);

/// When a request is given up. Progress extends its idle timeout, but not its total timeout.
pub(super) struct Deadline<'a> {
    started: Cell<Instant>,
    last_progress: Cell<Instant>,
    highest_progress: Cell<f64>,
    /// From one progress notification to the next; `None` is unlimited.
    idle_timeout: Option<Duration>,
    total_timeout: Option<Duration>,
    pub(super) cancel: &'a Cancel,
    on_progress: &'a dyn Fn(&ProgressUpdate),
    questions: Option<&'a OpenQuestions>,
}

impl<'a> Deadline<'a> {
    /// A fixed timeout.
    pub(super) fn after(timeout: Duration, cancel: &'a Cancel) -> Self {
        Self::with_progress(timeout, timeout, cancel, &|_| {})
    }

    /// An idle timeout that progress extends, and a total timeout.
    pub(super) fn with_progress(
        idle_timeout: Duration,
        total_timeout: Duration,
        cancel: &'a Cancel,
        on_progress: &'a dyn Fn(&ProgressUpdate),
    ) -> Self {
        Self {
            idle_timeout: Some(idle_timeout.min(total_timeout)),
            total_timeout: Some(total_timeout),
            on_progress,
            ..Self::unlimited(cancel)
        }
    }

    /// No timeout, only cancellation.
    pub(super) fn unlimited(cancel: &'a Cancel) -> Self {
        let now = Instant::now();
        Self {
            started: Cell::new(now),
            last_progress: Cell::new(now),
            highest_progress: Cell::new(f64::NEG_INFINITY),
            idle_timeout: None,
            total_timeout: None,
            cancel,
            on_progress: &|_| {},
            questions: None,
        }
    }

    /// Pauses the idle timeout while the server waits for answers to its questions.
    pub(super) fn paused_by(self, questions: &'a OpenQuestions) -> Self {
        Self { questions: Some(questions), ..self }
    }

    /// Starts both timeouts again, after a delay that was not the server's.
    pub(super) fn restart(&self) {
        self.started.set(Instant::now());
        self.last_progress.set(Instant::now());
    }

    /// The time to wait; an error if the deadline has passed or the request was cancelled.
    pub(super) fn remaining(&self, method: &str) -> Result<Duration, ClientError> {
        if self.cancel.is_cancelled() {
            return Err(ClientError::cancelled(method));
        }
        let mut remaining = MAX_WAIT;
        if let Some(total) = self.total_timeout {
            remaining = remaining.min(total.saturating_sub(self.started.get().elapsed()));
        }
        if let Some(idle) = self.idle_timeout {
            let last_progress = self.last_progress.get();
            let idle_since =
                self.questions.map_or(Some(last_progress), |questions| questions.idle_since(last_progress));
            let elapsed = idle_since.map_or(Duration::ZERO, |since| since.elapsed());
            remaining = remaining.min(idle.saturating_sub(elapsed));
        }
        if remaining.is_zero() { Err(self.timed_out(method)) } else { Ok(remaining) }
    }

    fn timed_out(&self, method: &str) -> ClientError {
        let elapsed = self.started.get().elapsed();
        ClientError::timed_out(match self.total_timeout {
            Some(total) if self.idle_timeout != Some(total) && elapsed >= total => format!(
                "`{method}` did not end within {} s, the limit for calls that report progress",
                total.as_secs_f64()
            ),
            _ => {
                let idle = self.idle_timeout.unwrap_or_default().as_secs_f64();
                format!("`{method}` was not answered within {idle} s")
            }
        })
    }

    /// Reports a progress notification. One that does not exceed the previous ones is ignored.
    pub(super) fn progress(&self, params: &Value) {
        if let Some(update) = ProgressUpdate::read(params)
            && update.progress > self.highest_progress.get()
        {
            self.highest_progress.set(update.progress);
            self.last_progress.set(Instant::now());
            (self.on_progress)(&update);
        }
    }
}

/// Counts the server's questions that have no answer yet.
#[derive(Default)]
pub(super) struct OpenQuestions(Mutex<QuestionState>);

#[derive(Default)]
struct QuestionState {
    open: usize,
    last_answered: Option<Instant>,
}

impl OpenQuestions {
    pub(super) fn begin(&self) {
        lock(&self.0).open += 1;
    }

    pub(super) fn end(&self) {
        let mut state = lock(&self.0);
        state.open = state.open.saturating_sub(1);
        state.last_answered = Some(Instant::now());
    }

    /// Since when the server has been idle; `None` while it waits for an answer.
    fn idle_since(&self, last_progress: Instant) -> Option<Instant> {
        let state = lock(&self.0);
        (state.open == 0).then(|| state.last_answered.map_or(last_progress, |at| at.max(last_progress)))
    }
}
