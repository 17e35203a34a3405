//! A program that goes on when whoever started it, and the terminal, are gone.

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
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

/// Starts this very program anew with these arguments, and leaves it to itself. It hears nobody, and what it says goes to
/// a file in `folder` that only its user may read. It has to leave this session by itself ([`leave_session`]).
pub fn detach(arguments: impl IntoIterator<Item = OsString>, folder: &Path) -> Result<Detached, ToolError> {
    let failed = |error: std::io::Error| ToolError::io("leave a command to itself", &error);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let output = folder.join(format!("{}-{}.txt", now_ms(), std::process::id()));
    let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&output).map_err(failed)?;
    let child = Command::new(std::env::current_exe().map_err(failed)?)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(file.try_clone().map_err(failed)?)
        .stderr(file)
        .spawn()
        .map_err(failed)?;
    Ok(Detached { process: child.id(), output })
}

/// Leaves the session and the terminal of whoever started this process: what ends those does not end this.
pub fn leave_session() -> Result<(), ToolError> {
    let left = rustix::process::setsid();
    left.map(drop).map_err(|error| ToolError::io("leave the terminal's session", &error.into()))
}
