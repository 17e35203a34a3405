//! Where a command may write, and what is guarded there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_policy::{Guard, guard_in};
use haft_tool::{Scope, lock};

use crate::sandbox::Names;

/// What a directory is to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Area {
    /// Part of the scope: written, and every change witnessed.
    Root,
    /// A directory of the session's own; what happens there concerns nobody.
    Scratch,
    /// A temporary directory that all share: the session's own entries may be changed, others not.
    Temp,
    /// Anything else.
    Outside,
}

/// What commands of one session share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Entries of the shared temporary directories that commands made.
    temporary: Mutex<HashSet<PathBuf>>,
    /// Ports that commands serve on this machine.
    ports: Mutex<Vec<u16>>,
    /// Names of sockets that commands serve without a file.
    abstract_names: Mutex<HashSet<Vec<u8>>>,
}

impl Shared {
    pub(super) fn serves(&self, port: u16) -> bool {
        lock(&self.ports).contains(&port)
    }

    pub(super) fn serve(&self, port: u16) {
        lock(&self.ports).push(port);
    }

    pub(super) fn serve_no_more(&self, ports: &[u16]) {
        let mut known = lock(&self.ports);
        for port in ports {
            if let Some(at) = known.iter().position(|known| known == port) {
                known.swap_remove(at);
            }
        }
    }

    pub(super) fn knows_abstract(&self, name: &[u8]) -> bool {
        lock(&self.abstract_names).contains(name)
    }

    pub(super) fn add_abstract(&self, name: &[u8]) {
        lock(&self.abstract_names).insert(name.to_vec());
    }
}

/// The scope, as the witness asks about it.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) scope: Arc<Scope>,
    /// Directories of the session's own.
    pub(crate) scratch: Vec<PathBuf>,
    /// Temporary directories that all share.
    pub(crate) temps: Vec<PathBuf>,
    pub(crate) devices: Vec<PathBuf>,
    /// Names that are not read, wherever they are.
    pub(crate) secrets: Names,
    /// Paths that are not read.
    pub(crate) unread: Vec<PathBuf>,
    /// Whether all files are opened by the witness, because secrets lie among files that come and go.
    pub(crate) reads: bool,
    pub(crate) shared: Arc<Shared>,
}

impl Places {
    pub(super) fn area(&self, path: &Path) -> Area {
        let within = |list: &[PathBuf]| list.iter().any(|root| path.starts_with(root));
        if self.scope.is_protected(path) {
            Area::Outside
        } else if within(&self.scratch) {
            Area::Scratch
        } else if within(&self.scope.blocked) {
            Area::Outside
        } else if within(&self.scope.roots) || within(&self.scope.grants) {
            Area::Root
        } else if within(&self.temps) {
            Area::Temp
        } else {
            Area::Outside
        }
    }

    /// Whether every entry of the directory at `path` is of the same area as the directory.
    pub(super) fn is_whole(&self, path: &Path) -> bool {
        let Self { scope, scratch, temps, .. } = self;
        let lists = [&scope.protected, scratch, &scope.blocked, &scope.roots, &scope.grants, temps];
        !lists.into_iter().flatten().any(|listed| listed.parent() == Some(path))
    }

    /// Why `path`, which lies in no place to write, may not be written.
    pub(super) fn why_outside(&self, path: &Path) -> (String, Option<String>) {
        if self.scope.is_protected(path) {
            return ("Haft's own, which nothing touches".to_owned(), None);
        }
        if self.scope.blocked.iter().any(|blocked| path.starts_with(blocked)) {
            return ("the scope does not let it be written".to_owned(), None);
        }
        if self.temps.iter().any(|temp| path.starts_with(temp)) {
            let why = "it is there already and not of this session's making".to_owned();
            return (why, Some("choose another name, or a directory below $TMPDIR".to_owned()));
        }
        let folder = path.parent().unwrap_or(path);
        ("outside the scope".to_owned(), Some(format!("--add-dir {}", folder.display())))
    }

    /// Whether the entry of a shared temporary directory that `path` is, or lies in, may be changed. `exists` tells
    /// whether there is one; a new one becomes the session's.
    pub(super) fn may_change_temporary(&self, path: &Path, exists: impl Fn(&Path) -> bool) -> bool {
        let Some(temp) = self.temps.iter().find(|temp| path.starts_with(temp)) else { return false };
        let Some(first) = path.strip_prefix(temp).ok().and_then(|rest| rest.components().next()) else {
            return false;
        };
        let entry = temp.join(first);
        let mut own = lock(&self.shared.temporary);
        if own.contains(&entry) {
            return true;
        }
        if exists(&entry) {
            return false;
        }
        own.insert(entry);
        true
    }

    /// Why a path is guarded. Settings in directories that the command itself made concern nobody yet.
    pub(super) fn guard(&self, path: &Path, in_new_directory: bool) -> Option<Guard> {
        match guard_in(&self.scope, path) {
            Some(Guard::Settings) if in_new_directory || is_dependency(path) => None,
            guard => guard,
        }
    }

    /// Whether nobody may read the file of this path.
    pub(super) fn is_secret(&self, path: &Path) -> bool {
        let named = path.file_name().is_some_and(|name| self.secrets.matches(name));
        named || self.scope.is_protected(path) || self.unread.iter().any(|unread| path.starts_with(unread))
    }

    /// Whether something below `path` may not be read or written.
    pub(super) fn holds_untouchable(&self, path: &Path) -> bool {
        let untouchable = self.scope.protected.iter().chain(&self.scope.blocked).chain(&self.unread);
        untouchable.into_iter().any(|inner| inner.starts_with(path))
    }

    pub(super) fn is_device(&self, path: &Path) -> bool {
        self.devices.iter().any(|device| device == path)
    }
}

/// Packages bring settings along that no program looks for where they are.
fn is_dependency(path: &Path) -> bool {
    let folders = ["node_modules", "site-packages", "vendor", "target"];
    path.components().any(|part| folders.iter().any(|folder| part.as_os_str() == *folder))
}
