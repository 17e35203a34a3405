//! Running other programs.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::Done;

/// Runs a command whose output goes to the terminal; a failure is an error.
pub(crate) fn run(command: &mut Command) -> Done {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} ended with {status}", name(command))),
        Err(error) => Err(format!("{}: {error}", name(command))),
    }
}

/// Runs a command and returns its standard output; a failure is an error that has its standard error.
pub(crate) fn read(command: &mut Command) -> Result<String, String> {
    let output = output(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Runs a command and returns what it wrote and how it ended.
pub(crate) fn output(command: &mut Command) -> Result<Output, String> {
    command.output().map_err(|error| format!("{}: {error}", name(command)))
}

/// The path of a program on this machine.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}
