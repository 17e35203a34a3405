//! Text that is still growing: the output of a running command, or the answer that a model is writing. Other processes read it
//! from a file, which is removed when the text is complete.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use haft_tool::{LiveOutput, ToolError};
use rusqlite::Connection;
use rusqlite::types::FromSql;

use crate::directory::{make_private_dirs, private_file};
use crate::error::TxResult;
use crate::{Ledger, sql};

/// When the file gets larger, only the newest part of the text is kept.
const MAX_FILE_BYTES: u64 = 256 << 10;
const KEPT_BYTES: usize = 64 << 10;
/// The suffix of a file that is about to replace another one.
const NEW_FILE: &str = ".new";
/// The file begins with the position of its first byte in the whole text.
const HEADER_BYTES: usize = 8;

/// What a text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveSource<'a> {
    /// The output of a call's command.
    Call(i64),
    /// The answer in the run of a session.
    Run(&'a str),
}

impl LiveSource<'_> {
    fn file_name(&self) -> String {
        match self {
            Self::Call(id) => format!("call-{id}"),
            Self::Run(session) => format!("run-{session}"),
        }
    }
}

/// Writes a text while it grows. Dropping it removes the file.
#[derive(Debug)]
pub struct LiveWriter {
    path: PathBuf,
    file: File,
    /// The size of the file without its header.
    bytes: u64,
    /// The position of the file's first byte in the text.
    start: u64,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveText {
    /// The position of its first byte in the whole text.
    pub from: u64,
    /// The bytes from there to the end.
    pub bytes: Vec<u8>,
}

impl Ledger {
    /// Begins a text. One that a dead process left behind is replaced.
    pub fn begin_live_text(&self, source: LiveSource<'_>) -> Result<LiveWriter, ToolError> {
        let path = self.live_path(source);
        let failed = |error| ToolError::io(path.display(), &error);
        if let Some(dir) = path.parent() {
            make_private_dirs(dir).map_err(failed)?;
        }
        let file = new_file(&path, 0).map_err(failed)?;
        Ok(LiveWriter { path, file, bytes: 0, start: 0 })
    }

    /// The text from the byte `from` on, or from the first byte that is still kept; `None` if there is no such text.
    pub fn live_text(&self, source: LiveSource<'_>, from: u64) -> Option<LiveText> {
        // While the file is being replaced, this reads the old or the new one.
        read_from(&self.live_path(source), from).ok()
    }

    fn live_path(&self, source: LiveSource<'_>) -> PathBuf {
        self.db.dir().live().join(source.file_name())
    }

    /// Removes the texts that dead processes left behind, only to free space: texts of what no longer runs are never read.
    pub(crate) fn remove_stale_live_texts(&self) -> Result<(), ToolError> {
        // Listed first, because whatever begins meanwhile has its row before its file.
        let Ok(entries) = fs::read_dir(self.db.dir().live()) else { return Ok(()) };
        let names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let growing = self.db.read(|conn| {
            let calls: Vec<i64> = column(conn, sql::ALL_RUNNING)?;
            let runs: Vec<String> = column(conn, sql::ALL_DRIVERS)?;
            let calls = calls.into_iter().map(|id| LiveSource::Call(id).file_name());
            Ok(calls
                .chain(runs.iter().map(|session| LiveSource::Run(session).file_name()))
                .collect::<HashSet<_>>())
        })?;
        for name in names {
            let source = name.strip_suffix(NEW_FILE).unwrap_or(&name);
            if !growing.contains(source) {
                // Another process may have removed it.
                let _ = fs::remove_file(self.db.dir().live().join(name));
            }
        }
        Ok(())
    }
}

/// The first column of all rows.
fn column<T: FromSql>(conn: &Connection, sql: &str) -> TxResult<Vec<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    Ok(statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

impl LiveOutput for LiveWriter {
    fn push(&mut self, skipped: u64, bytes: &[u8]) -> Result<(), ToolError> {
        let pushed = if skipped > 0 {
            let from = self.start + self.bytes + skipped;
            self.replace(from, bytes)
        } else if self.bytes + bytes.len() as u64 > MAX_FILE_BYTES {
            self.drop_beginning(bytes)
        } else {
            self.file.write_all(bytes).map(|()| self.bytes += bytes.len() as u64)
        };
        pushed.map_err(|error| ToolError::io(self.path.display(), &error))
    }
}

impl LiveWriter {
    fn drop_beginning(&mut self, bytes: &[u8]) -> io::Result<()> {
        let end = self.start + self.bytes;
        let mut kept = read_from(&self.path, end.saturating_sub(KEPT_BYTES as u64))?.bytes;
        kept.extend_from_slice(bytes);
        let excess = kept.len().saturating_sub(KEPT_BYTES);
        kept.drain(..excess);
        self.replace(end + bytes.len() as u64 - kept.len() as u64, &kept)
    }

    /// Replaces the file by one with this part of the text; readers see the old or the new file.
    fn replace(&mut self, start: u64, kept: &[u8]) -> io::Result<()> {
        let mut temp = self.path.clone().into_os_string();
        temp.push(NEW_FILE);
        let mut file = new_file(Path::new(&temp), start)?;
        file.write_all(kept)?;
        fs::rename(&temp, &self.path)?;
        (self.file, self.start, self.bytes) = (file, start, kept.len() as u64);
        Ok(())
    }
}

impl Drop for LiveWriter {
    fn drop(&mut self) {
        // If this fails, housekeeping removes the file.
        let _ = fs::remove_file(&self.path);
    }
}

fn new_file(path: &Path, start: u64) -> io::Result<File> {
    let mut file = private_file(path, OpenOptions::new().write(true).create(true).truncate(true))?;
    file.write_all(&start.to_le_bytes())?;
    Ok(file)
}

fn read_from(path: &Path, from: u64) -> io::Result<LiveText> {
    let mut file = File::open(path)?;
    let mut header = [0; HEADER_BYTES];
    file.read_exact(&mut header)?;
    let start = u64::from_le_bytes(header);
    let from = from.max(start);
    file.seek(SeekFrom::Start(HEADER_BYTES as u64 + (from - start)))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(LiveText { from, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_follows_a_text_whose_beginning_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(dir.path().join("home")).unwrap();
        let source = LiveSource::Call(7);
        assert_eq!(ledger.live_text(source, 0), None);
        let mut writer = ledger.begin_live_text(source).unwrap();
        writer.push(0, b"first ").unwrap();
        assert_eq!(ledger.live_text(source, 0), Some(LiveText { from: 0, bytes: b"first ".to_vec() }));
        writer.push(0, b"second").unwrap();
        assert_eq!(ledger.live_text(source, 6), Some(LiveText { from: 6, bytes: b"second".to_vec() }));
        assert_eq!(ledger.live_text(source, 12), Some(LiveText { from: 12, bytes: Vec::new() }));
        let mut all = b"first second".to_vec();
        for round in 0..40_u8 {
            let more = vec![b'a' + round % 26; 10_000];
            writer.push(0, &more).unwrap();
            all.extend(more);
        }
        let newest = ledger.live_text(source, 0).unwrap();
        let from = usize::try_from(newest.from).unwrap();
        assert!(from > 0 && newest.bytes.len() >= KEPT_BYTES);
        assert_eq!(newest.bytes, all[from..]);
        writer.push(1_000, b"after a gap").unwrap();
        let from = all.len() as u64 + 1_000;
        assert_eq!(ledger.live_text(source, 0), Some(LiveText { from, bytes: b"after a gap".to_vec() }));
        drop(writer);
        assert_eq!(ledger.live_text(source, 0), None);
    }
}
