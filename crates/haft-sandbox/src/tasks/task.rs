//! One background task: its output, its state, and the position of the reader.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_tool::{
    Cancel, ErrorKind, Exit, Finished, TaskClass, TaskInfo, TaskRead, TaskState, Text, ToolError, lock,
};

use super::log::TaskLog;

/// A background command.
pub(super) struct BackgroundTask {
    pub(super) id: String,
    pub(super) class: TaskClass,
    description: String,
    command: String,
    receipt: i64,
    /// Ends it.
    pub(super) cancel: Cancel,
    progress: Mutex<TaskProgress>,
    changed: Condvar,
}

struct TaskProgress {
    log: TaskLog,
    state: TaskState,
    finished: Option<Finished>,
    error: Option<ToolError>,
    /// How many bytes of the output were read.
    read_position: u64,
}

impl BackgroundTask {
    pub(super) fn new(
        id: String,
        class: TaskClass,
        description: &str,
        command: String,
        receipt: i64,
        log: TaskLog,
    ) -> Self {
        let state = TaskState::Running;
        let progress = TaskProgress { log, state, finished: None, error: None, read_position: 0 };
        Self {
            id,
            class,
            description: description.to_owned(),
            command,
            receipt,
            cancel: Cancel::new(),
            progress: Mutex::new(progress),
            changed: Condvar::new(),
        }
    }

    /// Appends output.
    pub(super) fn write(&self, bytes: &[u8]) {
        self.progress().log.push(bytes);
    }

    /// The beginning and the end of the output, at most `max_bytes`.
    pub(super) fn text(&self, max_bytes: usize) -> std::io::Result<Text> {
        self.progress().log.text(max_bytes)
    }

    /// Marks the task as ended and wakes all waiting calls.
    pub(super) fn end(&self, finished: Option<Finished>, error: Option<ToolError>) -> TaskInfo {
        let mut progress = self.progress();
        progress.state = end_state(finished.as_ref(), error.as_ref());
        (progress.finished, progress.error) = (finished, error);
        self.changed.notify_all();
        self.describe(&progress)
    }

    pub(super) fn info(&self) -> TaskInfo {
        self.describe(&self.progress())
    }

    pub(super) fn is_over(&self) -> bool {
        self.progress().state.is_over()
    }

    /// Whether it has ended and all its output was read.
    pub(super) fn is_read(&self) -> bool {
        let progress = self.progress();
        progress.state.is_over() && progress.read_position >= progress.log.total()
    }

    /// The output that was not read yet. With `wait` first waits for the task's end, for at most this time.
    pub(super) fn read(
        self: &Arc<Self>,
        wait: Option<Duration>,
        max_bytes: usize,
        cancel: &Cancel,
    ) -> Result<TaskRead, ToolError> {
        let mut progress = match wait {
            Some(wait) => self.wait_for_end(Instant::now().checked_add(wait), cancel)?,
            None => self.progress(),
        };
        let is_running = !progress.state.is_over();
        let part = progress.log.read(progress.read_position, max_bytes, is_running);
        let part = part.map_err(|error| ToolError::io("The output of a task cannot be read", &error))?;
        progress.read_position = part.next;
        Ok(TaskRead {
            info: self.describe(&progress),
            output: part.bytes,
            skipped: part.skipped,
            more: part.more,
            total: progress.log.total(),
            dropped: progress.log.dropped(),
            finished: progress.finished.clone(),
            error: progress.error.clone(),
        })
    }

    /// Ends the task, and returns when it has ended.
    pub(super) fn stop(self: &Arc<Self>, cancel: &Cancel) -> Result<TaskInfo, ToolError> {
        self.cancel.cancel();
        let progress = self.wait_for_end(None, cancel)?;
        Ok(self.describe(&progress))
    }

    /// Waits until the task has ended, or `deadline`, or the call is cancelled.
    fn wait_for_end(
        self: &Arc<Self>,
        deadline: Option<Instant>,
        cancel: &Cancel,
    ) -> Result<MutexGuard<'_, TaskProgress>, ToolError> {
        let waiting = Arc::clone(self);
        let _listener = cancel.on_cancel(move || {
            // The lock prevents a wake-up between the check and the wait.
            let _progress = waiting.progress();
            waiting.changed.notify_all();
        });
        let mut progress = self.progress();
        while !progress.state.is_over() {
            if cancel.is_cancelled() {
                return Err(ToolError::new(ErrorKind::Interrupted, "The call was cancelled while it waited"));
            }
            progress = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => break,
                Some(left) => {
                    let woken = self.changed.wait_timeout(progress, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner),
            };
        }
        Ok(progress)
    }

    fn describe(&self, progress: &TaskProgress) -> TaskInfo {
        TaskInfo {
            id: self.id.clone(),
            description: self.description.clone(),
            command: self.command.clone(),
            state: progress.state,
            exit: progress.finished.as_ref().map(|finished| finished.exit),
            receipt: self.receipt,
        }
    }

    fn progress(&self) -> MutexGuard<'_, TaskProgress> {
        lock(&self.progress)
    }
}

/// The state of a task that has ended.
fn end_state(finished: Option<&Finished>, error: Option<&ToolError>) -> TaskState {
    match finished.map(|finished| finished.exit) {
        _ if error.is_some() => TaskState::Failed,
        Some(Exit::Code(0)) => TaskState::Completed,
        Some(Exit::TimedOut) => TaskState::TimedOut,
        Some(Exit::Cancelled) => TaskState::Stopped,
        Some(Exit::Code(_) | Exit::Signal(_)) | None => TaskState::Failed,
    }
}
