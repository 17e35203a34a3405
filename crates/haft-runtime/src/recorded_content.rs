//! The contents of files as calls found and left them.

use std::path::Path;

use haft_files::{hash, read_named};
use haft_ledger::Ledger;
use haft_tool::Node;

/// Files larger than this are not read to show a difference.
pub const MAX_DIFF_FILE_BYTES: u64 = 16 << 20;

/// The content of a file that a call found or left: from the ledger, or from the file if it is still the same.
pub fn recorded_content(ledger: &Ledger, path: &Path, node: &Node) -> Option<Vec<u8>> {
    let file = node.as_file().filter(|file| file.size <= MAX_DIFF_FILE_BYTES)?;
    if let Ok(bytes) = ledger.blob(&file.hash) {
        return Some(bytes);
    }
    let bytes = read_named(path, MAX_DIFF_FILE_BYTES).ok()?;
    (hash(&bytes) == file.hash).then_some(bytes)
}
