//! Running a shell command to its end.

use std::time::Duration;

use haft_tool::{Finished, RunRequest, ToolError, World};

/// How much of a stream is kept in memory and in the ledger; the caller sees less.
const KEEP_BYTES: usize = 8 << 20;

/// The longest argument that Linux passes to a program.
const MOST_COMMAND_BYTES: usize = 128 * 1024 - 1;

/// Refuses what no shell could be given.
pub(crate) fn check(command: &str) -> Result<(), ToolError> {
    if command.trim().is_empty() {
        return Err(ToolError::invalid_arguments("command: it is empty"));
    }
    if command.contains('\0') {
        return Err(ToolError::invalid_arguments("command: it contains a NUL byte"));
    }
    if command.len() > MOST_COMMAND_BYTES {
        return Err(ToolError::invalid_arguments(format!(
            "command: it has {} bytes, and a command may have {MOST_COMMAND_BYTES}; write a script file and run that",
            command.len()
        )));
    }
    Ok(())
}

/// Runs `command` by `shell -c` in the workspace.
pub(crate) fn run(
    world: &dyn World,
    shell: &str,
    command: &str,
    timeout: Duration,
    merge: bool,
) -> Result<Finished, ToolError> {
    world.processes().run(&RunRequest {
        argv: vec![shell.to_owned(), "-c".to_owned(), command.to_owned()],
        cwd: None,
        timeout,
        merge,
        keep_bytes: KEEP_BYTES,
    })
}
