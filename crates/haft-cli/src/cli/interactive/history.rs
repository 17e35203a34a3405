//! What the user typed in earlier sessions: one JSON string per line, in a file of Haft's home that only the user may read.

use std::path::PathBuf;

use haft_files::{read_named, write_private};
use haft_ledger::Ledger;

/// Entries that are kept.
const MAX_ENTRIES: usize = 1_000;
/// A longer entry is not kept.
const MAX_ENTRY_BYTES: usize = 16 << 10;
const MAX_FILE_BYTES: u64 = 32 << 20;
const FILE_NAME: &str = "prompts.jsonl";

/// The history of all sessions of this user.
pub(super) struct PromptHistory {
    /// `None` where there is no home.
    file: Option<PathBuf>,
}

impl PromptHistory {
    pub(super) fn new() -> Self {
        Self { file: Ledger::home_from_env().ok().map(|home| home.join(FILE_NAME)) }
    }

    /// The entries, oldest first. Lines that cannot be read are skipped.
    pub(super) fn entries(&self) -> Vec<String> {
        let Some(bytes) = self.file.as_ref().and_then(|file| read_named(file, MAX_FILE_BYTES).ok()) else {
            return Vec::new();
        };
        let text = String::from_utf8_lossy(&bytes);
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Adds an entry. The file is read again, because another session may have written it. A history that cannot be kept is no
    /// reason to stop.
    pub(super) fn add(&self, entry: &str) {
        let Some(file) = self.file.as_ref().filter(|_| entry.len() <= MAX_ENTRY_BYTES) else { return };
        let mut entries = self.entries();
        if entries.last().is_some_and(|last| last == entry) {
            return;
        }
        entries.push(entry.to_owned());
        let kept = entries.iter().skip(entries.len().saturating_sub(MAX_ENTRIES));
        let lines: String =
            kept.filter_map(|entry| serde_json::to_string(entry).ok()).map(|line| line + "\n").collect();
        if let Err(error) = write_private(file, lines.as_bytes()) {
            tracing::warn!(%error, "the history could not be written");
        }
    }
}
