//! A temporary workspace with an outside, and a record that logs its events.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_files::{LocalFiles, Root, containment};
use haft_tool::{
    Cancel, Change, ErrorKind, FileContent, Files, Intent, Node, Reads, Record, RestorePlan, RestoreStep,
    Scope, ToolError, Written,
};
use tempfile::TempDir;

/// The content of every file outside the workspace.
pub(crate) const SECRET: &[u8] = b"outside";

/// An event of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordEvent {
    Intended { change: Change, bytes: Option<Vec<u8>> },
    Changed(Change),
    NotReversible(String),
}

type Hook = Box<dyn Fn(&[Intent<'_>]) -> Result<(), ToolError> + Send + Sync>;

/// A record that logs its events and calls a hook before each change.
#[derive(Default)]
pub(crate) struct RecordLog {
    events: Mutex<Vec<RecordEvent>>,
    hook: Option<Hook>,
    locks: Option<PathBuf>,
}

impl RecordLog {
    pub(crate) fn events(&self) -> Vec<RecordEvent> {
        self.events.lock().unwrap().clone()
    }

    pub(crate) fn changes(&self) -> Vec<Change> {
        let changed = |event| if let RecordEvent::Changed(change) = event { Some(change) } else { None };
        self.events().into_iter().filter_map(changed).collect()
    }
}

impl Record for RecordLog {
    fn intend(&self, intents: &mut [Intent<'_>]) -> Result<(), ToolError> {
        let events = intents.iter_mut().map(|intent| RecordEvent::Intended {
            change: intent.change.clone(),
            bytes: bytes_of(&mut intent.previous),
        });
        self.events.lock().unwrap().extend(events);
        self.hook.as_ref().map_or(Ok(()), |hook| hook(intents))
    }

    fn lock_file(&self) -> Result<Option<PathBuf>, ToolError> {
        Ok(self.locks.clone())
    }

    fn changed(&self, change: Change) {
        self.events.lock().unwrap().push(RecordEvent::Changed(change));
    }

    fn not_reversible(&self, why: String) {
        self.events.lock().unwrap().push(RecordEvent::NotReversible(why));
    }

    fn witness(
        &self,
        _path: &Path,
        _node: &Node,
        _content: FileContent<'_>,
    ) -> Result<Option<(haft_tool::Hash, u64)>, ToolError> {
        Ok(None)
    }

    fn witness_directory(&self, _event: haft_tool::DirectoryEvent<'_>) -> Result<(), ToolError> {
        Ok(())
    }

    fn cancel_directory(&self) -> Result<(), ToolError> {
        Ok(())
    }

    fn witnessed(&self, changes: Vec<Change>) {
        self.events.lock().unwrap().extend(changes.into_iter().map(RecordEvent::Changed));
    }

    fn enforced(&self, _how: String) {}

    fn refused(&self, _denials: &[haft_tool::Denial]) {}
}

fn bytes_of(content: &mut FileContent<'_>) -> Option<Vec<u8>> {
    match content {
        FileContent::None => None,
        FileContent::Bytes(bytes) => Some(bytes.to_vec()),
        FileContent::Reader(reader) => {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            Some(bytes)
        }
    }
}

/// The content of every file that a test restores.
pub(crate) const BYTES: &[u8] = b"the bytes";

/// A path to be restored to an earlier state.
#[derive(Clone)]
pub(crate) struct Restore<'a> {
    pub(crate) path: &'a Path,
    pub(crate) expect: &'a Node,
    pub(crate) to: &'a Node,
}

/// The plan that restores these paths, in this order.
pub(crate) fn plan_of(restores: &[Restore<'_>]) -> RestorePlan {
    let step = |Restore { path, expect, to }: &Restore<'_>| RestoreStep::Set {
        path: path.to_path_buf(),
        expect: (*expect).clone(),
        to: (*to).clone(),
    };
    let change = |Restore { path, expect, to }: &Restore<'_>| {
        Change::new(path.to_path_buf(), (*expect).clone(), (*to).clone())
    };
    let is_change = |restore: &&Restore<'_>| *restore.expect != Node::Absent || *restore.to != Node::Absent;
    let changes = restores.iter().filter(is_change).map(change).collect();
    RestorePlan { steps: restores.iter().map(step).collect(), changes }
}

pub(crate) fn restore_one(files: &dyn Files, restore: &Restore<'_>) -> Result<(), ToolError> {
    restore_all(files, std::slice::from_ref(restore))
}

pub(crate) fn restore_all(files: &dyn Files, restores: &[Restore<'_>]) -> Result<(), ToolError> {
    files.restore(&plan_of(restores), &|_| Ok(Box::new(BYTES)))
}

/// A workspace `ws`, a second root `second`, and `out`, which is neither.
pub(crate) struct Fixture {
    _held: TempDir,
    pub(crate) base: PathBuf,
    pub(crate) scope: Scope,
    pub(crate) cancel: Cancel,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let held = TempDir::new().unwrap();
        let base = held.path().canonicalize().unwrap();
        for directory in ["ws", "second", "out", "home"] {
            fs::create_dir(base.join(directory)).unwrap();
        }
        fs::write(base.join("out/file"), SECRET).unwrap();
        // Some tests write as another user, who needs locks, too.
        set_mode(&base.join("home"), 0o777);
        let scope = Scope {
            roots: vec![base.join("ws"), base.join("second")],
            reads: Reads::Roots,
            protected: vec![base.join("home")],
            writes: true,
            secrets: vec![".env".to_owned(), ".env.*".to_owned()],
            ..Scope::of(base.join("ws"))
        };
        Self { _held: held, base, scope, cancel: Cancel::new() }
    }

    /// The same, for a call that may read everywhere.
    pub(crate) fn open() -> Self {
        let mut fixture = Self::new();
        fixture.scope.reads = Reads::Everywhere;
        fixture
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    pub(crate) fn ws(&self, path: &str) -> PathBuf {
        self.base.join("ws").join(path)
    }

    /// A file below the base, with the directories it needs.
    pub(crate) fn put(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, link: &str) -> PathBuf {
        let link = self.path(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, &link).unwrap();
        link
    }

    pub(crate) fn files(&self) -> LocalFiles {
        self.recorded().0
    }

    pub(crate) fn recorded(&self) -> (LocalFiles, Arc<RecordLog>) {
        self.with_log(RecordLog::default())
    }

    /// Files whose log calls `hook` before each change.
    pub(crate) fn hooked(
        &self,
        hook: impl Fn(&[Intent<'_>]) -> Result<(), ToolError> + Send + Sync + 'static,
    ) -> (LocalFiles, Arc<RecordLog>) {
        self.with_log(RecordLog { hook: Some(Box::new(hook)), ..RecordLog::default() })
    }

    fn with_log(&self, log: RecordLog) -> (LocalFiles, Arc<RecordLog>) {
        let log = Arc::new(RecordLog { locks: Some(self.path("home/locks")), ..log });
        let roots = self.scope.roots.iter().map(|root| Arc::new(Root::open(root).unwrap())).collect();
        let events: Arc<dyn Record> = Arc::<RecordLog>::clone(&log);
        (LocalFiles::new(Arc::new(self.scope.clone()), roots, events, self.cancel.clone()), log)
    }

    /// The names in a directory below the base, sorted.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Asserts that nothing outside the roots was made, changed or removed.
    pub(crate) fn assert_outside_untouched(&self) {
        assert_eq!(self.names("out"), ["file"]);
        assert_eq!(fs::read(self.path("out/file")).unwrap(), SECRET);
        assert_eq!(self.names(""), ["home", "out", "second", "ws"]);
    }
}

/// Runs `test` as it is, and again where the kernel has no openat2, as on an old Linux or in a strict container.
pub(crate) fn with_and_without_openat2(test: impl Fn() + Send + Sync) {
    test();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            block_openat2();
            assert!(containment().contains("no openat2"), "{}", containment());
            test();
        });
        thread.join().unwrap();
    });
}

