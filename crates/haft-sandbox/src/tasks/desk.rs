//! The room as one call sees it: what it starts is held to the call's scope, and what it waits for ends with it.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::{Cancel, Record, RunRequest, TaskClass, TaskInfo, TaskRead, Tasks, ToolError};

use super::{Start, TaskRoom};
use crate::process::LocalProcesses;

/// One call's way to the tasks.
pub struct Desk {
    /// The tasks of the session.
    pub room: Arc<TaskRoom>,
    /// The call's record, which opens that of a new task.
    pub record: Arc<dyn Record>,
    /// What runs commands in the call's scope; none if the call has not declared any.
    pub processes: Option<LocalProcesses>,
    /// Who reads; each reader sees everything once.
    pub reader: String,
    /// Ends waits of the call.
    pub cancel: Cancel,
}

impl Tasks for Desk {
    fn start(
        &self,
        request: &RunRequest,
        description: &str,
        class: TaskClass,
    ) -> Result<TaskInfo, ToolError> {
        let Some(processes) = &self.processes else {
            return Err(ToolError::denied("this call may not start processes"));
        };
        let start = Start { request, description, class, record: self.record.as_ref() };
        self.room.start(&start, |journal, cancel| processes.for_task(journal, cancel))
    }

    fn read(&self, id: &str, wait: Option<Duration>, most: usize) -> Result<TaskRead, ToolError> {
        self.room.find(id)?.read(&self.reader, wait, most, &self.cancel)
    }

    fn stop(&self, id: &str) -> Result<TaskInfo, ToolError> {
        self.room.find(id)?.stop(&self.cancel)
    }

    fn list(&self) -> Vec<TaskInfo> {
        self.room.list()
    }
}
