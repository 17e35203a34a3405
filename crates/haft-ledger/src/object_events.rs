//! What calls had to do with a git object, in whatever repository and under whatever path: objects are known by their ids, so
//! that it does not matter who packs, moves or copies them afterwards.
//!
//! A loose object's name is its id, without the first byte. Of the indexes of packs, the previous states and those that calls
//! wrote are in the ledger; an index lists ids as bytes.

use std::io::{self, Read};
use std::path::Path;

use haft_policy::settings_rule;
use haft_tool::{
    Change, FileNode, GitBlob, GitObjectEvent, GitObjectEventKind, Node, Receipt, ToolError,
    git_objects_directory, is_git_index, path_from_text,
};
use memchr::memmem;

use crate::Ledger;
use crate::origin::CLOCK_TICK_MS;
use crate::spool::{self, SpoolRecord};
use crate::spool_reader::SpoolReader;

/// Calls that changed an object's file, an index or a file with its content, or moved a directory.
const CALLS_ABOUT: &str = "SELECT id FROM receipts WHERE change_count > 0 AND (instr(changes, ?1) > 0
    OR instr(changes, ?2) > 0 OR instr(changes, '.idx\"') > 0 OR instr(changes, 'multi-pack-index') > 0
    OR instr(changes, '\"moved_to\"') > 0) ORDER BY id";
const BUFFER_BYTES: usize = 64 * 1024;
/// A larger index of a running call is not searched.
const MAX_SPOOLED_INDEX_BYTES: u64 = 64 << 20;

/// What an object is looked up by.
struct ObjectKey<'a> {
    blob: &'a GitBlob<'a>,
    /// The name of a loose object.
    loose_name: String,
    content_hash: String,
}

impl ObjectKey<'_> {
    fn is_loose(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(&self.loose_name))
    }

    /// Whether one of the object's files is in the same repository as the index at `path`.
    fn is_beside(&self, path: &Path) -> bool {
        let objects = git_objects_directory(path);
        self.blob.files.iter().any(|file| git_objects_directory(&file.path) == objects)
    }

    fn has_content(&self, file: &FileNode) -> bool {
        let size = self.blob.content.len() as u64;
        size > 0 && file.size == size && (file.hash.is_empty() || file.hash == self.content_hash)
    }
}