/// Takes openat2 from this thread and those that it starts.
#[expect(unsafe_code, reason = "a system call filter is installed by address")]
fn block_openat2() {
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt,
        jf,
        k,
    };
    let answer = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::ENOSYS).unwrap();
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, u32::try_from(libc::SYS_openat2).unwrap()),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, answer),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    rustix::thread::set_no_new_privs(true).unwrap();
    // SAFETY: `program` and the four steps it points to live until the call has returned.
    let done = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

pub(crate) fn read(files: &dyn Files, path: &Path) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    files.open(path)?.reader.read_to_end(&mut bytes).unwrap();
    Ok(bytes)
}

pub(crate) fn write(files: &dyn Files, path: &Path, bytes: &[u8]) -> Result<Written, ToolError> {
    files.update(path, &mut |_| Ok(bytes.to_vec()))
}

pub(crate) fn kind<T>(result: Result<T, ToolError>) -> Result<(), ErrorKind> {
    result.map(drop).map_err(|error| error.kind)
}

/// Whether this is a name under which Haft prepares a file.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.strip_prefix(".haft-").and_then(|rest| rest.strip_suffix(".tmp")).is_some()
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The state of a file.
pub(crate) fn observed(files: &dyn Files, path: &Path) -> Node {
    files.observe(path).unwrap()
}
