//! How large the ledger is, and whether it is sound.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use haft_tool::ToolError;

use crate::Ledger;
use crate::fault::damaged;
use crate::home::Home;
use crate::packs;

/// How much the ledger holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// How many receipts.
    pub receipts: u64,
    /// How many sessions.
    pub sessions: u64,
    /// How many different blobs.
    pub blobs: u64,
    /// How many bytes on the disk, all files together.
    pub bytes: u64,
}

impl Ledger {
    /// How much the ledger holds.
    pub fn stats(&self) -> Result<Stats, ToolError> {
        let (receipts, sessions, blobs) = self.db.read(|conn| {
            let counts = "SELECT (SELECT count(*) FROM receipts), (SELECT count(*) FROM sessions),
                (SELECT count(*) FROM blobs)";
            Ok(conn.query_row(counts, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?)
        })?;
        Ok(Stats { receipts, sessions, blobs, bytes: bytes_on_disk(self.db.home())? })
    }

    /// Reads the whole database and looks at the permissions; tells the first thing that is wrong.
    pub fn check(&self) -> Result<(), ToolError> {
        let home = self.db.home();
        let verdict: String =
            self.db.read(|conn| Ok(conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?))?;
        if verdict != "ok" {
            return Err(damaged(format!("the ledger {} is damaged: {verdict}", home.database().display())));
        }
        let user = rustix::process::geteuid().as_raw();
        for path in home.database_files().iter().map(AsRef::as_ref).chain([
            home.dir(),
            &home.blobs(),
            &home.spool(),
            &home.packs(),
        ]) {
            let meta = match fs::metadata(path) {
                Ok(meta) => meta,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(ToolError::io(path.display(), &error)),
            };
            let at = path.display();
            if meta.mode() & 0o077 != 0 {
                return Err(ToolError::denied(format!("{at} is open to other users; run: chmod go= '{at}'")));
            }
            if meta.uid() != user {
                return Err(ToolError::denied(format!(
                    "{at} belongs to another user; run: chown {user} '{at}'"
                )));
            }
        }
        Ok(())
    }
}

/// The size of all the ledger's files.
pub(crate) fn bytes_on_disk(home: &Home) -> Result<u64, ToolError> {
    let measured = || -> io::Result<u64> {
        let mut bytes = 0;
        for file in home.database_files() {
            bytes += size_of(&file)?;
        }
        for file in blob_files(home)?.into_iter().chain(spool_files(home)) {
            bytes += size_of(&file)?;
        }
        for (_, size) in packs::all(home)? {
            bytes += size;
        }
        Ok(bytes)
    };
    measured().map_err(|error| ToolError::io(format_args!("measuring {}", home.dir().display()), &error))
}

/// All files below the blobs' directory.
pub(crate) fn blob_files(home: &Home) -> io::Result<Vec<std::path::PathBuf>> {
    let mut files = Vec::new();
    let folders = match fs::read_dir(home.blobs()) {
        Ok(folders) => folders,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        Err(error) => return Err(error),
    };
    for folder in folders {
        let folder = folder?;
        if folder.file_type()?.is_dir() {
            for file in fs::read_dir(folder.path())? {
                files.push(file?.path());
            }
        }
    }
    Ok(files)
}

/// All files in the spool, as far as they can be seen: they come and go.
fn spool_files(home: &Home) -> Vec<std::path::PathBuf> {
    let files = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let (folders, mut all): (Vec<_>, Vec<_>) = files(&home.spool()).partition(|path| path.is_dir());
    all.extend(folders.iter().flat_map(|folder| files(folder)));
    all
}

/// The size of a file, which may have gone meanwhile.
fn size_of(file: &Path) -> io::Result<u64> {
    match fs::metadata(file) {
        Ok(meta) => Ok(meta.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}