impl Ledger {
    /// What calls had to do with a blob, those that run last.
    pub(crate) fn blob_events(&self, blob: &GitBlob<'_>) -> Result<Vec<GitObjectEvent>, ToolError> {
        let loose_name = blob.id[1..].iter().map(|byte| format!("{byte:02x}")).collect();
        let content_hash = blake3::hash(blob.content).to_hex().to_string();
        let key = ObjectKey { blob, loose_name, content_hash };
        let ids: Vec<i64> = self.db.read(|conn| {
            let mut statement = conn.prepare(CALLS_ABOUT)?;
            let rows = statement.query_map([&key.loose_name, &key.content_hash], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        let mut events = Vec::new();
        for id in ids {
            let receipt = self.receipt(id)?;
            self.add_events(&receipt, &key, &mut events)?;
        }
        for id in spool::receipts(self.db.dir()) {
            self.add_running(id, &key, &mut events)?;
        }
        Ok(events)
    }

    /// Adds the events of a call that has ended.
    fn add_events(
        &self,
        receipt: &Receipt,
        key: &ObjectKey<'_>,
        events: &mut Vec<GitObjectEvent>,
    ) -> Result<(), ToolError> {
        let mut own = CallEvents::new(receipt);
        let has = |node: &Node| node.as_file().is_some_and(|file| key.has_content(file));
        // A call that moved the content has not written it.
        let had_content = receipt.changes.iter().any(|change| has(&change.before));
        for Change { path, before, after, moved_to, .. } in &receipt.changes {
            if let Some(to) = moved_to {
                own.add_moved(to, key);
            } else if key.is_loose(path) {
                match (before, after) {
                    (Node::File(_), _) => own.add(GitObjectEventKind::Found, path),
                    (_, Node::File(_) | Node::Link { .. }) => own.add(GitObjectEventKind::Written, path),
                    _ => {}
                }
            } else if is_git_index(path) {
                // What a link leads to has another name, and may list every object of this repository.
                if matches!(after, Node::Link { .. }) && key.is_beside(path) {
                    own.add(GitObjectEventKind::Written, path);
                }
                let (before, after) = (before.as_file(), after.as_file());
                if before.is_some_and(|file| self.lists(file, key) == Some(true)) {
                    own.add(GitObjectEventKind::Found, path);
                }
                // An index that cannot be read may list everything.
                let is_new = |file: &&FileNode| before.is_none_or(|before| before.hash != file.hash);
                if after.filter(is_new).is_some_and(|file| self.lists(file, key) != Some(false)) {
                    own.add(GitObjectEventKind::Written, path);
                }
            } else if has(after) && !had_content && settings_rule(path).is_none() {
                own.add(GitObjectEventKind::ContentWritten, path);
            }
        }
        self.add_own(own, receipt, events)
    }

    /// Adds the events of a call that has not ended. What it has written is not known yet, so all that changed since it
    /// started may be from it.
    fn add_running(
        &self,
        id: i64,
        key: &ObjectKey<'_>,
        events: &mut Vec<GitObjectEvent>,
    ) -> Result<(), ToolError> {
        let failed = |error: io::Error| ToolError::io("read the spool", &error);
        let receipt = self.receipt(id).unwrap_or_default();
        let mut own = CallEvents::new(&receipt);
        if let Some(mut reader) = SpoolReader::open(self.db.dir(), id).map_err(failed)? {
            while let Some(record) = reader.next().map_err(failed)? {
                match record.decode() {
                    Some(SpoolRecord::Before { path, node, .. }) => {
                        let path = path_from_text(&path);
                        if let Node::File(file) = &*node
                            && (key.is_loose(&path)
                                || is_git_index(&path) && self.spool_lists(id, file, key)?)
                        {
                            own.add(GitObjectEventKind::Found, &path);
                        }
                    }
                    Some(SpoolRecord::Moved { to, .. }) => own.add_moved(&path_from_text(&to), key),
                    _ => {}
                }
            }
        }
        for file in key.blob.files {
            if file.changed_at + CLOCK_TICK_MS >= receipt.started_at {
                own.add(GitObjectEventKind::Written, &file.path);
            }
        }
        self.add_own(own, &receipt, events)
    }

    fn add_own(
        &self,
        mut own: CallEvents<'_>,
        receipt: &Receipt,
        events: &mut Vec<GitObjectEvent>,
    ) -> Result<(), ToolError> {
        let is_found = |event: &GitObjectEvent| event.kind == GitObjectEventKind::Found;
        // It may have found what another call was about to lose again.
        if own.events.iter().any(is_found) && self.ran_beside_another(receipt)? {
            own.events.retain(|event| !is_found(event));
        }
        events.append(&mut own.events);
        Ok(())
    }

    /// Whether an index in the ledger lists the object; `None` if it is not there or cannot be read.
    fn lists(&self, index: &FileNode, key: &ObjectKey<'_>) -> Option<bool> {
        let mut reader = self.open_blob(&index.hash).ok()?;
        contains(&mut reader, &key.blob.id).ok()
    }

    /// Whether an index in the spool of a running call lists the object.
    fn spool_lists(&self, id: i64, index: &FileNode, key: &ObjectKey<'_>) -> Result<bool, ToolError> {
        if index.size > MAX_SPOOLED_INDEX_BYTES {
            return Ok(false);
        }
        let bytes = self.spooled_content(id, &index.hash)?;
        Ok(bytes.is_some_and(|bytes| memmem::find(&bytes, &key.blob.id).is_some()))
    }
}

/// The events of one call.
struct CallEvents<'a> {
    receipt: &'a Receipt,
    events: Vec<GitObjectEvent>,
}

impl<'a> CallEvents<'a> {
    fn new(receipt: &'a Receipt) -> Self {
        Self { receipt, events: Vec::new() }
    }

    fn add(&mut self, kind: GitObjectEventKind, path: &Path) {
        let (call, started_at) = (self.receipt.id, self.receipt.started_at);
        self.events.push(GitObjectEvent { kind, path: path.to_owned(), call, started_at });
    }

    /// A directory that was moved to one of the object's files, or above it, brought it there.
    fn add_moved(&mut self, to: &Path, key: &ObjectKey<'_>) {
        for file in key.blob.files.iter().filter(|file| file.path.starts_with(to)) {
            self.add(GitObjectEventKind::Written, &file.path);
        }
    }
}

/// Whether the bytes of an id are in a content. Indexes of all versions list ids as bytes; a forged one need not be sorted.
fn contains(reader: &mut dyn Read, id: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut kept = 0;
    loop {
        let count = match reader.read(&mut buffer[kept..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let end = kept + count;
        if memmem::find(&buffer[..end], id).is_some() {
            return Ok(true);
        }
        if count == 0 {
            return Ok(false);
        }
        // The id may begin in this part and end in the next one.
        kept = end.min(id.len() - 1);
        buffer.copy_within(end - kept..end, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_found_across_the_parts_that_are_read() {
        let id = [7_u8; 20];
        for at in [0, 1, BUFFER_BYTES - 20, BUFFER_BYTES - 1, BUFFER_BYTES, 3 * BUFFER_BYTES - 7] {
            let mut bytes = vec![0; at];
            bytes.extend_from_slice(&id);
            assert!(contains(&mut bytes.as_slice(), &id).unwrap(), "{at}");
            assert!(contains(&mut bytes.as_slice().chain(&[0; 9][..]), &id).unwrap(), "{at}");
            bytes.pop();
            assert!(!contains(&mut bytes.as_slice(), &id).unwrap(), "{at}");
        }
    }
}
