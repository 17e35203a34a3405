//! The file system as the commands of a session see it: what is private, what is visible, what is hidden.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_tool::Network;
use rustix::fs::Mode;

use super::mounts::{MountPlan, MountStep};
use crate::linux::preview::OverlaidDir;
use crate::linux::workspace_owner::WorkspaceOwner;

/// Devices of commands.
pub(in crate::linux) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Directories of other programs' sockets and process ids.
const RUNTIME_DIRECTORIES: &[&str] = &["/run", "/var/run"];
/// What stays visible there: name resolution, and the programs of NixOS.
const VISIBLE_RUNTIME: &[&str] = &[
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
];
const DIRECTORY_MODE: u32 = 0o755;

/// A file or directory, and where commands find it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MountedDir {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
}

/// What the commands of a session see. Paths are absolute and without links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionView {
    /// What commands write, at its own path, outer ones first. Everything else is read-only.
    pub(crate) writable: Vec<PathBuf>,
    /// Those of them whose changes go elsewhere.
    pub(crate) overlaid: Vec<OverlaidDir>,
    /// Directories of the session, outer ones first.
    pub(crate) private: Vec<MountedDir>,
    /// What is visible inside of private directories.
    pub(crate) visible: Vec<MountedDir>,
    /// What is not visible.
    pub(crate) hidden: Vec<PathBuf>,
    /// An empty directory and an empty file, which hide others.
    pub(crate) empty: (PathBuf, PathBuf),
    /// Another user whose workspace root uses.
    pub(crate) owner: Option<WorkspaceOwner>,
    /// The terminal that commands may use.
    pub(crate) terminal: Option<PathBuf>,
    /// What commands may reach: those of other networks have other namespaces.
    pub(crate) network: Network,
    /// The largest process id of commands.
    pub(crate) max_pid: usize,
}

impl SessionView {
    /// Whether commands find a private directory at `path`.
    pub(crate) fn is_private(&self, path: &Path) -> bool {
        self.private.iter().any(|private| private.target == path)
    }

    /// What is visible and read-only inside of private directories.
    pub(crate) fn read_only(&self) -> Vec<PathBuf> {
        self.visible.iter().map(|visible| &visible.target).chain(&self.hidden).cloned().collect()
    }

    /// Every path at which something is mounted in it.
    pub(crate) fn mount_points(&self) -> Vec<PathBuf> {
        let mounted = self.private.iter().chain(&self.visible).map(|mounted| &mounted.target);
        mounted.chain(&self.hidden).chain(&self.writable).cloned().collect()
    }

    /// Where the file is that commands find at `path`, if it is in a private directory.
    pub(crate) fn source_of(&self, path: &Path) -> Option<PathBuf> {
        let around = |target: &Path| path.starts_with(target).then_some(target.as_os_str().len());
        let visible = self.visible.iter().map(|visible| &visible.target).chain(&self.writable);
        let visible = visible.filter_map(|target| around(target)).max();
        let private = self.private.iter().filter_map(|private| Some((around(&private.target)?, private)));
        let (depth, MountedDir { source, target }) = private.max_by_key(|(depth, _)| *depth)?;
        let is_innermost = visible.is_none_or(|visible| visible < depth);
        is_innermost.then(|| path.strip_prefix(target).ok().map(|rest| source.join(rest))).flatten()
    }

