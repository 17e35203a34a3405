//! Replacing a file's content: recorded first, then atomically, without losing another writer's version.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use haft_policy::{read_refusal, write_refusal};
use haft_tool::{
    Change, EditFn, ErrorKind, FileContent, FileNode, Intent, Node, ToolError, Written, lies_in,
};
use rustix::fs::{Access, AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::bare_repository::bare_repository_around;
use crate::error::{changed_meanwhile, changed_twice, conflict, denied, protected};
use crate::lock::{LockError, lock_byte};
use crate::node::{FileInMemory, foreign_owner, hash, read_file};
use crate::replace::{PRIVATE_MODE, ReplaceTarget, Replaced, create_file, set_metadata, temp_name};
use crate::resolve::{FinalLink, ResolvedPath, open_directory, open_exact, resolve};
use crate::{LocalFiles, os, stat};

/// How often an edit is repeated on a file that another program keeps changing.
const MAX_ATTEMPTS: u32 = 5;
/// How long a call waits for another call that writes the same path.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const NEW_FILE_MODE: u32 = 0o666;
const NEW_DIR_MODE: u32 = 0o777;

impl LocalFiles {
    pub(crate) fn update_file(&self, path: &Path, edit: &mut EditFn<'_>) -> Result<Written, ToolError> {
        for _ in 0..MAX_ATTEMPTS {
            let target = self.resolve_for_write(path, FinalLink::Follow)?;
            // The result of an edit may contain parts of what it replaces.
            if let Some(why) = read_refusal(&self.scope, &target.path()) {
                return Err(denied(&why));
            }
            if let Some(written) = self.try_update(target, edit)? {
                return Ok(written);
            }
        }
        Err(changed_meanwhile(path))
    }

    /// Refuses a path that the call may not write, whatever it leads to.
    pub(crate) fn check_write(&self, path: &Path) -> Result<(), ToolError> {
        if self.scope.is_protected(path) {
            return Err(protected(path));
        }
        if !self.scope.writes {
            return Err(ToolError::denied(format!("{}: this call may not write", path.display())));
        }
        Ok(())
    }

    /// Resolves a path that the scope allows the call to write.
    pub(crate) fn resolve_for_write(
        &self,
        path: &Path,
        final_link: FinalLink,
    ) -> Result<ResolvedPath, ToolError> {
        self.check_write(path)?;
        let found = match self.root_of(path) {
            Some(root) => resolve(&root, &self.roots, root.relative(path)?, final_link)
                .map_err(|error| error.at(path))?,
            None => self.resolve_granted(path)?,
        };
        self.check_resolved(path, &found)?;
        let granted = self.scope.grants.iter().any(|grant| grant == path);
        if !granted && self.scope.is_write_blocked(&found.path()) {
            return Err(ToolError::denied(format!(
                "writes to {} are denied: it is blocked, and no rule names it",
                found.path().display()
            )));
        }
        if let Some(why) = write_refusal(&self.scope, &found.path()) {
            return Err(denied(&why));
        }
        self.check_unnamed(&found.path())?;
        Ok(found)
    }

    /// Refuses to write files that are guarded whatever their names are: what a link or a configuration leads to, what is in a
    /// git directory not called `.git`, and what would complete one.
    fn check_unnamed(&self, path: &Path) -> Result<(), ToolError> {
        if self.scope.unguarded.iter().any(|granted| lies_in(path, granted)) {
            return Ok(());
        }
        if let Some(leading) = self.leading_here.as_ref().and_then(|leading_here| leading_here(path)) {
            return Err(denied(&format!(
                "{}: protected: {} makes programs outside the sandbox run it or what it names. To allow it: --allow-write {}",
                path.display(),
                leading.display(),
                path.display()
            )));
        }
        let root = self.root_of(path).map_or_else(|| self.filesystem(), Ok)?;
        let Some(repository) = bare_repository_around(&root, path) else { return Ok(()) };
        Err(denied(&format!(
            "{}: protected: {} would be a git directory, whose configuration and hooks may name programs to run. To \
             allow it: --allow-write {}",
            path.display(),
            repository.display(),
            repository.display()
        )))
    }

    /// Locks a path against other Haft calls until the handle is dropped, if the record has a file for locks. Other programs do
    /// not take this lock, and commands cannot, because the file is the ledger's: see [`ReplaceTarget::install`].
    pub(crate) fn lock_entry(
        &self,
        dir: &OwnedFd,
        name: &OsStr,
        path: &Path,
    ) -> Result<Option<OwnedFd>, ToolError> {
        let Some(file) = self.record.lock_file()? else { return Ok(None) };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&file, flags, stat::mode(PRIVATE_MODE))
            .map_err(|error| ToolError::io(file.display(), &error.into()))?;
        let directory =
            rustix::fs::fstat(dir).map_err(|error| ToolError::io(path.display(), &error.into()))?;
        match lock_byte(&fd, entry_key(&directory, name), LOCK_TIMEOUT, &self.cancel) {
            Ok(()) => Ok(Some(fd)),
            Err(LockError::Cancelled) => Err(Self::not_changed(path)),
            Err(LockError::Timeout) => Err(conflict(
                path,
                &format!("another call has been writing it for {} s; try again", LOCK_TIMEOUT.as_secs()),
            )),
        }
    }

    fn not_changed(path: &Path) -> ToolError {
        ToolError::new(ErrorKind::Interrupted, format!("{} was not changed", path.display()))
    }

    /// One attempt; `None` if another program changed the file meanwhile.
    fn try_update(&self, target: ResolvedPath, edit: &mut EditFn<'_>) -> Result<Option<Written>, ToolError> {
        let path = target.path();
        let (mut _lock, mut current) = (None, None);
        if target.missing.is_empty() {
            _lock = self.lock_entry(&target.parent, &target.name, &path)?;
            current = read_file(&target.parent, &target.name, &path)?;
        }
        if let Some(current) = &current {
            self.check_hard_link(&path, &current.stat)?;
            refuse_read_only(&target, &path)?;
        }
        let bytes = edit(current.as_ref().map(|current| current.bytes.as_slice()))?;
        if self.cancel.is_cancelled() {
            return Err(Self::not_changed(&path));
        }
        let before = current.as_ref().map_or(Node::Absent, |current| Node::File(current.node.clone()));
        let mut after = FileNode {
            hash: hash(&bytes),
            size: bytes.len() as u64,
            mode: NEW_FILE_MODE & !umask(),
            owner: None,
            xattrs: Vec::new(),
            linked: None,
            modified: None,
        };
        if let Some(current) = &current {
            if current.node.hash == after.hash {
                return Ok(Some(Written { path, before, after: current.node.clone(), other_names: 0 }));
            }
            after.mode = current.node.mode;
            after.owner = current.node.owner;
            after.xattrs.clone_from(&current.node.xattrs);
        }
        let failed = |error: std::io::Error| ToolError::io(format!("write {}", path.display()), &error);
        let temp = temp_name().map_err(failed)?;
        let directory = path.parent().unwrap_or(&target.parent_path).to_owned();
        let mut intents: Vec<Intent<'_>> = missing_directories(&target).map(new_directory).collect();
        intents.push(Intent {
            change: Change::new(&path, before.clone(), Node::File(after.clone())),
            previous: current.as_ref().map(|current| current.bytes.as_slice()).into(),
            temp: Some(directory.join(&temp)),
        });
        self.record.intend(&mut intents)?;

        let parent = self.create_directories(target.parent, &target.parent_path, &target.missing)?;
        let is_in_place = || self.is_directory_at(&parent, &directory);
        let replace =
            ReplaceTarget { dir: &parent, is_in_place: &is_in_place, name: &target.name, temp: &temp };
        let like = current.as_ref().map(|current| &current.node);
        let new = write_temp(&replace, &bytes, like).map_err(failed)?;
        after.mode = stat::permissions(&new);
        after.owner = foreign_owner(&new);
        after.modified = Some(stat::modified(&new));
        match replace
            .install(&new, current.as_ref().map(|current| &current.stat))
            .map_err(|error| failed(error.into()))?
        {
            Replaced::Yes => {}
            Replaced::Conflict => return Ok(None),
            Replaced::ConflictKept => return Err(changed_twice(&path, &directory.join(&temp))),
        }
        // Recorded before the directory is synced, because the change has been made even if the sync fails.
        self.record.changed(Change::new(&path, before.clone(), Node::File(after.clone())));
        sync_directory(&parent, &directory)?;
        let other_names = current.map_or(0, |current| self.report_not_reversible(&path, &current, &after));
        Ok(Some(Written { path, before, after, other_names }))
    }

    /// Whether an open directory is the one at `path`.
    fn is_directory_at(&self, directory: &OwnedFd, path: &Path) -> bool {
        let now = match self.root_of(path) {
            // The handle, because the root itself may have been moved.
            Some(root) => {
                path.strip_prefix(&root.path).ok().and_then(|below| open_exact(&root.fd, below).ok())
            }
            None => open_directory(path).ok(),
        };
        let id = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| stat::file_id(&stat)).ok();
        now.is_some_and(|now| id(&now).is_some() && id(&now) == id(directory))
    }

    /// Records what undo cannot restore; returns the number of other hard links of the old file.
    fn report_not_reversible(&self, path: &Path, old: &FileInMemory, new: &FileNode) -> u64 {
        let path = path.display();
        if let Some((uid, gid)) = old.node.owner
            && new.owner != Some((uid, gid))
        {
            self.record.not_reversible(format!(
                "{path} belonged to user {uid} and group {gid}, which only root can keep; undo restores the content, not the owner"
            ));
        }
        let other_names = stat::link_count(&old.stat).saturating_sub(1);
        if other_names > 0 {
            let names = if other_names == 1 {
                "1 other name (hard link)".to_owned()
            } else {
                format!("{other_names} other names (hard links)")
            };
            self.record.not_reversible(format!(
                "{path} had {names}, which kept the old content; undo restores the content, and the link where one of these names is in the workspace"
            ));
        }
        other_names
    }

    /// Creates the missing directories below `parent` and returns the last.
    fn create_directories(
        &self,
        mut parent: OwnedFd,
        parent_path: &Path,
        missing: &[OsString],
    ) -> Result<OwnedFd, ToolError> {
        let mut path = parent_path.to_owned();
        if missing.iter().any(|name| name == "~") {
            return Err(ToolError::invalid_path(format!(
                "{} has no directory named ~, and none is made: only shells expand ~. Write the absolute path of the home \
                 directory",
                path.display()
            )));
        }
        for name in missing {
            path.push(name);
            let failed =
                |error: Errno| ToolError::io(format!("make the directory {}", path.display()), &error.into());
            let created = match rustix::fs::mkdirat(&parent, name, stat::mode(NEW_DIR_MODE)) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(error) => return Err(failed(error)),
            };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let next = rustix::fs::openat(&parent, name, flags, Mode::empty()).map_err(failed)?;
            if created {
                let mode = stat::permissions(&rustix::fs::fstat(&next).map_err(failed)?);
                self.record.changed(Change::new(&path, Node::Absent, Node::directory(mode)));
                sync_directory(&parent, &path)?;
            }
            parent = next;
        }
        Ok(parent)
    }
}

