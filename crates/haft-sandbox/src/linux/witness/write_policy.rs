//! Where a command may write, and what is guarded there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_policy::{Guard, guard_in};
use haft_tool::{Scope, lock};

use crate::secrets::SecretNames;

/// Directories of packages, whose settings no program uses in that place.
const PACKAGE_DIRECTORIES: &[&str] = &["node_modules", "site-packages", "vendor", "target"];

/// What a command may do in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteArea {
    /// Part of the scope: writable, and every change is recorded.
    Workspace,
    /// A directory of the session: writable, not recorded.
    Private,
    /// A temporary directory that all programs share: entries of the session are writable, others are not.
    SharedTemp,
    /// Everything else: not writable.
    Outside,
}

/// What the commands of a session created and may use together.
#[derive(Debug, Default)]
pub(crate) struct SessionResources {
    /// Entries of shared temporary directories.
    temp_entries: Mutex<HashSet<PathBuf>>,
    /// TCP ports that commands listen on.
    ports: Mutex<Vec<u16>>,
    /// Abstract socket names that commands are bound to.
    abstract_names: Mutex<HashSet<Vec<u8>>>,
}

impl SessionResources {
    pub(super) fn has_port(&self, port: u16) -> bool {
        lock(&self.ports).contains(&port)
    }

    pub(super) fn add_port(&self, port: u16) {
        lock(&self.ports).push(port);
    }

    pub(super) fn remove_ports(&self, ports: &[u16]) {
        let mut known = lock(&self.ports);
        for port in ports {
            if let Some(index) = known.iter().position(|known| known == port) {
                known.swap_remove(index);
            }
        }
    }

    pub(super) fn has_abstract_name(&self, name: &[u8]) -> bool {
        lock(&self.abstract_names).contains(name)
    }

    pub(super) fn add_abstract_name(&self, name: &[u8]) {
        lock(&self.abstract_names).insert(name.to_vec());
    }
}

/// The scope of a command, as the witness applies it.
#[derive(Debug, Clone)]
pub(crate) struct WritePolicy {
    pub(crate) scope: Arc<Scope>,
    /// Directories of the session.
    pub(crate) private: Vec<PathBuf>,
    /// Temporary directories that all programs share.
    pub(crate) temp_dirs: Vec<PathBuf>,
    pub(crate) devices: Vec<PathBuf>,
    /// Names that are not read in any directory.
    pub(crate) secret_names: SecretNames,
    /// Paths that are not read.
    pub(crate) secret_paths: Vec<PathBuf>,
    /// Whether the witness opens every file, because secrets are among files that commands create.
    pub(crate) opens_all: bool,
    pub(crate) resources: Arc<SessionResources>,
}

impl WritePolicy {
    pub(super) fn area(&self, path: &Path) -> WriteArea {
        let is_in = |list: &[PathBuf]| list.iter().any(|root| path.starts_with(root));
        if self.scope.is_protected(path) {
            WriteArea::Outside
        } else if is_in(&self.private) {
            WriteArea::Private
        } else if is_in(&self.scope.blocked) {
            WriteArea::Outside
        } else if is_in(&self.scope.roots) || is_in(&self.scope.grants) {
            WriteArea::Workspace
        } else if is_in(&self.temp_dirs) {
            WriteArea::SharedTemp
        } else {
            WriteArea::Outside
        }
    }

    /// Whether every entry of the directory at `path` is in the same area as the directory itself.
    pub(super) fn is_uniform(&self, path: &Path) -> bool {
        let Self { scope, private, temp_dirs, .. } = self;
        let lists = [&scope.protected, private, &scope.blocked, &scope.roots, &scope.grants, temp_dirs];
        !lists.into_iter().flatten().any(|listed| listed.parent() == Some(path))
    }

    /// Why `path` may not be written, and how to allow it.
    pub(super) fn explain_outside(&self, path: &Path) -> (String, Option<String>) {
        if self.scope.is_protected(path) {
            return ("it belongs to Haft".to_owned(), None);
        }
        if self.scope.blocked.iter().any(|blocked| path.starts_with(blocked)) {
            return ("the scope does not let it be written".to_owned(), None);
        }
        if self.temp_dirs.iter().any(|temp| path.starts_with(temp)) {
            let allow = "choose another name, or a directory below $TMPDIR";
            return ("it exists and was not created in this session".to_owned(), Some(allow.to_owned()));
        }
        let directory = path.parent().unwrap_or(path);
        ("outside the scope".to_owned(), Some(format!("--add-dir {}", directory.display())))
    }

    /// Whether the entry of a shared temporary directory that contains `path` belongs to the session. An entry that does
    /// not exist yet becomes the session's.
    pub(super) fn may_change_temp(&self, path: &Path) -> bool {
        let Some(temp) = self.temp_dirs.iter().find(|temp| path.starts_with(temp)) else { return false };
        let Some(first) = path.strip_prefix(temp).ok().and_then(|rest| rest.components().next()) else {
            return false;
        };
        let entry = temp.join(first);
        let mut own = lock(&self.resources.temp_entries);
        if own.contains(&entry) {
            return true;
        }
        if entry.symlink_metadata().is_ok() {
            return false;
        }
        own.insert(entry);
        true
    }

    /// Why a path is guarded. Settings in a directory that the command created are not in use yet.
    pub(super) fn guard(&self, path: &Path, is_in_created_directory: bool) -> Option<Guard> {
        match guard_in(&self.scope, path) {
            Some(Guard::Settings) if is_in_created_directory || is_in_package(path) => None,
            guard => guard,
        }
    }

    /// Whether the file at this path is not read.
    pub(super) fn is_secret(&self, path: &Path) -> bool {
        let has_secret_name = path.file_name().is_some_and(|name| self.secret_names.matches(name));
        has_secret_name
            || self.scope.is_protected(path)
            || self.secret_paths.iter().any(|secret| path.starts_with(secret))
    }

    /// Whether something in the directory at `path` may not be read or written.
    pub(super) fn contains_restricted(&self, path: &Path) -> bool {
        let restricted = self.scope.protected.iter().chain(&self.scope.blocked).chain(&self.secret_paths);
        restricted.into_iter().any(|inner| inner.starts_with(path))
    }

    pub(super) fn is_device(&self, path: &Path) -> bool {
        self.devices.iter().any(|device| device == path)
    }
}

fn is_in_package(path: &Path) -> bool {
    path.components().any(|part| PACKAGE_DIRECTORIES.iter().any(|name| part.as_os_str() == *name))
}