    /// The steps that build it.
    pub(super) fn plan(&self) -> MountPlan {
        let mut plan = MountPlan::default();
        for overlaid in &self.overlaid {
            if let Some((target, options)) =
                c_path(&overlaid.lower).zip(CString::new(overlaid.mount_options()).ok())
            {
                plan.add(MountStep::Overlay { target, options });
            }
        }
        // Copies come first, because later steps cover the originals.
        let mut attached = Vec::new();
        let mut copy = |plan: &mut MountPlan, source: &Path, target: &Path, read_only: bool| {
            if let Some((source, target)) = c_path(source).zip(c_path(target)) {
                attached.push((target, plan.copy(source, read_only)));
            }
        };
        let private = self.private.iter().map(|private| (private, false));
        let visible = self.visible.iter().map(|visible| (visible, true));
        let mut mounted: Vec<(&MountedDir, bool)> = private.chain(visible).collect();
        // Outer ones first, because they cover what is mounted inside.
        mounted.sort_by(|(one, _), (other, _)| one.target.cmp(&other.target));
        for (MountedDir { source, target }, read_only) in mounted {
            copy(&mut plan, source, target, read_only);
        }
        for path in VISIBLE_RUNTIME.iter().map(Path::new).filter(|path| path.exists()) {
            copy(&mut plan, path, path, true);
        }
        let is_root = |path: &PathBuf| path.parent().is_none();
        for path in self.writable.iter().filter(|path| !is_root(path)) {
            copy(&mut plan, path, path, false);
        }
        for device in DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
            copy(&mut plan, device, device, false);
        }
        if let Some(terminal) = &self.terminal {
            copy(&mut plan, terminal, Path::new("/dev/console"), false);
        }
        for path in &self.hidden {
            let empty = if path.is_dir() { &self.empty.0 } else { &self.empty.1 };
            copy(&mut plan, empty, path, true);
        }
        if !self.writable.iter().any(is_root) {
            plan.add(MountStep::ReadOnly);
        }
        add_devices(&mut plan);
        for directory in RUNTIME_DIRECTORIES.iter().filter(|path| is_directory(path)) {
            add_new(&mut plan, c"tmpfs", directory, c"mode=755,size=1m");
        }
        add_new(&mut plan, c"proc", "/proc", c"");
        for (target, copy) in attached {
            plan.add(MountStep::Attach { copy, target });
        }
        plan
    }
}

/// A `/dev` with the devices of commands, terminals of their own and shared memory of their own.
fn add_devices(plan: &mut MountPlan) {
    add_new(plan, c"tmpfs", "/dev", c"mode=755,size=1m");
    for (path, mode) in [("/dev/pts", DIRECTORY_MODE), ("/dev/shm", 0o1777)] {
        if let Some(path) = c_path(Path::new(path)) {
            plan.add(MountStep::Directory { path, mode: Mode::from_raw_mode(mode) });
        }
    }
    add_new(plan, c"devpts", "/dev/pts", c"newinstance,ptmxmode=0666,mode=0620");
    add_new(plan, c"tmpfs", "/dev/shm", c"mode=1777");
    for (target, path) in [
        (c"pts/ptmx", "/dev/ptmx"),
        (c"/proc/self/fd", "/dev/fd"),
        (c"/proc/self/fd/0", "/dev/stdin"),
        (c"/proc/self/fd/1", "/dev/stdout"),
        (c"/proc/self/fd/2", "/dev/stderr"),
    ] {
        if let Some(path) = c_path(Path::new(path)) {
            plan.add(MountStep::Symlink { target, path });
        }
    }
}

fn add_new(
    plan: &mut MountPlan,
    kind: &'static std::ffi::CStr,
    target: &str,
    options: &'static std::ffi::CStr,
) {
    if let Some(target) = c_path(Path::new(target)) {
        plan.add(MountStep::New { kind, target, options });
    }
}

fn is_directory(path: &str) -> bool {
    Path::new(path).symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

/// `None` for a path with a NUL, which no file has.
fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_commands_are_found_in_private_directories() {
        let dir = |source: &str, target: &str| MountedDir { source: source.into(), target: target.into() };
        let view = SessionView {
            private: vec![
                dir("/s/tmp", "/tmp"),
                dir("/s/home", "/home/me"),
                dir("/c/cache", "/home/me/.cache"),
            ],
            visible: vec![dir("/home/me/bin", "/home/me/bin")],
            writable: vec!["/tmp/work".into()],
            ..SessionView::default()
        };
        let source = |path: &str| view.source_of(Path::new(path));
        assert_eq!(source("/tmp/a/b"), Some("/s/tmp/a/b".into()));
        assert_eq!(source("/home/me/.cache/x"), Some("/c/cache/x".into()));
        assert_eq!(source("/home/me/x"), Some("/s/home/x".into()));
        for outside in ["/tmp/work/a", "/home/me/bin/x", "/etc/x", "/tmpx"] {
            assert_eq!(source(outside), None, "{outside}");
        }
    }
}
