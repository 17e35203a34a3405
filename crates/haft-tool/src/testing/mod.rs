//! An in-memory World, for tests of tools without a machine (feature `testing`).
//!
//! Files live in a map, commands and HTTP requests get scripted results, and the clock stands still unless it is set.

mod files;
mod scripted;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::{
    AnyTool, Cancel, Effect, Files, Host, Http, NoHost, Output, Planning, Processes, Progress, Tasks,
    ToolError, World, lock,
};

pub use files::MemoryFiles;
pub use scripted::{NoTasks, ScriptedHttp, ScriptedProcesses};

/// The time at which the clock of a new [`MemoryWorld`] stands: 2025-01-01, in milliseconds since 1970.
pub const START_MS: u64 = 1_735_689_600_000;

/// A World in memory.
///
/// ```
/// # use haft_tool::testing::MemoryWorld;
/// # use haft_tool::World as _;
/// let world = MemoryWorld::new("/w").with_file("/w/a.txt", "one\n");
/// world.files().update("/w/b.txt".as_ref(), &mut |_| Ok(b"two\n".to_vec())).unwrap();
/// assert_eq!(world.text("/w/b.txt").as_deref(), Some("two\n"));
/// ```
pub struct MemoryWorld {
    planning: Planning,
    files: MemoryFiles,
    /// Results of commands, in the order in which they are run.
    pub processes: ScriptedProcesses,
    /// Responses to HTTP requests, in the order in which they are sent.
    pub http: ScriptedHttp,
    host: Box<dyn Host>,
    notes: Mutex<BTreeMap<String, Value>>,
    progress: Mutex<Vec<Progress>>,
    now_ms: Arc<AtomicU64>,
    cancel: Cancel,
}

impl MemoryWorld {
    /// A World with an empty workspace.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        let workspace = workspace.into();
        let now_ms = Arc::new(AtomicU64::new(START_MS));
        Self {
            files: MemoryFiles::new(workspace.clone(), Arc::clone(&now_ms)),
            planning: Planning::new(workspace),
            processes: ScriptedProcesses::default(),
            http: ScriptedHttp::default(),
            host: Box::new(NoHost),
            notes: Mutex::default(),
            progress: Mutex::default(),
            now_ms,
            cancel: Cancel::new(),
        }
    }

    /// The same World with a file, in the workspace or outside.
    #[must_use]
    pub fn with_file(self, path: impl AsRef<Path>, content: impl Into<Vec<u8>>) -> Self {
        self.files.set(path.as_ref(), content.into());
        self
    }

    /// The same World with a host.
    #[must_use]
    pub fn with_host(mut self, host: impl Host + 'static) -> Self {
        self.host = Box::new(host);
        self
    }

    /// Plans a call and performs it, without asking policy, which is the runtime's part.
    pub fn call(&self, tool: &Arc<dyn AnyTool>, arguments: Value) -> Result<Output, ToolError> {
        let planned = Arc::clone(tool).plan(arguments, &self.planning)?;
        (planned.plan)(self)
    }

    /// The effects that a call declares.
    pub fn effects(&self, tool: &Arc<dyn AnyTool>, arguments: Value) -> Result<Vec<Effect>, ToolError> {
        Ok(Arc::clone(tool).plan(arguments, &self.planning)?.effects)
    }

    /// The files, with access to their content and to the changes that were made.
    pub fn memory_files(&self) -> &MemoryFiles {
        &self.files
    }

    /// The content of a file as text; `None` if there is no such file or it is not UTF-8.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        self.files.content(path.as_ref()).and_then(|content| String::from_utf8(content).ok())
    }

    /// All progress reports so far.
    pub fn progress_reports(&self) -> Vec<Progress> {
        lock(&self.progress).clone()
    }

    /// Sets the clock.
    pub fn set_now_ms(&self, now_ms: u64) {
        self.now_ms.store(now_ms, Ordering::SeqCst);
    }
}

impl World for MemoryWorld {
    fn planning(&self) -> &Planning {
        &self.planning
    }

    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn processes(&self) -> &dyn Processes {
        &self.processes
    }

    fn tasks(&self) -> &dyn Tasks {
        &NoTasks
    }

    fn http(&self) -> &dyn Http {
        &self.http
    }

    fn host(&self) -> &dyn Host {
        self.host.as_ref()
    }

    fn note(&self, name: &str) -> Result<Option<Value>, ToolError> {
        Ok(lock(&self.notes).get(name).cloned())
    }

    fn set_note(&self, name: &str, value: Value) {
        lock(&self.notes).insert(name.to_owned(), value);
    }

    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn progress(&self, progress: Progress) {
        lock(&self.progress).push(progress);
    }

    fn cancelled(&self) -> &Cancel {
        &self.cancel
    }
}