/// The number by which Haft processes lock an entry of a directory.
fn entry_key(directory: &Stat, name: &OsStr) -> u64 {
    let (device, inode) = stat::file_id(directory);
    let hash = blake3::hash(&[&device.to_ne_bytes(), &inode.to_ne_bytes(), name.as_bytes()].concat());
    hash.as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// Writes `bytes` under the temporary name, with the mode, owner and attributes of `like`.
fn write_temp(target: &ReplaceTarget<'_>, bytes: &[u8], like: Option<&FileNode>) -> std::io::Result<Stat> {
    let mode = if like.is_some() { PRIVATE_MODE } else { NEW_FILE_MODE };
    let mut file = create_file(target.dir, target.temp, mode)?;
    let mut fill = || {
        file.write_all(bytes)?;
        if let Some(like) = like {
            set_metadata(&file, like)?;
        }
        file.sync_all()?;
        Ok(rustix::fs::fstat(&file)?)
    };
    fill().inspect_err(|_| target.remove_temp())
}

/// The paths of the directories that have to be created.
fn missing_directories(target: &ResolvedPath) -> impl Iterator<Item = PathBuf> {
    target.missing.iter().scan(target.parent_path.clone(), |path, name| {
        path.push(name);
        Some(path.clone())
    })
}

fn new_directory<'a>(path: PathBuf) -> Intent<'a> {
    let after = Node::directory(NEW_DIR_MODE & !umask());
    Intent { change: Change::new(path, Node::Absent, after), previous: FileContent::None, temp: None }
}

/// Refuses a file that its owner made read-only: a rename would not need any permission on the file itself.
fn refuse_read_only(target: &ResolvedPath, path: &Path) -> Result<(), ToolError> {
    match rustix::fs::accessat(&target.parent, &target.name, Access::WRITE_OK, AtFlags::EACCESS) {
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
            Err(ToolError::denied(format!("{} is read-only; make it writable first", path.display())))
        }
        _ => Ok(()),
    }
}

pub(crate) fn sync_directory(directory: &OwnedFd, path: &Path) -> Result<(), ToolError> {
    match rustix::fs::fsync(directory) {
        // Some file systems cannot sync directories, and an O_PATH handle cannot be synced.
        Ok(()) | Err(Errno::INVAL | Errno::BADF | Errno::NOTSUP) => Ok(()),
        Err(error) => Err(ToolError::io(format!("sync {}", path.display()), &error.into())),
    }
}

/// The umask of this process.
fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        os::umask().unwrap_or_else(|| {
            // Reading it means setting it.
            let mask = rustix::process::umask(stat::mode(0o022));
            rustix::process::umask(mask);
            stat::mode_bits(mask)
        })
    })
}
