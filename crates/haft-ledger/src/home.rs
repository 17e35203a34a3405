//! The directory that holds the ledger: where it is, and that nobody else can look into it.

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
const BLOBS: &str = "blobs";
const SPOOL: &str = "spool";
const PACKS: &str = "packs";
/// What others of Haft keep in the same place: which servers the user trusts, and their tokens.
const OTHERS: [&str; 2] = ["servers", "tokens"];

/// Where the ledger lies unless the caller says otherwise.
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
            "{name} must be an absolute path, got {:?}",
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
    absolute("HOME")?.map(|user| user.join(below)).ok_or_else(|| {
        ToolError::invalid_path("there is no home directory to keep the ledger in; set HAFT_HOME")
    })
}

/// The ledger's directory, made and private.
#[derive(Debug)]
pub(crate) struct Home {
    dir: PathBuf,
    database: PathBuf,
}

impl Home {
    /// Makes the directory and the empty database if they are missing, and closes what stands open to others.
    pub(crate) fn prepare(dir: &Path) -> Result<Self, ToolError> {
        if !dir.is_absolute() {
            return Err(ToolError::invalid_path(format!(
                "the ledger's directory must be an absolute path, got {:?}",
                dir.display().to_string()
            )));
        }
        let home = Self { dir: dir.to_owned(), database: dir.join(DATABASE) };
        match fs::metadata(dir) {
            Ok(meta) if meta.is_dir() => home.claim(&meta)?,
            Ok(_) => {
                return Err(ToolError::invalid_path(format!(
                    "{} is not a directory, so the ledger cannot lie there; set HAFT_HOME to another path",
                    dir.display()
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_private_dirs(dir).map_err(|error| home.told(&error))?;
            }
            Err(error) => return Err(home.told(&error)),
        }
        home.make_files_private().map_err(|error| home.told(&error))?;
        Ok(home)
    }

    fn told(&self, error: &io::Error) -> ToolError {
        ToolError::io(format_args!("the ledger's directory {}", self.dir.display()), error)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn database(&self) -> &Path {
        &self.database
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.dir.join(BLOBS)
    }

    /// Where calls that are under way keep what they may need.
    pub(crate) fn spool(&self) -> PathBuf {
        self.dir.join(SPOOL)
    }

    /// Where the many small images of a call lie together.
    pub(crate) fn packs(&self) -> PathBuf {
        self.dir.join(PACKS)
    }

    /// The database and the two files that SQLite keeps beside it.
    pub(crate) fn database_files(&self) -> [PathBuf; 3] {
        ["", "-wal", "-shm"].map(|suffix| self.dir.join(format!("{DATABASE}{suffix}")))
    }

    /// The size of SQLite's log.
    pub(crate) fn log_bytes(&self) -> u64 {
        let [_, log, _] = self.database_files();
        fs::metadata(log).map_or(0, |meta| meta.len())
    }

    /// Takes a directory that is already there, unless it plainly belongs to something else.
    ///
    /// Without this, `HAFT_HOME=/tmp` would close /tmp to everybody.
    fn claim(&self, meta: &fs::Metadata) -> Result<(), ToolError> {
        let shared = meta.mode() & 0o1000 != 0;
        let strange = || Ok(!self.database.try_exists()? && holds_strangers(&self.dir)?);
        if shared || strange().map_err(|error| self.told(&error))? {
            return Err(ToolError::invalid_path(format!(
                "{} holds other things than a ledger; set HAFT_HOME to a directory of its own",
                self.dir.display()
            )));
        }
        if meta.mode() & 0o077 != 0 {
            let closed = fs::set_permissions(&self.dir, Permissions::from_mode(0o700));
            closed.map_err(|error| self.told(&error))?;
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

    /// Locks the home against garbage collection (shared) or against new blobs (exclusive), until it is dropped.
    ///
    /// Whoever takes it must not hold the database's mutex yet: all take the two in this order.
    pub(crate) fn lock(&self, how: FlockOperation) -> Result<HomeLock, ToolError> {
        let path = self.dir.join(LOCK);
        let told = |error| ToolError::io(format_args!("locking {}", path.display()), &error);
        let file =
            private_file(&path, OpenOptions::new().write(true).create(true).truncate(false)).map_err(told)?;
        loop {
            match rustix::fs::flock(&file, how) {
                Ok(()) => return Ok(HomeLock { _file: file }),
                Err(Errno::INTR) => {}
                Err(error) => return Err(told(error.into())),
            }
        }
    }

    /// Makes the names in the home and the home's own name durable.
    pub(crate) fn sync_names(&self) -> Result<(), ToolError> {
        for dir in [Some(self.dir.as_path()), self.dir.parent()].into_iter().flatten() {
            let synced = File::open(dir).and_then(|dir| dir.sync_all());
            synced
                .map_err(|error| ToolError::io(format_args!("making {} durable", dir.display()), &error))?;
        }
        Ok(())
    }
}

/// Holds the home's lock as long as it lives.
#[derive(Debug)]
pub(crate) struct HomeLock {
    _file: File,
}

fn holds_strangers(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        if ![LOCK, BLOBS, SPOOL, PACKS].iter().chain(&OTHERS).any(|ours| name == *ours)
            && !name.as_encoded_bytes().starts_with(DATABASE.as_bytes())
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes `dir` and its missing parents, for the user alone whatever the umask says.
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

/// Opens a file that only the user can read, whatever the umask says.
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
    fn haft_home_wins_over_the_state_directory_and_that_over_the_users_home() {
        let all = [("HAFT_HOME", "/a"), ("XDG_STATE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(with(&all).unwrap(), Path::new("/a"));
        if cfg!(not(target_os = "macos")) {
            assert_eq!(with(&all[1..]).unwrap(), Path::new("/b/haft"));
            assert_eq!(with(&all[2..]).unwrap(), Path::new("/c/.local/state/haft"));
            assert_eq!(with(&[("HAFT_HOME", ""), all[2]]).unwrap(), Path::new("/c/.local/state/haft"));
        }
    }

    #[test]
    fn a_relative_or_missing_home_is_refused() {
        let error = with(&[("HAFT_HOME", "x"), ("HOME", "/c")]).unwrap_err();
        assert_eq!(error.message, "HAFT_HOME must be an absolute path, got \"x\"");
        assert_eq!(with(&[]).unwrap_err().kind, ErrorKind::InvalidPath);
    }

    #[test]
    fn a_directory_that_holds_other_things_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        fs::write(dir.path().join("thesis.tex"), "").unwrap();
        let error = Home::prepare(dir.path()).unwrap_err();
        assert!(error.message.contains("holds other things"), "{error}");
        assert_eq!(fs::metadata(dir.path()).unwrap().mode() & 0o777, 0o755);
    }
}
