//! From a path to an open parent directory and a name in it.
//!
//! The walk goes from a root's handle one component at a time and follows links by reading them. So no rename, dangling link,
//! `..` or absolute link leads out, and nothing has to be checked afterwards.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::ResolveError;
use crate::os;
use crate::root::{Root, is_process_file};

/// The kernel's own limit.
pub(crate) const MAX_LINKS: u32 = 40;

/// Longer paths are resolved in parts. Less than the kernel's limit for a path, and more than that for a name.
const MAX_PART_BYTES: usize = 3 << 10;

/// What to do with a link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalLink {
    Follow,
    Keep,
}

/// A name in an open directory.
pub(crate) struct ResolvedPath {
    pub(crate) parent: OwnedFd,
    pub(crate) parent_path: PathBuf,
    /// Directories between the parent and the name that do not exist yet.
    pub(crate) missing: Vec<OsString>,
    pub(crate) name: OsString,
}

impl ResolvedPath {
    pub(crate) fn path(&self) -> PathBuf {
        let mut path = self.parent_path.clone();
        path.extend(&self.missing);
        if self.name != "." {
            path.push(&self.name);
        }
        path
    }

    /// Opens the file itself. If it has become a link, that is not followed.
    pub(crate) fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        if !self.missing.is_empty() {
            return Err(Errno::NOENT);
        }
        rustix::fs::openat(&self.parent, &self.name, flags | OFlags::NOFOLLOW, Mode::empty())
    }
}

