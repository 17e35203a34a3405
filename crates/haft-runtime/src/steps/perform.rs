//! perform: the only impure step. A tool that panics ends its call with an error, not the process.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use haft_tool::{ErrorKind, ToolError};

/// Runs a tool's own code; a panic becomes an error.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> Result<T, ToolError>) -> Result<T, ToolError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panic_error(panic.as_ref())))
}

pub(crate) fn interrupted() -> ToolError {
    ToolError::new(ErrorKind::Interrupted, "The call was cancelled before it was done")
}

pub(crate) fn panic_error(panic: &(dyn Any + Send)) -> ToolError {
    let message =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    ToolError::internal(format!("The tool panicked: {}", message.unwrap_or("no message")))
}
