//! The user's own program for a kind of file.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

#[cfg(target_os = "macos")]
const OPENER: &str = "open";
#[cfg(not(target_os = "macos"))]
const OPENER: &str = "xdg-open";

/// Has the user's desktop open a file. It is the user's own program, so it runs outside the sandbox. Its end is not awaited:
/// without a desktop it is the browser itself. Ctrl-C does not reach it.
pub fn open_for_user(file: &Path) -> io::Result<()> {
    let quiet = Stdio::null;
    let mut command = Command::new(OPENER);
    command.arg(file).stdin(quiet()).stdout(quiet()).stderr(quiet()).process_group(0);
    let mut opener = command.spawn()?;
    // Only so that no zombie is left.
    std::thread::Builder::new().name("haft-opener".to_owned()).spawn(move || opener.wait())?;
    Ok(())
}
