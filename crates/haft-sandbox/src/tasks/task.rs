//! One task: its stream, where it stands, and those who read it.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_tool::{
    Cancel, ErrorKind, Exit, Finished, TaskClass, TaskInfo, TaskRead, TaskState, Text, ToolError, lock,
};

use super::log::Log;

/// A command that lives on.
pub(super) struct Task {
    pub(super) id: String,
    pub(super) class: TaskClass,
    pub(super) description: String,
    pub(super) command: String,
    pub(super) receipt: i64,
    /// Ends it.
    pub(super) cancel: Cancel,
    now: Mutex<Now>,
    changed: Condvar,
}

/// What changes while it runs.
struct Now {
    log: Log,
    state: TaskState,
    finished: Option<Finished>,
    error: Option<ToolError>,
    /// How far each reader has come.
    readers: BTreeMap<String, u64>,
}

impl Task {
    pub(super) fn new(
        id: String,
        class: TaskClass,
        description: &str,
        command: String,
        receipt: i64,
        log: Log,
    ) -> Self {
        let readers = BTreeMap::new();
        let now = Now { log, state: TaskState::Running, finished: None, error: None, readers };
        Self {
            id,
            class,
            description: description.to_owned(),
            command,
            receipt,
            cancel: Cancel::new(),
            now: Mutex::new(now),
            changed: Condvar::new(),
        }
    }

    /// Takes what the command has written.
    pub(super) fn hear(&self, bytes: &[u8]) {
        self.now().log.push(bytes);
    }

    /// What it has written, its beginning and its end.
    pub(super) fn text(&self, most: usize) -> Result<Text, ToolError> {
        self.now().log.text(most)
    }

    /// Says how it ended, to everybody who waits.
    pub(super) fn end(&self, finished: Option<Finished>, error: Option<ToolError>) -> TaskInfo {
        let mut now = self.now();
        now.state = state(finished.as_ref(), error.as_ref());
        (now.finished, now.error) = (finished, error);
        self.changed.notify_all();
        self.read_small_file(&now)
    }

    pub(super) fn info(&self) -> TaskInfo {
        self.read_small_file(&self.now())
    }

    pub(super) fn is_over(&self) -> bool {
        self.now().state.is_over()
    }

    /// Whether somebody has read it to its end.
    pub(super) fn is_read(&self) -> bool {
        let now = self.now();
        now.state.is_over() && now.readers.values().any(|at| *at >= now.log.total())
    }

    /// What `reader` has not seen yet, after the task's end or after `wait`.
    pub(super) fn read(
        self: &Arc<Self>,
        reader: &str,
        wait: Option<Duration>,
        most: usize,
        cancel: &Cancel,
    ) -> Result<TaskRead, ToolError> {
        let mut now = match wait {
            Some(wait) => self.until_the_end(Instant::now().checked_add(wait), cancel)?,
            None => self.now(),
        };
        let from = now.readers.get(reader).copied().unwrap_or_default();
        let part = now.log.read(from, most, !now.state.is_over())?;
        now.readers.insert(reader.to_owned(), part.next);
        Ok(TaskRead {
            info: self.read_small_file(&now),
            output: part.bytes,
            skipped: part.skipped,
            more: part.more,
            total: now.log.total(),
            dropped: now.log.dropped(),
            finished: now.finished.clone(),
            error: now.error.clone(),
        })
    }

    /// Ends it, and waits until it has ended.
    pub(super) fn stop(self: &Arc<Self>, cancel: &Cancel) -> Result<TaskInfo, ToolError> {
        self.cancel.cancel();
        let now = self.until_the_end(None, cancel)?;
        Ok(self.read_small_file(&now))
    }

    /// Waits for the end, no longer than until `limit`, and not at all for a call that nobody wants any more.
    fn until_the_end(
        self: &Arc<Self>,
        limit: Option<Instant>,
        cancel: &Cancel,
    ) -> Result<MutexGuard<'_, Now>, ToolError> {
        let waiting = Arc::clone(self);
        let _listening = cancel.on_cancel(move || {
            // Taken so that it cannot fall between somebody's look and wait.
            let _now = waiting.now();
            waiting.changed.notify_all();
        });
        let mut now = self.now();
        while !now.state.is_over() {
            if cancel.is_cancelled() {
                return Err(ToolError::new(ErrorKind::Interrupted, "The call was cancelled while it waited"));
            }
            now = match limit.map(|limit| limit.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => break,
                Some(left) => {
                    let woken = self.changed.wait_timeout(now, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(now).unwrap_or_else(PoisonError::into_inner),
            };
        }
        Ok(now)
    }

    fn read_small_file(&self, now: &Now) -> TaskInfo {
        TaskInfo {
            id: self.id.clone(),
            description: self.description.clone(),
            command: self.command.clone(),
            state: now.state,
            exit: now.finished.as_ref().map(|finished| finished.exit),
            receipt: self.receipt,
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        lock(&self.now)
    }
}

/// Where a task stands that has ended.
fn state(finished: Option<&Finished>, error: Option<&ToolError>) -> TaskState {
    match finished.map(|finished| finished.exit) {
        _ if error.is_some() => TaskState::Failed,
        Some(Exit::Code(0)) => TaskState::Completed,
        Some(Exit::TimedOut) => TaskState::TimedOut,
        Some(Exit::Cancelled) => TaskState::Stopped,
        Some(Exit::Code(_) | Exit::Signal(_)) | None => TaskState::Failed,
    }
}
