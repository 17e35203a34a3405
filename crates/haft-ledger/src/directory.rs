//! The directory of the ledger: where it is, and that no other user can read it.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use haft_tool::ToolError;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

const DATABASE: &str = "ledger.db";
const LOCK: &str = "ledger.lock";
const HOUSEKEEPING: &str = "housekeeping";
const BLOBS: &str = "blobs";
const SPOOL: &str = "spool";
const INBOX_LOCK_PREFIX: &str = "inbox-";
const LIVE: &str = "live";
/// Other files that Haft keeps in the same directory: trusted servers and their tokens, trusted projects, HTTP servers that run.
const OTHER_NAMES: [&str; 4] = ["servers", "tokens", "projects", "serve"];

/// The default directory.
pub(crate) fn from_env() -> Result<PathBuf, ToolError> {
    from_variables(|name| env::var_os(name))
}

fn from_variables(get: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, ToolError> {
    let absolute = |name: &str| {
        let Some(value) = get(name).filter(|value| !value.is_empty()) else { return Ok(None) };
        let path = PathBuf::from(value);
        if path.is_absolute() {
            return Ok(Some(path));
        }
        Err(ToolError::invalid_path(format!(
            "{name} must be an absolute path, got {:?}.",
            path.display().to_string()
        )))
    };
    if let Some(home) = absolute("HAFT_HOME")? {
        return Ok(home);
    }
    if cfg!(not(target_os = "macos"))
        && let Some(state) = absolute("XDG_STATE_HOME")?
    {
        return Ok(state.join("haft"));
    }
    let below =
        if cfg!(target_os = "macos") { "Library/Application Support/haft" } else { ".local/state/haft" };
    absolute("HOME")?
        .map(|user| user.join(below))
        .ok_or_else(|| ToolError::invalid_path("There is no home directory for the ledger. Set HAFT_HOME."))
}

/// The ledger's directory, which exists and is private.
#[derive(Debug)]
pub(crate) struct LedgerDir {
    path: PathBuf,
    database: PathBuf,
}

impl LedgerDir {
    /// Creates the directory and an empty database if they are missing, and removes other users' access.
    pub(crate) fn prepare(path: &Path) -> Result<Self, ToolError> {
        if !path.is_absolute() {
            return Err(ToolError::invalid_path(format!(
                "The ledger's directory must be an absolute path, got {:?}.",
                path.display().to_string()
            )));
        }
        let dir = Self { path: path.to_owned(), database: path.join(DATABASE) };
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => dir.claim(&meta)?,
            Ok(_) => {
                return Err(ToolError::invalid_path(format!(
                    "{} is not a directory, so it cannot hold the ledger. Set HAFT_HOME to another path.",
                    path.display()
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_private_dirs(path).map_err(|error| dir.io_error(&error))?;
            }
            Err(error) => return Err(dir.io_error(&error)),
        }
        dir.make_files_private().map_err(|error| dir.io_error(&error))?;
        Ok(dir)
    }

    fn io_error(&self, error: &io::Error) -> ToolError {
        ToolError::io(format_args!("the ledger's directory {}", self.path.display()), error)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn database(&self) -> &Path {
        &self.database
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.path.join(BLOBS)
    }

    /// The previous states of the files that running commands touch.
    pub(crate) fn spool(&self) -> PathBuf {
        self.path.join(SPOOL)
    }

    /// The texts that are still growing.
    pub(crate) fn live(&self) -> PathBuf {
        self.path.join(LIVE)
    }

    /// The database and the two files that SQLite keeps beside it.
    pub(crate) fn database_files(&self) -> [PathBuf; 3] {
        ["", "-wal", "-shm"].map(|suffix| self.path.join(format!("{DATABASE}{suffix}")))
    }

    /// The file whose time says when housekeeping was last done.
    pub(crate) fn housekeeping(&self) -> PathBuf {
        self.path.join(HOUSEKEEPING)
    }

    /// The file that the process locks that has the inbox of a workspace.
    pub(crate) fn inbox_lock(&self, mark: &str) -> PathBuf {
        self.path.join(format!("{INBOX_LOCK_PREFIX}{mark}"))
    }

    /// The size of SQLite's write-ahead log.
    pub(crate) fn wal_bytes(&self) -> u64 {
        let [_, wal, _] = self.database_files();
        fs::metadata(wal).map_or(0, |meta| meta.len())
    }

    /// Makes an existing directory private, unless it holds other things: `HAFT_HOME=/tmp` must not change /tmp.
    fn claim(&self, meta: &fs::Metadata) -> Result<(), ToolError> {
        let shared = meta.mode() & 0o1000 != 0;
        let foreign = || Ok(!self.database.try_exists()? && holds_other_files(&self.path)?);
        if shared || foreign().map_err(|error| self.io_error(&error))? {
            return Err(ToolError::invalid_path(format!(
                "{} holds other files than a ledger. Set HAFT_HOME to a directory of its own.",
                self.path.display()
            )));
        }
        if meta.mode() & 0o077 != 0 {
            let closed = fs::set_permissions(&self.path, Permissions::from_mode(0o700));
            closed.map_err(|error| self.io_error(&error))?;
        }
        Ok(())
    }

    fn make_files_private(&self) -> io::Result<()> {
        for file in self.database_files() {
            match fs::metadata(&file) {
                Ok(meta) if meta.mode() & 0o177 != 0 => {
                    fs::set_permissions(&file, Permissions::from_mode(0o600))?;
                }
                Ok(_) => {}
                // SQLite gives the other two files the mode of this one.
                Err(error) if error.kind() == io::ErrorKind::NotFound && file == self.database => {
                    private_file(&file, OpenOptions::new().write(true).create(true).truncate(false))?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Locks the directory against garbage collection (shared) or against new blobs (exclusive) until dropped.
    ///
    /// It is taken before the database's mutex, never after it.
    pub(crate) fn lock(&self, how: FlockOperation) -> Result<LedgerLock, ToolError> {
        let path = self.path.join(LOCK);
        let failed = |error| ToolError::io(format_args!("lock {}", path.display()), &error);
        let file = private_file(&path, OpenOptions::new().write(true).create(true).truncate(false))
            .map_err(failed)?;
        loop {
            match rustix::fs::flock(&file, how) {
                Ok(()) => return Ok(LedgerLock { _file: file }),
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    /// Makes the names in the directory and its own name durable.
    pub(crate) fn sync_names(&self) -> Result<(), ToolError> {
        for dir in [Some(self.path.as_path()), self.path.parent()].into_iter().flatten() {
            let synced = File::open(dir).and_then(|dir| dir.sync_all());
            synced.map_err(|error| ToolError::io(format_args!("sync {}", dir.display()), &error))?;
        }
        Ok(())
    }
}

/// The lock on the ledger's directory, until dropped.
#[derive(Debug)]
pub(crate) struct LedgerLock {
    _file: File,
}

impl LedgerLock {
    /// A lock that is held through this file.
    pub(crate) fn of(file: File) -> Self {
        Self { _file: file }
    }
}

fn holds_other_files(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        if ![LOCK, BLOBS, SPOOL, LIVE].iter().chain(&OTHER_NAMES).any(|own| name == *own)
            && ![DATABASE, INBOX_LOCK_PREFIX]
                .iter()
                .any(|own| name.as_encoded_bytes().starts_with(own.as_bytes()))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Creates `dir` and its missing parents with mode 0700, whatever the umask is.
pub(crate) fn make_private_dirs(dir: &Path) -> io::Result<()> {
    if let Some(parent) = dir.parent()
        && !parent.try_exists()?
    {
        make_private_dirs(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => fs::set_permissions(dir, Permissions::from_mode(0o700)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens a file with mode 0600, whatever the umask is.
pub(crate) fn private_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.mode(0o600).open(path)?;
    if file.metadata()?.mode() & 0o777 != 0o600 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::ErrorKind;

    fn with(variables: &[(&str, &str)]) -> Result<PathBuf, ToolError> {
        from_variables(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn haft_home_precedes_the_state_directory_and_that_the_home_directory() {
        let all = [("HAFT_HOME", "/a"), ("XDG_STATE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(with(&all).unwrap(), Path::new("/a"));
        if cfg!(not(target_os = "macos")) {
            assert_eq!(with(&all[1..]).unwrap(), Path::new("/b/haft"));
            assert_eq!(with(&all[2..]).unwrap(), Path::new("/c/.local/state/haft"));
            assert_eq!(with(&[("HAFT_HOME", ""), all[2]]).unwrap(), Path::new("/c/.local/state/haft"));
        }
    }

    #[test]
    fn relative_or_missing_home_is_refused() {
        let error = with(&[("HAFT_HOME", "x"), ("HOME", "/c")]).unwrap_err();
        assert_eq!(error.message, "HAFT_HOME must be an absolute path, got \"x\".");
        assert_eq!(with(&[]).unwrap_err().kind, ErrorKind::InvalidPath);
    }

    #[test]
    fn directory_with_other_files_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        fs::write(dir.path().join("thesis.tex"), "").unwrap();
        let error = LedgerDir::prepare(dir.path()).unwrap_err();
        assert!(error.message.contains("holds other files"), "{error}");
        assert_eq!(fs::metadata(dir.path()).unwrap().mode() & 0o777, 0o755);
    }
}
