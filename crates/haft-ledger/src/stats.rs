//! The size of the ledger, and whether it is intact.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haft_tool::ToolError;

use crate::Ledger;
use crate::blob_files::all_files;
use crate::directory::LedgerDir;
use crate::error::damaged;

/// How much the ledger holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerStats {
    /// The number of receipts.
    pub receipts: u64,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of different blobs.
    pub blobs: u64,
    /// The bytes on the disk, all files together.
    pub bytes: u64,
}

impl Ledger {
    /// How much the ledger holds.
    pub fn stats(&self) -> Result<LedgerStats, ToolError> {
        let (receipts, sessions, blobs) = self.db.read(|conn| {
            let counts = "SELECT (SELECT count(*) FROM receipts), (SELECT count(*) FROM sessions),
                (SELECT count(*) FROM blobs)";
            Ok(conn.query_row(counts, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?)
        })?;
        Ok(LedgerStats { receipts, sessions, blobs, bytes: bytes_on_disk(self.db.dir())? })
    }

    /// Reads the whole database and checks permissions; returns the first problem.
    pub fn check(&self) -> Result<(), ToolError> {
        let dir = self.db.dir();
        let verdict: String =
            self.db.read(|conn| Ok(conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?))?;
        if verdict != "ok" {
            return Err(damaged(format!("The ledger {} is damaged: {verdict}", dir.database().display())));
        }
        let user = rustix::process::geteuid().as_raw();
        let [database, wal, shared_memory] = dir.database_files();
        for path in [dir.path().to_owned(), database, wal, shared_memory, dir.blobs(), dir.spool()] {
            let meta = match fs::metadata(&path) {
                Ok(meta) => meta,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(ToolError::io(path.display(), &error)),
            };
            let at = path.display();
            if meta.mode() & 0o077 != 0 {
                return Err(ToolError::denied(format!("{at} is open to other users. Run: chmod go= '{at}'")));
            }
            if meta.uid() != user {
                return Err(ToolError::denied(format!(
                    "{at} belongs to another user. Run: chown {user} '{at}'"
                )));
            }
        }
        Ok(())
    }
}

/// The size of all files of the ledger.
pub(crate) fn bytes_on_disk(dir: &LedgerDir) -> Result<u64, ToolError> {
    let measure = || -> io::Result<u64> {
        let files = dir.database_files().into_iter().chain(all_files(dir)?).chain(spool_files(dir));
        files.map(|file| size_of(&file)).sum()
    };
    measure().map_err(|error| ToolError::io(format_args!("measure {}", dir.path().display()), &error))
}

/// All files in the spool that can be listed: they come and go.
fn spool_files(dir: &LedgerDir) -> Vec<PathBuf> {
    let files = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let (folders, mut all): (Vec<_>, Vec<_>) = files(&dir.spool()).partition(|path| path.is_dir());
    all.extend(folders.iter().flat_map(|folder| files(folder)));
    all
}

/// The size of a file; 0 if it is gone.
fn size_of(file: &Path) -> io::Result<u64> {
    match fs::metadata(file) {
        Ok(meta) => Ok(meta.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}
