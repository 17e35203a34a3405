//! Replacing a file's bytes: recorded first, then atomically, with no other writer's bytes lost.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use haft_tool::{Change, EditFn, ErrorKind, FileContent, FileNode, Intent, Node, ToolError, Written};
use rustix::fs::{Access, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::LocalFiles;
use super::node::{foreign_owner, read_current};
use super::open::protected;
use super::place::{Installed, Spot, lock, temp_name, write_temp};
use super::resolve::{Leaf, Place, below, outside, resolve};
use crate::hash;

/// How often an edit is made again on a file that somebody else keeps changing.
const ATTEMPTS: u32 = 5;

impl LocalFiles {
    pub(super) fn update_file(&self, path: &Path, edit: &mut EditFn<'_>) -> Result<Written, ToolError> {
        for _ in 0..ATTEMPTS {
            let place = self.place_for_write(path, Leaf::Follow)?;
            if let Some(written) = self.attempt(place, edit)? {
                return Ok(written);
            }
        }
        Err(overtaken(path))
    }

    /// A place the scope lets the call write to.
    pub(super) fn place_for_write(&self, path: &Path, leaf: Leaf) -> Result<Place, ToolError> {
        if self.scope.is_protected(path) {
            return Err(protected(path));
        }
        if !self.scope.writes {
            return Err(ToolError::denied(format!("{}: this call may not write", path.display())));
        }
        let contained = self.root_of(path);
        let place = match &contained {
            Some(root) => resolve(root, &self.roots, below(root, path)?, leaf)?,
            None => self.granted_place(path)?,
        };
        self.refuse_secret_place(path, &place, contained.is_some())?;
        let granted = self.scope.grants.iter().any(|grant| grant == path);
        if !granted && self.scope.is_write_blocked(&place.path()) {
            return Err(ToolError::denied(format!(
                "writes to {} are denied: it is blocked, and no rule names it",
                place.path().display()
            )));
        }
        Ok(place)
    }

    /// The place of a path outside the roots that the scope names.
    pub(super) fn granted_place(&self, path: &Path) -> Result<Place, ToolError> {
        if !self.scope.grants.iter().any(|grant| grant == path) {
            return Err(outside(path));
        }
        // The grant names this very path: a link on the way would make it another one.
        let root = self.filesystem()?;
        let place = resolve(&root, &[], below(&root, path)?, Leaf::Keep)?;
        if place.path() == path { Ok(place) } else { Err(outside(path)) }
    }

    /// One try; `None` if somebody else changed the file meanwhile.
    fn attempt(&self, place: Place, edit: &mut EditFn<'_>) -> Result<Option<Written>, ToolError> {
        let path = place.path();
        let _held = if place.missing.is_empty() { lock(&place.parent, &path)? } else { None };
        let current =
            if place.missing.is_empty() { read_current(&place.parent, &place.name, &path)? } else { None };
        if let Some(current) = &current {
            self.refuse_alias(&path, &current.stat)?;
            refuse_read_only(&place, &path)?;
        }
        let bytes = edit(current.as_ref().map(|current| current.bytes.as_slice()))?;
        if self.cancel.is_cancelled() {
            return Err(ToolError::new(
                ErrorKind::Interrupted,
                format!("{} was not changed", path.display()),
            ));
        }
        let before = current.as_ref().map_or(Node::Absent, |current| Node::File(current.node.clone()));
        let mut after = FileNode {
            hash: hash(&bytes),
            size: bytes.len() as u64,
            mode: 0o666 & !umask(),
            owner: None,
            xattrs: Vec::new(),
            linked: None,
        };
        if let Some(current) = &current {
            if current.node.hash == after.hash {
                return Ok(Some(Written { path, before, after: current.node.clone(), other_names: 0 }));
            }
            after.mode = current.node.mode;
            after.owner = current.node.owner;
            after.xattrs.clone_from(&current.node.xattrs);
        }
        let temp = temp_name()?;
        let directory = path.parent().unwrap_or(&place.parent_path).to_owned();
        let mut intents: Vec<Intent<'_>> = missing_directories(&place).map(new_directory).collect();
        intents.push(Intent {
            change: Change::new(&path, before.clone(), Node::File(after.clone())),
            previous: current.as_ref().map(|current| current.bytes.as_slice()).into(),
            temp: Some(directory.join(&temp)),
        });
        self.journal.intend(&mut intents)?;

        let parent = self.make_directories(place.parent, &place.parent_path, &place.missing)?;
        let like = current.as_ref().map(|current| &current.node);
        let failed = |error: std::io::Error| ToolError::io(format!("write {}", path.display()), &error);
        let made = write_temp(&parent, &temp, &bytes, like).map_err(failed)?;
        after.mode = made.st_mode & 0o7777;
        after.owner = foreign_owner(&made);
        let spot = Spot { parent: &parent, name: &place.name, temp: &temp };
        match spot
            .install(&made, current.as_ref().map(|current| &current.stat))
            .map_err(|error| failed(error.into()))?
        {
            Installed::Yes => {}
            Installed::Overtaken => return Ok(None),
            Installed::Kept => return Err(kept(&path, &directory.join(&temp))),
        }
        // Told before the directory is synced: should that fail, the change has been made all the same.
        self.journal.changed(Change::new(&path, before.clone(), Node::File(after.clone())));
        sync(&parent, &directory)?;
        if let Some((uid, gid)) = current.as_ref().and_then(|current| current.node.owner)
            && after.owner != Some((uid, gid))
        {
            self.journal.not_reversible(format!(
                "{} belonged to user {uid} and group {gid}, which only root could keep; undo brings back the bytes, not the owner",
                path.display()
            ));
        }
        let other_names = current.map_or(0, |current| current.stat.st_nlink.saturating_sub(1));
        if other_names > 0 {
            self.journal.not_reversible(format!(
                "{} had {other_names} other name(s) (hard links), which kept the old bytes; undo brings back the bytes, and the link where one of these names is in the workspace",
                path.display()
            ));
        }
        Ok(Some(Written { path, before, after, other_names }))
    }

    /// Makes the missing directories below `parent` and holds the last.
    fn make_directories(
        &self,
        mut parent: OwnedFd,
        parent_path: &Path,
        missing: &[OsString],
    ) -> Result<OwnedFd, ToolError> {
        let mut path = parent_path.to_owned();
        for name in missing {
            path.push(name);
            let what =
                |error: Errno| ToolError::io(format!("make the directory {}", path.display()), &error.into());
            let made = match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(error) => return Err(what(error)),
            };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let next = rustix::fs::openat(&parent, name, flags, Mode::empty()).map_err(what)?;
            if made {
                let mode = rustix::fs::fstat(&next).map_err(what)?.st_mode & 0o7777;
                self.journal.changed(Change::new(&path, Node::Absent, Node::Dir { mode }));
                sync(&parent, &path)?;
            }
            parent = next;
        }
        Ok(parent)
    }
}

