//! Tasks: commands that outlive the call that started them, until they or their session end.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Exit, Finished, RunRequest, ToolError};

/// A kind of task, and how many of it may run at once in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskClass {
    /// Its name.
    pub name: &'static str,
    /// The most that may run at once.
    pub most: usize,
}

impl TaskClass {
    /// A command that a call leaves running.
    pub const BACKGROUND: Self = Self { name: "background", most: 16 };
    /// A process that is started as such.
    pub const SPAWN: Self = Self { name: "spawn", most: 5 };
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskState {
    /// Its command runs.
    Running,
    /// It ended by itself, successfully.
    Completed,
    /// It ended by itself, with a failure, or never started.
    Failed,
    /// Ended by the caller, or with the session.
    Stopped,
    /// Its time was up.
    TimedOut,
}

impl TaskState {
    /// The word on wires and on the screen.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::TimedOut => "timed_out",
        }
    }

    /// Whether the task has ended.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Running)
    }
}

/// A task, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskInfo {
    /// Its name for the caller.
    pub id: String,
    /// What it does, in a few words, or its command.
    pub description: String,
    /// The command line.
    pub command: String,
    /// Its state.
    pub state: TaskState,
    /// How its command ended, if it has.
    pub exit: Option<Exit>,
    /// The number of its own receipt, which lists its changes.
    pub receipt: i64,
}

/// The result of one read of a task.
#[derive(Debug, Clone)]
pub struct TaskRead {
    /// The task.
    pub info: TaskInfo,
    /// Its output since the last read. Never ends inside a character while more is to come.
    pub output: Vec<u8>,
    /// How many bytes before `output` were not kept.
    pub skipped: u64,
    /// How many bytes are left for the next read.
    pub more: u64,
    /// How many bytes it has written in all.
    pub total: u64,
    /// How many of them were not kept.
    pub dropped: u64,
    /// How its command ended; its streams are not in it.
    pub finished: Option<Finished>,
    /// Why it did not start or could not be recorded.
    pub error: Option<ToolError>,
}

/// The tasks of a session, as a call sees them.
pub trait Tasks: Send + Sync {
    /// Starts a command that continues after this call, inside this call's scope. Its output is kept on disk, up to a
    /// bound; its changes go to a receipt of its own.
    fn start(&self, request: &RunRequest, description: &str, class: TaskClass)
    -> Result<TaskInfo, ToolError>;
    /// The output of a task since the last read, at most `max_bytes` of it. `wait` is how long to wait for its end.
    ///
    /// A cancelled call stops waiting at once and loses no output.
    fn read(&self, id: &str, wait: Option<Duration>, max_bytes: usize) -> Result<TaskRead, ToolError>;
    /// Ends a task with everything it started, and waits until that is done.
    fn stop(&self, id: &str) -> Result<TaskInfo, ToolError>;
    /// All known tasks, the oldest first.
    fn list(&self) -> Vec<TaskInfo>;
}
