//! The calls of a run that are under way, each on a thread of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use haft_model::{ToolCall, ToolResult};
use haft_runtime::{CallOptions, Runtime};
use haft_tool::{Cancel, Execution, Progress, ToolError, Value, Verdict};

use crate::call_results::failed;
use crate::{LoopEvent, RunObserver};

/// How many calls of one run are made at the same time.
const MAX_PARALLEL_CALLS: usize = 8;

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct FinishedCall {
    pub(crate) result: ToolResult,
    pub(crate) receipt: Option<i64>,
    pub(crate) changes: usize,
    pub(crate) elapsed: Duration,
    pub(crate) structured: Option<Value>,
    pub(crate) verdict: Option<Verdict>,
}

impl FinishedCall {
    /// A call of which only the result is known.
    pub(crate) fn new(result: ToolResult) -> Self {
        Self { result, receipt: None, changes: 0, elapsed: Duration::ZERO, structured: None, verdict: None }
    }
}

/// What a thread of a call reports.
enum CallReport {
    Progress(Progress),
    Finished(Box<FinishedCall>),
}

/// The calls under way.
pub(crate) struct CallPool {
    runtime: Runtime,
    sender: Sender<(u64, CallReport)>,
    reports: Receiver<(u64, CallReport)>,
    /// By the number of the thread. What another number reports does not count.
    running: HashMap<u64, (String, Cancel)>,
    finished: VecDeque<FinishedCall>,
    started_count: u64,
}

impl CallPool {
    pub(crate) fn new(runtime: Runtime) -> Self {
        let (sender, reports) = channel();
        let (running, finished) = (HashMap::new(), VecDeque::new());
        Self { runtime, sender, reports, running, finished, started_count: 0 }
    }

    /// Whether the call was started and its result not taken yet.
    pub(crate) fn has(&self, call_id: &str) -> bool {
        self.running.values().any(|(id, _)| id == call_id)
            || self.finished.iter().any(|finished| finished.result.call_id == call_id)
    }

    /// Whether another call may be started.
    pub(crate) fn has_room(&self) -> bool {
        self.running.len() < MAX_PARALLEL_CALLS
    }

    /// Starts a call, which ends when `cancel` fires.
    pub(crate) fn start(&mut self, call: &ToolCall, cancel: &Cancel) {
        self.started_count += 1;
        let number = self.started_count;
        let own = Cancel::new();
        let linked = own.clone();
        let link = cancel.on_cancel(move || linked.cancel());
        self.running.insert(number, (call.id.clone(), own.clone()));
        let (runtime, sender) = (self.runtime.clone(), self.sender.clone());
        let progress = self.sender.clone();
        let watch = move |execution: &Execution| {
            if let Execution::Running { progress: Some(update), .. } = execution {
                // The run may have ended.
                let _ = progress.send((number, CallReport::Progress(update.clone())));
            }
        };
        let made = call.clone();
        let spawned = std::thread::Builder::new().name("haft-agent-call".to_owned()).spawn(move || {
            let _link = link;
            let start = Instant::now();
            let options = CallOptions {
                cancel: own,
                watch: Some(Arc::new(watch)),
                input_note: made.note.clone(),
                ..CallOptions::default()
            };
            let done = runtime.run_blocking(made.to_call(), options);
            let finished = FinishedCall {
                result: ToolResult::new(&made.id, &made.name, &done.output),
                receipt: Some(done.receipt.id).filter(|id| *id > 0),
                changes: done.receipt.changes.len(),
                elapsed: start.elapsed(),
                structured: done.output.structured,
                verdict: done.receipt.decision.map(|decision| decision.verdict),
            };
            let _ = sender.send((number, CallReport::Finished(Box::new(finished))));
        });
        if let Err(error) = spawned {
            self.running.remove(&number);
            let result = failed(call, &ToolError::io("start a thread for the call", &error).message);
            self.finished.push_back(FinishedCall::new(result));
        }
    }

    /// Cancels a call and forgets its result.
    pub(crate) fn drop_call(&mut self, call_id: &str) {
        self.finished.retain(|finished| finished.result.call_id != call_id);
        self.running.retain(|_, (id, cancel)| {
            if id == call_id {
                cancel.cancel();
            }
            id != call_id
        });
    }

    /// Waits for the end of a call.
    pub(crate) fn wait(&mut self, observer: &mut dyn RunObserver) -> Result<FinishedCall, ToolError> {
        loop {
            if let Some(finished) = self.finished.pop_front() {
                return Ok(finished);
            }
            if self.running.is_empty() {
                return Err(ToolError::internal("a call is waited for, and none is under way"));
            }
            let (number, report) =
                self.reports.recv().map_err(|_| ToolError::internal("the calls cannot report"))?;
            self.take(number, report, observer);
        }
    }

    /// Passes on what the calls have reported.
    pub(crate) fn report_progress(&mut self, observer: &mut dyn RunObserver) {
        while let Ok((number, report)) = self.reports.try_recv() {
            self.take(number, report, observer);
        }
    }

    fn take(&mut self, number: u64, report: CallReport, observer: &mut dyn RunObserver) {
        let Some((call_id, _)) = self.running.get(&number) else { return };
        match report {
            CallReport::Progress(progress) => {
                observer.on_event(&LoopEvent::CallProgress { call_id: call_id.clone(), progress });
            }
            CallReport::Finished(finished) => {
                self.running.remove(&number);
                self.finished.push_back(*finished);
            }
        }
    }
}

impl Drop for CallPool {
    fn drop(&mut self) {
        for (_, cancel) in self.running.values() {
            cancel.cancel();
        }
        // No call goes on when the turn has returned. Each ends soon after its cancellation, because the runtime sees to it.
        while !self.running.is_empty()
            && let Ok((number, report)) = self.reports.recv()
        {
            if matches!(report, CallReport::Finished(_)) {
                self.running.remove(&number);
            }
        }
    }
}