/// Resolves `relative` (lexically normal) from `root`; absolute links may lead into any of `roots`.
pub(crate) fn resolve(
    root: &Arc<Root>,
    roots: &[Arc<Root>],
    relative: &Path,
    final_link: FinalLink,
) -> Result<ResolvedPath, ResolveError> {
    let mut walk = ComponentWalk { root: Arc::clone(root), open: Vec::new() };
    let mut todo: VecDeque<OsString> = components(relative).map(OsStr::to_owned).collect();
    let mut links = 0;
    loop {
        let Some(name) = todo.pop_front() else {
            return walk.finish(Vec::new(), ".".into());
        };
        if name == "." {
            continue;
        }
        if name == ".." {
            walk.open.pop().ok_or(ResolveError::Outside)?;
            continue;
        }
        let last = todo.is_empty();
        match rustix::fs::openat(walk.fd(), &name, os::DIR_HANDLE_FLAGS | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(_) if last => return walk.finish(Vec::new(), name),
            Ok(fd) => walk.open.push((fd, name)),
            Err(Errno::NOENT) => {
                let mut missing: Vec<OsString> = std::iter::once(name).chain(todo).collect();
                if missing.iter().any(|part| part == ".." || part == ".") {
                    return Err(ResolveError::MissingDirectory);
                }
                let name = missing.pop().unwrap_or_default();
                return walk.finish(missing, name);
            }
            Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {
                match rustix::fs::readlinkat(walk.fd(), &name, Vec::new()) {
                    Ok(_) if last && final_link == FinalLink::Keep => return walk.finish(Vec::new(), name),
                    Ok(target) => {
                        if is_process_file(walk.fd(), &walk.path()) {
                            return Err(ResolveError::ProcessLink);
                        }
                        links += 1;
                        if links > MAX_LINKS {
                            return Err(ResolveError::TooManyLinks);
                        }
                        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                        let link = walk.path().join(&name);
                        let names = walk.follow(&target, roots);
                        let names = names.ok_or(ResolveError::LinkOutside { link, target })?;
                        todo = names.into_iter().chain(todo).collect();
                    }
                    // Not a link.
                    Err(Errno::INVAL) if last => return walk.finish(Vec::new(), name),
                    Err(Errno::INVAL) => return Err(ResolveError::NotADirectory(walk.path().join(&name))),
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Opens the directory at `relative`, with no link on the way. The path may have any length.
pub(crate) fn open_exact(root: &OwnedFd, relative: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if relative.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err(Errno::INVAL);
    }
    let mut dir = rustix::fs::openat(root, ".", os::DIR_HANDLE_FLAGS, Mode::empty())?;
    let mut names = components(relative).peekable();
    while names.peek().is_some() {
        let mut part = PathBuf::new();
        while let Some(name) = names.next_if(|name| part.as_os_str().len() + name.len() < MAX_PART_BYTES) {
            part.push(name);
        }
        dir = os::open_without_links(&dir, &part)?;
    }
    // A handle that can be listed, locked and synced.
    match rustix::fs::openat(&dir, ".", flags, Mode::empty()) {
        Err(Errno::ACCESS) => Ok(dir),
        other => other,
    }
}

/// Opens the directory at an absolute path, with no link on the way. The path may have any length.
pub fn open_directory(path: &Path) -> std::io::Result<OwnedFd> {
    let root = rustix::fs::open("/", os::DIR_HANDLE_FLAGS, Mode::empty())?;
    Ok(open_exact(&root, path.strip_prefix("/").unwrap_or(path))?)
}

/// The open directories from the root down to the current one.
struct ComponentWalk {
    root: Arc<Root>,
    open: Vec<(OwnedFd, OsString)>,
}

impl ComponentWalk {
    fn fd(&self) -> BorrowedFd<'_> {
        self.open.last().map_or(self.root.fd.as_fd(), |(fd, _)| fd.as_fd())
    }

    fn path(&self) -> PathBuf {
        let mut path = self.root.path.clone();
        path.extend(self.open.iter().map(|(_, name)| name));
        path
    }

    fn finish(self, missing: Vec<OsString>, name: OsString) -> Result<ResolvedPath, ResolveError> {
        // A handle that can be listed, locked and synced, unlike those of the walk.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = match rustix::fs::openat(self.fd(), ".", flags, Mode::empty()) {
            Err(Errno::ACCESS) => rustix::fs::openat(self.fd(), ".", os::DIR_HANDLE_FLAGS, Mode::empty()),
            other => other,
        };
        Ok(ResolvedPath { parent: parent?, parent_path: self.path(), missing, name })
    }

    /// Follows a link: a relative one from the current directory, an absolute one from the root that it leads into.
    /// Returns the names to continue with; `None` if the target is outside.
    fn follow(&mut self, target: &Path, roots: &[Arc<Root>]) -> Option<Vec<OsString>> {
        let names = components(target).map(OsStr::to_owned);
        if target.is_relative() {
            return Some(names.collect());
        }
        let root = roots.iter().find(|root| target.starts_with(&root.path))?;
        self.root = Arc::clone(root);
        self.open.clear();
        Some(names.skip(root.path.components().skip(1).count()).collect())
    }
}

/// The names of a path, `..` included, and a `.` at the end if it must be a directory.
fn components(path: &Path) -> impl Iterator<Item = &OsStr> {
    let bytes = path.as_os_str().as_bytes();
    let directory = bytes.ends_with(b"/") || bytes.ends_with(b"/.");
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        Component::ParentDir => Some(OsStr::new("..")),
        _ => None,
    });
    names.chain(directory.then_some(OsStr::new(".")))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use rustix::fs::{AtFlags, ResolveFlags};

    /// An entry of a generated tree.
    #[derive(Debug, Clone)]
    enum Generated {
        Dir,
        File,
        Link(String),
    }

    const NAMES: [&str; 3] = ["a", "b", "c"];

    /// A path of few names, so that paths reach entries and links reach links.
    fn any_path(max_parts: usize) -> impl Strategy<Value = String> {
        let part = prop_oneof![5 => prop::sample::select(&NAMES), 1 => Just(".."), 1 => Just(".")];
        vec(part, 1..=max_parts).prop_map(|parts| parts.join("/"))
    }

    fn entry_path() -> impl Strategy<Value = String> {
        vec(prop::sample::select(&NAMES), 1..=3).prop_map(|names| names.join("/"))
    }

    fn entry() -> impl Strategy<Value = Generated> {
        let target = (any_path(4), prop::sample::select(vec!["", "", "", "/", "/."]));
        let target = target.prop_map(|(path, end)| path + end);
        prop_oneof![2 => Just(Generated::Dir), 1 => Just(Generated::File), 4 => target.prop_map(Generated::Link)]
    }

    /// The inode that a resolution reached, or why it did not.
    #[derive(Debug, PartialEq, Eq)]
    enum Reached {
        Inode(u64),
        Missing,
        Refused,
    }

    fn by_kernel(root: &Root, path: &Path, within: ResolveFlags) -> Reached {
        let within = within | ResolveFlags::NO_MAGICLINKS;
        let open = || rustix::fs::openat2(&root.fd, path, os::METADATA_FLAGS, Mode::empty(), within);
        // The kernel returns EAGAIN when anything on the machine is renamed meanwhile.
        let opened = std::iter::repeat_with(open).find(|opened| !matches!(opened, Err(Errno::AGAIN)));
        match opened.unwrap() {
            Ok(fd) => Reached::Inode(rustix::fs::fstat(&fd).unwrap().st_ino),
            Err(Errno::NOENT | Errno::NOTDIR) => Reached::Missing,
            Err(Errno::XDEV | Errno::LOOP) => Reached::Refused,
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }

    fn by_walk(root: &Arc<Root>, path: &Path) -> Reached {
        match resolve(root, std::slice::from_ref(root), path, FinalLink::Follow) {
            Ok(found) if found.missing.is_empty() => {
                let stat = rustix::fs::statat(&found.parent, &found.name, AtFlags::SYMLINK_NOFOLLOW);
                stat.map_or(Reached::Missing, |stat| Reached::Inode(stat.st_ino))
            }
            Ok(_) | Err(ResolveError::MissingDirectory | ResolveError::NotADirectory(_)) => Reached::Missing,
            Err(ResolveError::Outside | ResolveError::LinkOutside { .. } | ResolveError::TooManyLinks) => {
                Reached::Refused
            }
            Err(error) => panic!("{}: {error:?}", path.display()),
        }
    }

    /// Creates the entries that need no link to be followed; the target of a link is prefixed with `prefix`.
    fn create(base: &Path, entries: &[(String, Generated)], prefix: &str) {
        for (path, entry) in entries {
            let path = base.join(path);
            let mut above = path.ancestors().skip(1).take_while(|above| above.starts_with(base));
            if !above.all(|above| above.symlink_metadata().is_ok_and(|stat| stat.is_dir())) {
                continue;
            }
            let _ = match entry {
                Generated::Dir => std::fs::create_dir(path),
                Generated::File => std::fs::File::create_new(path).map(drop),
                Generated::Link(target) => std::os::unix::fs::symlink(format!("{prefix}{target}"), path),
            };
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn walk_agrees_with_the_kernel(
            entries in vec((entry_path(), entry()), 1..20),
            paths in vec(any_path(6), 40),
        ) {
            let temp = tempfile::TempDir::new().unwrap();
            // Siblings of the root with the same names reveal a step too far.
            for name in ["root", "a", "b"] {
                std::fs::create_dir(temp.path().join(name)).unwrap();
            }
            let root = Arc::new(Root::open(&temp.path().join("root")).unwrap());
            create(&root.path, &entries, "");
            for path in &paths {
                let kernel = by_kernel(&root, path.as_ref(), ResolveFlags::BENEATH);
                prop_assert_eq!(kernel, by_walk(&root, path.as_ref()), "{}", path);
            }
        }

        #[test]
        fn walk_follows_absolute_links_like_the_kernel(
            entries in vec((entry_path(), entry()), 1..20),
            paths in vec(any_path(6), 40),
        ) {
            let (walked, chrooted) = (tempfile::TempDir::new().unwrap(), tempfile::TempDir::new().unwrap());
            let (walked, chrooted) = (Root::open(walked.path()).unwrap(), Root::open(chrooted.path()).unwrap());
            // The same tree twice: absolute links lead into the first one, and into the second one as the kernel's root.
            create(&walked.path, &entries, &format!("{}/", walked.path.display()));
            create(&chrooted.path, &entries, "/");
            let walked = Arc::new(walked);
            for path in &paths {
                match (by_walk(&walked, path.as_ref()), by_kernel(&chrooted, path.as_ref(), ResolveFlags::IN_ROOT)) {
                    (Reached::Missing, kernel) => prop_assert_eq!(kernel, Reached::Missing, "{}", path),
                    (Reached::Inode(_), kernel) => {
                        prop_assert!(matches!(kernel, Reached::Inode(_)), "{}: {:?}", path, kernel);
                    }
                    // The kernel stays at the root where `..` would leave it; the walk refuses.
                    (Reached::Refused, _) => {}
                }
            }
        }
    }
}
