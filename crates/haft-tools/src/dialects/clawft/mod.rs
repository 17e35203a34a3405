//! The `clawft` dialect: the tools of clawft. Each answers with one JSON object.

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

use haft_tool::{Bound, Dialect, ErrorKind, Exit, Reads, Tool, ToolError, Value};

use crate::Settings;
use crate::ops::memory::Memory;

/// The most bytes of a result.
const MOST_BYTES: usize = 64 << 10;

/// How its results are cut.
const BOUND: Bound = Bound::json(MOST_BYTES);

/// The dialect and all its tools.
pub fn dialect(settings: &Settings) -> Dialect {
    let memory = Memory::new(&settings.memory, std::env::var_os("HOME"));
    let keeps = [memory_read::MemoryRead::NAME, memory_write::MemoryWrite::NAME]
        .into_iter()
        .flat_map(|tool| memory.places().iter().map(move |place| (tool, place.clone())))
        .collect();
    Dialect {
        name: "clawft",
        tools: vec![
            Arc::new(read_file::ReadFile),
            Arc::new(write_file::WriteFile),
            Arc::new(edit_file::EditFile),
            Arc::new(list_directory::ListDirectory),
            Arc::new(exec_shell::ExecShell),
            Arc::new(memory_read::MemoryRead { memory: memory.clone() }),
            Arc::new(memory_write::MemoryWrite { memory }),
            Arc::new(web_search::WebSearch::new(settings)),
            Arc::new(web_fetch::WebFetch),
            Arc::new(spawn::Spawn::default()),
            Arc::new(message::SendMessage),
        ],
        aliases: &[],
        any_case: false,
        reads: Reads::Roots,
        blocked: &[],
        keeps,
        asks: Vec::new(),
    }
}

/// The result of a command, unless it was ended before it was done; then what it had written goes with the error.
fn ended_early(exit: Exit, seconds: f64, result: Value) -> Result<Value, ToolError> {
    let all = "the command and all it had started were ended; what it had written is in the details";
    match exit {
        Exit::TimedOut => {
            let said = format!("Timed out after {seconds} seconds; {all}");
            Err(ToolError::new(ErrorKind::Timeout, said).with_details(result))
        }
        Exit::Cancelled => {
            Err(ToolError::new(ErrorKind::Interrupted, format!("Cancelled; {all}")).with_details(result))
        }
        Exit::Code(_) | Exit::Signal(_) => Ok(result),
    }
}
