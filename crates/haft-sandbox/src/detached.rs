//! A program that goes on when whoever started it, and the terminal, are gone.

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haft_tool::{ToolError, now_ms};

/// A process that goes on by itself.
#[derive(Debug)]
pub struct Detached {
    /// Its number.
    pub process: u32,
    /// What it writes.
    pub output: PathBuf,
}

/// Starts this very program anew with these arguments, and leaves it to itself. It hears nobody, has a
/// session without a terminal, and what it says goes to a file in `folder` that only its user may read.
pub fn detach(arguments: impl IntoIterator<Item = OsString>, folder: &Path) -> Result<Detached, ToolError> {
    let failed = |error: std::io::Error| ToolError::io("leave a command to itself", &error);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let output = folder.join(format!("{}-{}.txt", now_ms(), std::process::id()));
    let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&output).map_err(failed)?;
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(file.try_clone().map_err(failed)?).stderr(file);
    let leave_session = || rustix::process::setsid().map(drop).map_err(Into::into);
    #[expect(unsafe_code, reason = "only a new process can leave before the terminal goes away")]
    // SAFETY: one system call, which a process between fork and exec may make.
    unsafe {
        command.pre_exec(leave_session)
    };
    let child = command.spawn().map_err(failed)?;
    Ok(Detached { process: child.id(), output })
}
