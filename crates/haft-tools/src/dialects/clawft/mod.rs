//! The `clawft` dialect: the tools of clawft. Each returns one JSON object.

mod edit_file;
mod exec_shell;
mod list_directory;
mod memory_read;
mod memory_write;
mod message;
mod read_file;
mod spawn;
mod web_fetch;
mod web_search;
mod write_file;

use std::sync::Arc;

use haft_tool::{Bound, Dialect, ErrorForm, ErrorKind, Exit, Output, Reads, Tool, ToolError, Value};

use crate::Settings;
use crate::ops::memory::Memory;

const MAX_RESULT_BYTES: usize = 64 << 10;

const BOUND: Bound = Bound::json(MAX_RESULT_BYTES);

/// The dialect and all its tools.
pub fn dialect(settings: &Settings) -> Dialect {
    let memory = Memory::new(&settings.memory, std::env::var_os("HOME"));
    let keeps = [memory_read::MemoryRead::NAME, memory_write::MemoryWrite::NAME]
        .into_iter()
        .flat_map(|tool| memory.candidates().iter().map(move |path| (tool, path.clone())))
        .collect();
    Dialect {
        name: "clawft",
        tools: vec![
            Arc::new(read_file::ClawftReadFile),
            Arc::new(write_file::WriteFile),
            Arc::new(edit_file::ClawftEditFile),
            Arc::new(list_directory::ListDirectory),
            Arc::new(exec_shell::ExecShell),
            Arc::new(memory_read::MemoryRead { memory: memory.clone() }),
            Arc::new(memory_write::MemoryWrite { memory }),
            Arc::new(web_search::ClawftWebSearch { settings: settings.clone() }),
            Arc::new(web_fetch::ClawftWebFetch),
            Arc::new(spawn::Spawn::default()),
            Arc::new(message::SendMessage),
        ],
        aliases: &[],
        any_case: false,
        reads: Reads::Roots,
        writes: &[],
        blocked: &[],
        errors: ErrorForm::Json(ErrorKind::clawft_name),
        server_results: Some(Bound::bytes(MAX_RESULT_BYTES)),
        listed_last: &[message::SendMessage::NAME],
        keeps,
    }
}

/// The result of a command. If the command was ended early, the result is in the details of an error.
fn run_output(exit: Exit, timeout_secs: f64, result: Value) -> Result<Output, ToolError> {
    let (kind, reason) = match exit {
        Exit::Code(_) | Exit::Signal(_) => return Ok(Output::json(result)),
        Exit::TimedOut => (ErrorKind::Timeout, format!("Timed out after {timeout_secs} seconds")),
        Exit::Cancelled => (ErrorKind::Interrupted, "Cancelled".to_owned()),
    };
    let ended = "the command and all processes it started were killed";
    Err(ToolError::new(kind, format!("{reason}; {ended}")).with_details(result))
}
