//! The room where commands live on after the call that started them; all of them end with it.
//!
//! Each task is a thread that runs its command like any other, under the same keeper and witness. What it writes goes to a
//! [`Log`], what it changes to a page of its own in the ledger.

mod desk;
mod log;
mod task;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use haft_tool::{CallEnd, Cancel, ErrorKind, Record, RunRequest, TaskClass, TaskInfo, ToolError, lock};

use crate::LocalProcesses;
pub use desk::Desk;
use log::Log;
use task::Task;

/// How many tasks that have ended are remembered; their output takes room on the disk.
const MOST_ENDED: usize = 32;
/// How much of a task's output its receipt keeps.
const KEPT_BYTES: usize = 8 << 20;

/// Hears of each task that has ended.
pub type OnTaskEnd = Arc<dyn Fn(TaskInfo) + Send + Sync>;

/// The tasks of one session. Dropping it ends them.
pub struct TaskRoom {
    /// Where the files are that hold their output.
    directory: PathBuf,
    /// How much of each one's output is kept.
    bytes: u64,
    on_end: OnTaskEnd,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    /// Why nothing can be started, if so.
    closed: Option<String>,
    tasks: Vec<(Arc<Task>, Option<JoinHandle<()>>)>,
}

/// What is to be started.
pub(crate) struct Start<'a> {
    pub(crate) request: &'a RunRequest,
    pub(crate) description: &'a str,
    pub(crate) class: TaskClass,
    pub(crate) record: &'a dyn Record,
}

impl TaskRoom {
    /// A room whose tasks' output goes to files in `directory`, of each at most `bytes`.
    pub fn new(directory: impl Into<PathBuf>, bytes: u64, on_end: OnTaskEnd) -> Self {
        Self { directory: directory.into(), bytes, on_end, inside: Mutex::default() }
    }

    /// Lets nothing start any more, and says why.
    pub fn close(&self, why: impl Into<String>) {
        self.inside().closed.get_or_insert(why.into());
    }

    /// All tasks that are known, the oldest first.
    pub fn list(&self) -> Vec<TaskInfo> {
        self.inside().tasks.iter().map(|(task, _)| task.info()).collect()
    }

    /// Ends every task with everything it started, and returns when they are gone.
    pub fn end_all(&self) {
        self.close("the session has ended");
        let mut inside = self.inside();
        let threads: Vec<_> = inside.tasks.iter_mut().filter_map(|(_, thread)| thread.take()).collect();
        // Told all at once, so that together they take no longer than one.
        inside.tasks.iter().for_each(|(task, _)| task.cancel.cancel());
        drop(inside);
        for thread in threads {
            // A thread that broke down has ended, too.
            let _ = thread.join();
        }
    }

    /// Starts a task; `processes` makes what runs its command, given its journal and what ends it.
    pub(crate) fn start(
        &self,
        start: &Start<'_>,
        processes: impl FnOnce(Arc<dyn Record>, Cancel) -> LocalProcesses,
    ) -> Result<TaskInfo, ToolError> {
        let mut inside = self.inside();
        inside.admit(start.class)?;
        inside.forget();
        let id = inside.new_id()?;
        let log = Log::new(&self.directory, self.bytes)?;
        let record = start.record.open_task()?;
        let command = start.request.argv.last().cloned().unwrap_or_default();
        let task = Task::new(id, start.class, start.description, command, record.receipt_id(), log);
        let task = Arc::new(task);
        let processes = processes(Arc::clone(&record), task.cancel.clone());
        let request = RunRequest { inherit: false, keep_bytes: 0, ..start.request.clone() };

        let (running, on_end, its_record) =
            (Arc::clone(&task), Arc::clone(&self.on_end), Arc::clone(&record));
        let thread = std::thread::Builder::new().name("task".to_owned()).spawn(move || {
            on_end(live(&running, &processes, &request, its_record.as_ref()));
        });
        match thread {
            Ok(thread) => {
                inside.tasks.push((Arc::clone(&task), Some(thread)));
                Ok(task.info())
            }
            Err(error) => {
                let error = ToolError::io("there is no room for another thread", &error);
                record.finish_task(CallEnd::of_process(Err(&error)))?;
                Err(error)
            }
        }
    }

    fn find(&self, id: &str) -> Result<Arc<Task>, ToolError> {
        let inside = self.inside();
        let found = inside.tasks.iter().find(|(task, _)| task.id == id);
        found.map(|(task, _)| Arc::clone(task)).ok_or_else(|| {
            let known: Vec<String> = inside.tasks.iter().rev().map(|(task, _)| named(&task.info())).collect();
            let known = match known.as_slice() {
                [] => "none has been started in this session".to_owned(),
                known => format!("there are {}", known.join(", ")),
            };
            ToolError::new(ErrorKind::TargetNotFound, format!("There is no task {id:?}; {known}"))
        })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        lock(&self.inside)
    }
}

impl Drop for TaskRoom {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl Inside {
    /// Refuses what would be too many at once.
    fn admit(&self, class: TaskClass) -> Result<(), ToolError> {
        if let Some(why) = &self.closed {
            return Err(ToolError::failed(format!("Nothing can be left running: {why}")));
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

    /// Makes room: of the tasks that have ended the oldest goes, one that somebody has read before the others.
    fn forget(&mut self) {
        let ended = |tasks: &[(Arc<Task>, _)]| tasks.iter().filter(|(task, _)| task.is_over()).count();
        while ended(&self.tasks) >= MOST_ENDED {
            let read = self.tasks.iter().position(|(task, _)| task.is_read());
            let oldest = || self.tasks.iter().position(|(task, _)| task.is_over());
            let Some(at) = read.or_else(oldest) else { return };
            self.tasks.remove(at);
        }
    }

    /// A name that is easy to repeat and belongs to no task of this session or the last.
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

/// A task's whole life.
fn live(task: &Task, processes: &LocalProcesses, request: &RunRequest, record: &dyn Record) -> TaskInfo {
    let ran = catch_unwind(AssertUnwindSafe(|| processes.run_heard(request, &|bytes| task.hear(bytes))));
    let ran = ran.unwrap_or_else(|_| Err(ToolError::internal("The task broke down")));
    let output = task.text(KEPT_BYTES).ok().filter(|text| text.total_bytes() > 0);
    let full_output = output.map(|text| text.with_gap_notice());
    let end = CallEnd { full_output, ..CallEnd::of_process(ran.as_ref()) };
    let (finished, mut error) = match ran {
        Ok(finished) => (Some(finished), None),
        Err(error) => (None, Some(error)),
    };
    // Whoever hears that it has ended finds its receipt written.
    let recorded = catch_unwind(AssertUnwindSafe(|| record.finish_task(end)));
    if let Err(unrecorded) = recorded.unwrap_or_else(|_| Err(ToolError::internal("the ledger broke down"))) {
        let why = format!("The task could not be recorded: {}", unrecorded.message);
        error.get_or_insert(ToolError::new(unrecorded.kind, why));
    }
    task.end(finished, error)
}

fn named(info: &TaskInfo) -> String {
    format!("{} ({})", info.id, info.state.word())
}
