//! Starts a program that outlives its parent and the terminal.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use haft_tool::now_ms;

/// A detached process.
#[derive(Debug)]
pub struct DetachedProcess {
    /// Its pid.
    pub pid: u32,
    /// The file that receives its output.
    pub output: PathBuf,
}

/// Starts this program again with other arguments, in a session of its own without a terminal or input. Its output goes
/// to a new file in `directory` that only its user can read.
pub fn spawn_detached(
    arguments: impl IntoIterator<Item = OsString>,
    directory: &Path,
) -> io::Result<DetachedProcess> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let started_at = now_ms();
    let output = directory.join(format!("{started_at}-new-{}.txt", std::process::id()));
    let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&output)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let new_session = || rustix::process::setsid().map(drop).map_err(Into::into);
    #[expect(unsafe_code, reason = "setsid must be called by the child")]
    // SAFETY: one system call, which is allowed between fork and exec.
    unsafe {
        command.pre_exec(new_session)
    };
    let pid = command.spawn()?.id();
    // The name says which process writes to it.
    let named = directory.join(format!("{started_at}-{pid}.txt"));
    fs::rename(&output, &named)?;
    Ok(DetachedProcess { pid, output: named })
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
