//! The background tasks of a session, as one call may use them.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::{Cancel, Record, RunRequest, TaskClass, TaskInfo, TaskRead, Tasks, ToolError};

use super::{TaskStart, TaskTable};
use crate::process::LocalProcesses;

/// Starts tasks with the call's scope, and reads and stops those of the session.
pub struct CallTasks {
    /// The tasks of the session.
    pub table: Arc<TaskTable>,
    /// The call's record, which opens that of a new task.
    pub record: Arc<dyn Record>,
    /// Runs commands in the call's scope; `None` if the call may not run any.
    pub processes: Option<LocalProcesses>,
    /// Ends waits of the call.
    pub cancel: Cancel,
}

impl Tasks for CallTasks {
    fn start(
        &self,
        request: &RunRequest,
        description: &str,
        class: TaskClass,
    ) -> Result<TaskInfo, ToolError> {
        let Some(processes) = &self.processes else {
            return Err(ToolError::denied("this call may not start processes"));
        };
        let record = self.record.as_ref();
        self.table.start(&TaskStart { request, description, class, record, processes })
    }

    fn read(&self, id: &str, wait: Option<Duration>, max_bytes: usize) -> Result<TaskRead, ToolError> {
        self.table.find(id)?.read(wait, max_bytes, &self.cancel)
    }

    fn stop(&self, id: &str) -> Result<TaskInfo, ToolError> {
        self.table.find(id)?.stop(&self.cancel)
    }

    fn list(&self) -> Vec<TaskInfo> {
        self.table.list()
    }
}
