//! What the user types: numbers, and paths, relative to the current directory, as the ledger writes them.

use std::path::{Component, Path, PathBuf};

use haft_files::real_named;
use haft_tool::ToolError;

/// Reads the number of a call.
pub(super) fn call_id(text: &str) -> Result<i64, String> {
    let id = text.parse().ok().filter(|id| *id > 0);
    id.ok_or_else(|| format!("{text:?} is not the number of a call; `haft log` lists them"))
}

/// Reads a number of things to list, at least one.
pub(super) fn list_length(text: &str) -> Result<usize, String> {
    let length = text.parse().ok().filter(|length| *length > 0);
    length.ok_or_else(|| format!("{text:?} is not a number from 1 on"))
}

/// The absolute path without `.` and `..`. Links above it are resolved, as in receipts; the path itself may be a link.
pub(super) fn named(path: &Path) -> Result<PathBuf, ToolError> {
    let here =
        std::env::current_dir().map_err(|error| ToolError::io("find the current directory", &error))?;
    let mut absolute = PathBuf::new();
    for part in here.join(path).components() {
        match part {
            Component::ParentDir => drop(absolute.pop()),
            Component::CurDir => {}
            part => absolute.push(part),
        }
    }
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => Ok(real_named(parent)?.join(name)),
        _ => Ok(absolute),
    }
}