/// The paths of the directories that have to be made.
fn missing_directories(place: &Place) -> impl Iterator<Item = PathBuf> {
    place.missing.iter().scan(place.parent_path.clone(), |path, name| {
        path.push(name);
        Some(path.clone())
    })
}

fn new_directory<'a>(path: PathBuf) -> Intent<'a> {
    let after = Node::Dir { mode: 0o777 & !umask() };
    Intent { change: Change::new(path, Node::Absent, after), previous: FileContent::None, temp: None }
}

/// A rename needs no right to the file itself; the owner's wish that nobody writes it is respected all the same.
fn refuse_read_only(place: &Place, path: &Path) -> Result<(), ToolError> {
    match rustix::fs::accessat(&place.parent, &place.name, Access::WRITE_OK, AtFlags::EACCESS) {
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
            Err(ToolError::denied(format!("{} is read-only; make it writable first", path.display())))
        }
        _ => Ok(()),
    }
}

pub(super) fn sync(directory: &OwnedFd, path: &Path) -> Result<(), ToolError> {
    match rustix::fs::fsync(directory) {
        // Some file systems cannot sync directories, and a handle that only holds one cannot either.
        Ok(()) | Err(Errno::INVAL | Errno::BADF | Errno::NOTSUP) => Ok(()),
        Err(error) => Err(ToolError::io(format!("sync {}", path.display()), &error.into())),
    }
}

/// Somebody else wrote twice at the very moment of the exchange, and one of the two versions found no name.
pub(super) fn kept(path: &Path, temp: &Path) -> ToolError {
    ToolError::new(
        ErrorKind::Conflict,
        format!(
            "{} was changed twice by somebody else at this moment; nothing was written, and the version between is kept as {}",
            path.display(),
            temp.display()
        ),
    )
}

pub(super) fn overtaken(path: &Path) -> ToolError {
    ToolError::new(
        ErrorKind::Conflict,
        format!(
            "{} is being changed by somebody else; nothing was written, read it again and retry",
            path.display()
        ),
    )
}

/// The process's umask, which can only be read by setting it, except on Linux.
pub(super) fn umask() -> u32 {
    use std::sync::OnceLock;
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let told = std::fs::read_to_string("/proc/self/status").ok().and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
            u32::from_str_radix(line.trim(), 8).ok()
        });
        told.unwrap_or_else(|| {
            let mask = rustix::process::umask(Mode::from_raw_mode(0o022));
            rustix::process::umask(mask);
            mask.as_raw_mode()
        })
    })
}
