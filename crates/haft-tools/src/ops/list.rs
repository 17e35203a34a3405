//! The entries of one directory, as many as are wanted.

use std::path::Path;

use haft_tool::{DirEntry, FileKind, ToolError, Value, World, cut_list};

/// The first `most` entries by name, each told as `told` says, and a last one that tells how many there are if that is
/// more. With `marked` false nothing tells.
pub(crate) fn list(
    world: &dyn World,
    path: &Path,
    most: usize,
    marked: bool,
    told: impl Fn(&DirEntry, bool) -> Value,
) -> Result<Value, ToolError> {
    let (entries, total) = world.files().list_first(path, most)?;
    let cut = total > most as u64;
    let items: Vec<Value> = entries.iter().map(|entry| told(entry, entry.kind == FileKind::Dir)).collect();
    // Entries may vanish while they are looked at, which is no cut.
    Ok(if marked && cut { cut_list(items, total) } else { Value::Array(items) })
}
