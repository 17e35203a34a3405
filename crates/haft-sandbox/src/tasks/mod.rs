//! Background commands of a session. All of them end with it.
//!
//! Each task is a thread that runs its command like any other. Its output goes to a [`TaskLog`], its changes to a record
//! of its own.

mod call_tasks;
mod log;
mod task;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use haft_tool::{CallEnd, ErrorKind, Record, RunRequest, TaskClass, TaskInfo, ToolError, lock};

use crate::LocalProcesses;
pub use call_tasks::CallTasks;
use log::TaskLog;
use task::BackgroundTask;

/// Ended tasks that are kept; their output takes disk space.
const MAX_ENDED_TASKS: usize = 32;
/// Bytes of a task's output in its receipt.
const MAX_RECEIPT_BYTES: usize = 8 << 20;

/// Is called with each task that has ended.
pub type OnTaskEnd = Arc<dyn Fn(TaskInfo) + Send + Sync>;

/// The background tasks of one session. Dropping it ends them.
pub struct TaskTable {
    /// Where output files are created.
    directory: PathBuf,
    max_output_bytes: u64,
    on_end: OnTaskEnd,
    state: Mutex<TableState>,
}

#[derive(Default)]
struct TableState {
    /// Why no task can be started, if so.
    closed: Option<String>,
    tasks: Vec<(Arc<BackgroundTask>, Option<JoinHandle<()>>)>,
}

/// A task to be started.
pub(crate) struct TaskStart<'a> {
    pub(crate) request: &'a RunRequest,
    pub(crate) description: &'a str,
    pub(crate) class: TaskClass,
    /// The record of the call that starts the task.
    pub(crate) record: &'a dyn Record,
    pub(crate) processes: &'a LocalProcesses,
}

impl TaskTable {
    /// A table whose tasks write their output to files in `directory`, each at most `max_output_bytes`.
    pub fn new(directory: impl Into<PathBuf>, max_output_bytes: u64, on_end: OnTaskEnd) -> Self {
        Self { directory: directory.into(), max_output_bytes, on_end, state: Mutex::default() }
    }

    /// Refuses to start further tasks, for this reason.
    pub fn close(&self, reason: impl Into<String>) {
        self.state().closed.get_or_insert(reason.into());
    }

    /// All known tasks, the oldest first.
    pub fn list(&self) -> Vec<TaskInfo> {
        self.state().tasks.iter().map(|(task, _)| task.info()).collect()
    }

    /// Ends every task with everything it started, and returns when they have ended.
    pub fn end_all(&self) {
        self.close("the session has ended");
        let mut state = self.state();
        let threads: Vec<_> = state.tasks.iter_mut().filter_map(|(_, thread)| thread.take()).collect();
        // All are cancelled before the first is waited for.
        state.tasks.iter().for_each(|(task, _)| task.cancel.cancel());
        drop(state);
        for thread in threads {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }

    pub(crate) fn start(&self, start: &TaskStart<'_>) -> Result<TaskInfo, ToolError> {
        let mut state = self.state();
        state.check_limit(start.class)?;
        state.remove_ended();
        let id = state.new_id()?;
        let log = TaskLog::new(&self.directory, self.max_output_bytes).map_err(|error| {
            let directory = self.directory.display();
            ToolError::io(format!("The output of a task needs a file in {directory}"), &error)
        })?;
        let record = start.record.open_task()?;
        if !start.processes.is_sandboxed() {
            record.unwitnessed()?;
        }
        let command = start.request.argv.last().cloned().unwrap_or_default();
        let command = command.to_string_lossy().into_owned();
        let task = BackgroundTask::new(id, start.class, start.description, command, record.receipt_id(), log);
        let task = Arc::new(task);
        let processes = start.processes.for_task(Arc::clone(&record), task.cancel.clone());
        let request = RunRequest { inherit: false, keep_bytes: 0, ..start.request.clone() };

        let (its_task, its_record) = (Arc::clone(&task), Arc::clone(&record));
        let on_end = Arc::clone(&self.on_end);
        let thread = std::thread::Builder::new().name("task".to_owned()).spawn(move || {
            on_end(run(&its_task, &processes, &request, its_record.as_ref()));
        });
        match thread {
            Ok(thread) => {
                state.tasks.push((Arc::clone(&task), Some(thread)));
                Ok(task.info())
            }
            Err(error) => {
                let error = ToolError::io("create a thread for a task", &error);
                record.finish_task(CallEnd::of_process(Err(&error)))?;
                Err(error)
            }
        }
    }

    fn find(&self, id: &str) -> Result<Arc<BackgroundTask>, ToolError> {
        let state = self.state();
        let found = state.tasks.iter().find(|(task, _)| task.id == id);
        found.map(|(task, _)| Arc::clone(task)).ok_or_else(|| {
            let known = |task: &BackgroundTask| format!("{} ({})", task.id, task.info().state.word());
            let known: Vec<String> = state.tasks.iter().rev().map(|(task, _)| known(task)).collect();
            let known = match known.as_slice() {
                [] => "none has been started in this session".to_owned(),
                known => format!("there are {}", known.join(", ")),
            };
            ToolError::new(ErrorKind::TargetNotFound, format!("There is no task {id:?}; {known}"))
        })
    }

    fn state(&self) -> MutexGuard<'_, TableState> {
        lock(&self.state)
    }
}

