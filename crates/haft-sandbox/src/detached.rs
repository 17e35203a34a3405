//! Starts a program that outlives its parent and the terminal.

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    let output = directory.join(format!("{}-{}.txt", now_ms(), std::process::id()));
    let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&output)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let new_session = || rustix::process::setsid().map(drop).map_err(Into::into);
    #[expect(unsafe_code, reason = "setsid must be called by the child")]
    // SAFETY: one system call, which is allowed between fork and exec.
    unsafe {
        command.pre_exec(new_session)
    };
    let child = command.spawn()?;
    Ok(DetachedProcess { pid: child.id(), output })
}
