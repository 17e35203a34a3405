//! Paths that the user types: relative to the current directory, as the ledger writes them.

use std::path::{Component, Path, PathBuf};

use haft_files::real_named;
use haft_tool::ToolError;

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
