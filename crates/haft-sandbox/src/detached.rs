//! Starts a program that outlives its parent and the terminal.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, PipeReader, Read as _, Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Once;
use std::time::UNIX_EPOCH;

use haft_tool::now_ms;
use rustix::io::FdFlags;

/// The variable with the descriptor on which a detached process tells that its command has started.
const REPORT_VARIABLE: &str = "HAFT_DETACHED_REPORT";

/// A detached process.
#[derive(Debug)]
pub struct DetachedProcess {
    /// Its pid.
    pub pid: u32,
    /// The file that receives its output.
    pub output: PathBuf,
    child: Child,
    report: PipeReader,
}

impl DetachedProcess {
    /// Whether it has ended; then with its exit code.
    pub fn try_wait(&mut self) -> io::Result<Option<i32>> {
        Ok(self.child.try_wait()?.map(exit_code))
    }

    /// Waits until its command has started, or until it has ended without that; then with its exit code.
    pub fn wait_started(&mut self) -> io::Result<Result<(), i32>> {
        if self.report.read(&mut [0])? > 0 {
            return Ok(Ok(()));
        }
        Ok(Err(exit_code(self.child.wait()?)))
    }
}

/// The exit code as a shell would report it.
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Tells the process that has detached this one, if there is one, that a command has started.
pub(crate) fn tell_started() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        let number = std::env::var(REPORT_VARIABLE).ok().and_then(|number| number.parse().ok());
        let Some(number) = number.filter(|number: &RawFd| *number > 2) else { return };
        #[expect(unsafe_code, reason = "the descriptor is inherited by its number")]
        // SAFETY: the number is that of the pipe that `spawn_detached` passed on; nothing else in this process uses it.
        let report = unsafe { OwnedFd::from_raw_fd(number) };
        // The other process may have gone.
        let _ = rustix::io::write(report, &[1]);
    });
}

/// Starts this program again with other arguments, in a session of its own without a terminal. Its input is `input`; its output
/// goes to a new file in `directory` that only its user can read.
pub fn spawn_detached(
    arguments: impl IntoIterator<Item = OsString>,
    input: &[u8],
    directory: &Path,
) -> io::Result<DetachedProcess> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let started_at = now_ms();
    let output = directory.join(format!("{started_at}-new-{}.txt", std::process::id()));
    let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&output)?;
    let (report, report_end) = io::pipe()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).stdin(input_of(input, directory)?).stdout(file.try_clone()?).stderr(file);
    command.env(REPORT_VARIABLE, report_end.as_raw_fd().to_string());
    let passed = report_end.as_raw_fd();
    let prepare = move || {
        rustix::process::setsid()?;
        // A shell without job control has its background jobs ignore Ctrl-C, and this process would inherit that.
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            #[expect(unsafe_code, reason = "signal has no safe interface")]
            // SAFETY: the default disposition installs no handler.
            unsafe {
                libc::signal(signal, libc::SIG_DFL)
            };
        }
        #[expect(unsafe_code, reason = "the closure cannot hold the descriptor itself")]
        // SAFETY: the pipe is open until the child has been started.
        rustix::io::fcntl_setfd(unsafe { BorrowedFd::borrow_raw(passed) }, FdFlags::empty())?;
        Ok(())
    };
    #[expect(unsafe_code, reason = "setsid must be called by the child")]
    // SAFETY: system calls only, which are allowed between fork and exec.
    unsafe {
        command.pre_exec(prepare)
    };
    let child = command.spawn()?;
    drop(report_end);
    let pid = child.id();
    // The name says which process writes to it.
    let named = directory.join(format!("{started_at}-{pid}.txt"));
    fs::rename(&output, &named)?;
    Ok(DetachedProcess { pid, output: named, child, report })
}

/// Standard input with these bytes. They are in a file, so that the process has all of them even if this one dies.
fn input_of(bytes: &[u8], directory: &Path) -> io::Result<Stdio> {
    if bytes.is_empty() {
        return Ok(Stdio::null());
    }
    let path = directory.join(format!("{}-input-{}", now_ms(), std::process::id()));
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(Stdio::from(file))
}

/// A file with the output of a detached process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachedOutput {
    /// The process.
    pub pid: u32,
    /// When it was started, in milliseconds since 1970.
    pub started_at: u64,
    /// When it was last written to, in milliseconds since 1970.
    pub modified_at: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The file.
    pub path: PathBuf,
}

/// The outputs in `directory`, oldest first.
pub fn detached_outputs(directory: &Path) -> Vec<DetachedOutput> {
    let parse = |path: PathBuf| {
        let (started_at, pid) = path.file_stem()?.to_str()?.rsplit_once('-')?;
        let (started_at, pid) = (started_at.parse().ok()?, pid.parse().ok()?);
        let meta = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let modified = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_millis();
        let modified_at = u64::try_from(modified).unwrap_or(u64::MAX);
        Some(DetachedOutput { pid, started_at, modified_at, size: meta.len(), path })
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut outputs: Vec<_> = entries.filter_map(|entry| parse(entry.path())).collect();
    outputs.sort_by_key(|output| output.started_at);
    outputs
}

/// Removes the output of a process that has ended.
pub fn remove_detached_output(output: &DetachedOutput) -> io::Result<()> {
    fs::remove_file(&output.path)
}