impl Drop for TaskTable {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl TableState {
    /// Refuses a task if too many of its class are running.
    fn check_limit(&self, class: TaskClass) -> Result<(), ToolError> {
        if let Some(reason) = &self.closed {
            return Err(ToolError::failed(format!("Nothing can be left running: {reason}")));
        }
        let running = self.tasks.iter().filter(|(task, _)| task.class.name == class.name && !task.is_over());
        let running: Vec<&str> = running.map(|(task, _)| task.id.as_str()).collect();
        if running.len() < class.most {
            return Ok(());
        }
        Err(ToolError::failed(format!(
            "{} {} tasks are running, and there may be no more at once; stop one or wait for one to end: {}",
            running.len(),
            class.name,
            running.join(", ")
        )))
    }

    /// Removes the oldest ended tasks, those whose output was read before the others.
    fn remove_ended(&mut self) {
        while self.tasks.iter().filter(|(task, _)| task.is_over()).count() >= MAX_ENDED_TASKS {
            let read = self.tasks.iter().position(|(task, _)| task.is_read());
            let oldest = || self.tasks.iter().position(|(task, _)| task.is_over());
            let Some(index) = read.or_else(oldest) else { return };
            self.tasks.remove(index);
        }
    }

    /// A short random id that no known task has.
    fn new_id(&self) -> Result<String, ToolError> {
        loop {
            let mut number = [0; 4];
            getrandom::fill(&mut number)
                .map_err(|error| ToolError::internal(format!("no randomness: {error}")))?;
            let id = format!("{:08x}", u32::from_ne_bytes(number));
            if self.tasks.iter().all(|(task, _)| task.id != id) {
                return Ok(id);
            }
        }
    }
}

/// Runs a task to its end. Its receipt is written before the task is marked as ended.
fn run(
    task: &BackgroundTask,
    processes: &LocalProcesses,
    request: &RunRequest,
    record: &dyn Record,
) -> TaskInfo {
    let run = || processes.run_with_output(request, &|bytes| task.write(bytes));
    let ran = catch_unwind(AssertUnwindSafe(run));
    let ran = ran.unwrap_or_else(|_| Err(ToolError::internal("The task's thread panicked")));
    if let Ok(finished) = &ran {
        record.exited(finished.exit);
    }
    let output = task.text(MAX_RECEIPT_BYTES).ok().filter(|text| text.total_bytes() > 0);
    let full_output = output.map(|text| text.with_gap_notice());
    let end = CallEnd { full_output, ..CallEnd::of_process(ran.as_ref()) };
    let (finished, mut error) = match ran {
        Ok(finished) => (Some(finished), None),
        Err(error) => (None, Some(error)),
    };
    let recorded = catch_unwind(AssertUnwindSafe(|| record.finish_task(end)));
    let recorded = recorded.unwrap_or_else(|_| Err(ToolError::internal("the ledger panicked")));
    if let Err(unrecorded) = recorded {
        let message = format!("The task could not be recorded: {}", unrecorded.message);
        error.get_or_insert(ToolError::new(unrecorded.kind, message));
    }
    task.end(finished, error)
}
