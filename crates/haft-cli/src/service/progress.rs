//! Calls that take long: their output as it comes, a sign of life while there is none, and a task instead of an open request
//! for clients that understand tasks.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use haft_mcp::serve::RequestContext;
use haft_runtime::Watch;
use haft_tool::{Execution, lock};

/// How long a call may be silent, and after which time it becomes a task. Clients give up after 60 s, some after less.
const SILENCE_LIMIT: Duration = Duration::from_secs(5);

/// The calls in progress whose clients want progress notifications or understand tasks. One thread serves them all.
#[derive(Default)]
pub(super) struct ProgressReports {
    calls: Mutex<Vec<Weak<CallProgress>>>,
    changed: Condvar,
    is_running: AtomicBool,
}

/// One call in progress; the reports end when it is dropped.
pub(super) struct CallProgress {
    context: Arc<RequestContext>,
    /// Every notification is one step.
    steps: AtomicU32,
    started: Instant,
    last_report: Mutex<Instant>,
}

impl CallProgress {
    fn report(&self, message: Option<&str>) {
        *lock(&self.last_report) = Instant::now();
        let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        self.context.progress(f64::from(step), None, message);
    }

    /// Reports the output of the call.
    pub(super) fn watch(self: &Arc<Self>) -> Watch {
        let progress = Arc::clone(self);
        Arc::new(move |state: &Execution| {
            let Execution::Running { progress: Some(update), .. } = state else { return };
            progress.report(update.output.as_deref().or(update.message.as_deref()));
        })
    }
}

impl ProgressReports {
    /// Begins the reports of a call, if its client has a use for them.
    pub(super) fn begin(self: &Arc<Self>, context: &Arc<RequestContext>) -> Option<Arc<CallProgress>> {
        if !context.wants_progress() && !context.accepts_task() {
            return None;
        }
        let now = Instant::now();
        let call = Arc::new(CallProgress {
            context: Arc::clone(context),
            steps: AtomicU32::new(0),
            started: now,
            last_report: Mutex::new(now),
        });
        lock(&self.calls).push(Arc::downgrade(&call));
        self.changed.notify_one();
        if !self.is_running.swap(true, Ordering::Relaxed) {
            let reports = Arc::clone(self);
            let thread = std::thread::Builder::new().name("mcp-progress".to_owned());
            // Without the thread, silent calls have no progress.
            drop(thread.spawn(move || reports.run()));
        }
        Some(call)
    }

    /// The calls in progress.
    fn open_calls(&self) -> Vec<Arc<CallProgress>> {
        let mut calls = lock(&self.calls);
        calls.retain(|call| call.strong_count() > 0);
        calls.iter().filter_map(Weak::upgrade).collect()
    }

    /// Serves the calls for as long as the process lives.
    fn run(&self) {
        let mut pause = SILENCE_LIMIT;
        loop {
            // Without calls there is nothing to wake up for.
            drop(self.changed.wait_while(lock(&self.calls), |calls| calls.is_empty()));
            // New calls need nothing before the pause has passed.
            drop(self.changed.wait_timeout_while(lock(&self.calls), pause, |_| true));
            pause = SILENCE_LIMIT;
            for call in self.open_calls() {
                if call.started.elapsed() >= SILENCE_LIMIT {
                    call.context.become_task();
                }
                let silence = lock(&call.last_report).elapsed();
                match SILENCE_LIMIT.checked_sub(silence) {
                    Some(left) if !left.is_zero() => pause = pause.min(left),
                    _ => call.report(Some(&format!("running for {} s", call.started.elapsed().as_secs()))),
                }
            }
        }
    }
}
