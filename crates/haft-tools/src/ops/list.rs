//! Listing one directory.

use std::path::Path;

use haft_tool::{DirEntry, FileKind, ToolError, Value, World, cut_list};

/// The first `max_entries` entries by name, each converted by `convert` (which is given whether it is a directory). With
/// `mark_cut`, a last item holds the total if there are more.
pub(crate) fn list(
    world: &dyn World,
    path: &Path,
    max_entries: usize,
    mark_cut: bool,
    convert: impl Fn(&DirEntry, bool) -> Value,
) -> Result<Value, ToolError> {
    let (entries, total) = world.files().list_first(path, max_entries)?;
    let items: Vec<Value> = entries.iter().map(|entry| convert(entry, entry.kind == FileKind::Dir)).collect();
    // Not `total > items.len()`: entries can vanish during the listing.
    let cut = mark_cut && total > max_entries as u64;
    Ok(if cut { cut_list(items, total) } else { Value::Array(items) })
}
