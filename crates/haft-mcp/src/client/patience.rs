//! How long one request is waited for.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use haft_tool::Cancel;
use serde_json::Value;

use super::{ClientError, McpError, ProgressUpdate, lock};

/// How long one request is waited for: progress extends it, up to a point that nothing extends.
pub(super) struct Patience<'a> {
    started: Cell<Instant>,
    /// From one sign of life to the next; for ever if nothing is said.
    step: Option<Duration>,
    at_most: Option<Duration>,
    heard: Cell<Instant>,
    furthest: Cell<f64>,
    pub(super) cancel: &'a Cancel,
    progress: &'a dyn Fn(&ProgressUpdate),
    questions: Option<&'a Questions>,
}

impl<'a> Patience<'a> {
    /// So long and no longer.
    pub(super) fn of(limit: Duration, cancel: &'a Cancel) -> Self {
        Self::stretching(limit, limit, cancel, &|_| {})
    }

    /// From one sign of progress to the next, and at most so long in all.
    pub(super) fn stretching(
        step: Duration,
        at_most: Duration,
        cancel: &'a Cancel,
        progress: &'a dyn Fn(&ProgressUpdate),
    ) -> Self {
        let patience = Self::without_end(cancel);
        Self { step: Some(step.min(at_most)), at_most: Some(at_most), progress, ..patience }
    }

    /// Until it is taken back.
    pub(super) fn without_end(cancel: &'a Cancel) -> Self {
        let now = Instant::now();
        Self {
            started: Cell::new(now),
            step: None,
            at_most: None,
            heard: Cell::new(now),
            furthest: Cell::new(f64::NEG_INFINITY),
            cancel,
            progress: &|_| {},
            questions: None,
        }
    }

    /// While somebody thinks about the server's questions, the server is not late.
    pub(super) fn with_questions(self, questions: &'a Questions) -> Self {
        Self { questions: Some(questions), ..self }
    }

    /// Begins anew, because what took so long was on this side.
    pub(super) fn restart(&self) {
        self.started.set(Instant::now());
        self.heard.set(Instant::now());
    }

    /// How much is left; an error if nothing is, or the answer is no longer wanted.
    pub(super) fn left(&self, method: &str) -> Result<Duration, ClientError> {
        if self.cancel.is_cancelled() {
            return Err(ClientError::new(McpError::Cancelled, format!("`{method}` was cancelled")));
        }
        // A wait that is long enough to be looked at again seldom.
        let mut left = Duration::from_hours(1);
        if let Some(at_most) = self.at_most {
            left = left.min(at_most.saturating_sub(self.started.get().elapsed()));
        }
        if let Some(step) = self.step {
            match self.questions.map_or(Some(self.heard.get()), |questions| questions.since(self.heard.get()))
            {
                Some(heard) => left = left.min(step.saturating_sub(heard.elapsed())),
                None => left = left.min(step),
            }
        }
        if left.is_zero() {
            return Err(self.late(method));
        }
        Ok(left)
    }

    fn late(&self, method: &str) -> ClientError {
        let waited = self.started.get().elapsed();
        let step = self.step.unwrap_or_default().as_secs_f64();
        let why = match self.at_most {
            Some(at_most) if self.step != Some(at_most) && waited >= at_most => format!(
                "`{method}` had not ended after {} s, the most that a call may take, though it told of progress",
                at_most.as_secs_f64()
            ),
            _ => format!("`{method}` was not answered within {step} s"),
        };
        ClientError::timed_out(why)
    }

    /// Hears what the server says of its progress. What does not go forward is no progress.
    pub(super) fn hear(&self, params: &Value) {
        if let Some(progress) = ProgressUpdate::read(params)
            && progress.progress > self.furthest.get()
        {
            self.furthest.set(progress.progress);
            self.heard.set(Instant::now());
            (self.progress)(&progress);
        }
    }
}

/// The server's questions that are being thought about.
#[derive(Default)]
pub(super) struct Questions(Mutex<(usize, Option<Instant>)>);

impl Questions {
    pub(super) fn begin(&self) {
        lock(&self.0).0 += 1;
    }

    pub(super) fn end(&self) {
        let mut state = lock(&self.0);
        state.0 = state.0.saturating_sub(1);
        state.1 = Some(Instant::now());
    }

    /// Since when the server has had nothing to wait for, if it has nothing now.
    fn since(&self, heard: Instant) -> Option<Instant> {
        let state = lock(&self.0);
        (state.0 == 0).then(|| state.1.map_or(heard, |last| last.max(heard)))
    }
}
