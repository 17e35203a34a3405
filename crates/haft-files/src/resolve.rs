//! From a path to a place: a held parent directory and a name in it.
//!
//! The walk goes one component at a time from a root's handle and follows links by reading them, so that no swap,
//! dangling link, `..` or absolute link can lead out: there is nothing to check afterwards.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use haft_tool::{ErrorKind, ToolError};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::root::{HOLD, Root, tells_about_a_process};

/// As many links as the kernel itself would follow.
const MOST_LINKS: u32 = 40;

/// Whether a link at the very end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    Follow,
    Keep,
}

/// A name in a held directory.
pub(super) struct Place {
    pub(super) parent: OwnedFd,
    /// Where the parent is.
    pub(super) parent_path: PathBuf,
    /// Directories between the parent and the name that do not exist yet.
    pub(super) missing: Vec<OsString>,
    pub(super) name: OsString,
}

impl Place {
    pub(super) fn path(&self) -> PathBuf {
        let mut path = self.parent_path.clone();
        path.extend(&self.missing);
        if self.name != "." {
            path.push(&self.name);
        }
        path
    }
}

/// Resolves `rest` (relative, lexically normal) from `root`; absolute links may lead into any of `roots`.
pub(super) fn resolve(
    root: &Arc<Root>,
    roots: &[Arc<Root>],
    rest: &Path,
    leaf: Leaf,
) -> Result<Place, ToolError> {
    let asked = root.path.join(rest);
    let mut walk = Walk { root: Arc::clone(root), held: Vec::new() };
    let mut todo: VecDeque<OsString> = components(rest).map(OsStr::to_owned).collect();
    let mut links = 0;
    loop {
        let Some(name) = todo.pop_front() else {
            return walk.place(Vec::new(), ".".into());
        };
        if name == "." {
            continue;
        }
        if name == ".." {
            if walk.held.pop().is_none() {
                return Err(outside(&asked));
            }
            continue;
        }
        let last = todo.is_empty();
        match rustix::fs::openat(walk.fd(), &name, HOLD | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(_) if last => return walk.place(Vec::new(), name),
            Ok(fd) => walk.held.push((fd, name)),
            Err(Errno::NOENT) => {
                let mut missing: Vec<OsString> = std::iter::once(name).chain(todo).collect();
                // What does not exist has no parent to go back to, and no inside.
                if missing.iter().any(|part| part == ".." || part == ".") {
                    let what = format!("{}: a directory on the way does not exist", asked.display());
                    return Err(ToolError::new(ErrorKind::FileNotFound, what));
                }
                let name = missing.pop().unwrap_or_default();
                return walk.place(missing, name);
            }
            Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {
                match rustix::fs::readlinkat(walk.fd(), &name, Vec::new()) {
                    Ok(_) if last && leaf == Leaf::Keep => return walk.place(Vec::new(), name),
                    Ok(target) => {
                        // Such a link is a handle in the shape of a link; its words are not where it leads.
                        if tells_about_a_process(walk.fd(), &walk.path()) {
                            return Err(through_proc(&asked));
                        }
                        links += 1;
                        if links > MOST_LINKS {
                            return Err(ToolError::invalid_path(format!(
                                "{}: too many links",
                                asked.display()
                            )));
                        }
                        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                        let inside = walk
                            .enter(&target, roots)
                            .ok_or_else(|| leads_out(&asked, &walk, &name, &target))?;
                        todo = inside.into_iter().chain(todo).collect();
                    }
                    Err(Errno::INVAL) if last => return walk.place(Vec::new(), name),
                    Err(Errno::INVAL) => {
                        let file = walk.path().join(&name);
                        return Err(ToolError::new(
                            ErrorKind::FileNotFound,
                            format!("{}: {} is not a directory", asked.display(), file.display()),
                        ));
                    }
                    Err(error) => return Err(ToolError::io(asked.display(), &error.into())),
                }
            }
            Err(error) => return Err(ToolError::io(asked.display(), &error.into())),
        }
    }
}

/// The directories held from the root down to where the walk stands.
struct Walk {
    root: Arc<Root>,
    held: Vec<(OwnedFd, OsString)>,
}

impl Walk {
    fn fd(&self) -> BorrowedFd<'_> {
        self.held.last().map_or(self.root.fd.as_fd(), |(fd, _)| fd.as_fd())
    }

    fn path(&self) -> PathBuf {
        let mut path = self.root.path.clone();
        path.extend(self.held.iter().map(|(_, name)| name));
        path
    }

    fn place(self, missing: Vec<OsString>, name: OsString) -> Result<Place, ToolError> {
        let parent_path = self.path();
        // A handle that can be listed, locked and synced, unlike the one the walk holds.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = match rustix::fs::openat(self.fd(), ".", flags, Mode::empty()) {
            Err(Errno::ACCESS) => rustix::fs::openat(self.fd(), ".", HOLD, Mode::empty()),
            other => other,
        };
        let parent = parent.map_err(|error| ToolError::io(parent_path.display(), &error.into()))?;
        Ok(Place { parent, parent_path, missing, name })
    }

    /// Follows a link: stays where it is for a relative target, restarts at a root for an absolute one. The names to go on
    /// with; `None` if they are outside.
    fn enter(&mut self, target: &Path, roots: &[Arc<Root>]) -> Option<Vec<OsString>> {
        let names = components(target).map(OsStr::to_owned);
        if target.is_relative() {
            return Some(names.collect());
        }
        let root = roots.iter().find(|root| target.starts_with(&root.path))?;
        self.root = Arc::clone(root);
        self.held.clear();
        let above = root.path.components().skip(1).count();
        Some(names.skip(above).collect())
    }
}

/// The names of a path, with `..` as it stands, and a `.` at the end if what it names must be a directory.
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

/// The part of `path` below `root`.
pub(super) fn below<'p>(root: &Root, path: &'p Path) -> Result<&'p Path, ToolError> {
    path.strip_prefix(&root.path).map_err(|_| outside(path))
}

pub(super) fn outside(path: &Path) -> ToolError {
    ToolError::invalid_path(format!("{} leads outside the workspace", path.display()))
}

fn through_proc(asked: &Path) -> ToolError {
    ToolError::denied(format!(
        "{} leads through a process's links in /proc, which are not followed",
        asked.display()
    ))
}

fn leads_out(asked: &Path, walk: &Walk, name: &OsStr, target: &Path) -> ToolError {
    let link = walk.path().join(name);
    ToolError::invalid_path(format!(
        "{} leads outside the workspace: the link {} points to {}",
        asked.display(),
        link.display(),
        target.display()
    ))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use rustix::fs::{AtFlags, ResolveFlags};

    /// Something in a generated tree.
    #[derive(Debug, Clone)]
    enum Thing {
        Dir,
        File,
        Link(String),
    }

    const NAMES: [&str; 3] = ["a", "b", "c"];

    /// A path of few names, so that paths meet things and links meet links.
    fn words(most: usize) -> impl Strategy<Value = String> {
        let words = prop_oneof![5 => prop::sample::select(&NAMES), 1 => Just(".."), 1 => Just(".")];
        vec(words, 1..=most).prop_map(|words| words.join("/"))
    }

    fn spot() -> impl Strategy<Value = String> {
        vec(prop::sample::select(&NAMES), 1..=3).prop_map(|names| names.join("/"))
    }

    fn thing() -> impl Strategy<Value = Thing> {
        let target =
            (words(4), prop::sample::select(vec!["", "", "", "/", "/."])).prop_map(|(path, end)| path + end);
        prop_oneof![2 => Just(Thing::Dir), 1 => Just(Thing::File), 4 => target.prop_map(Thing::Link)]
    }

    /// What a walk found: the inode it came to, or why it did not.
    #[derive(Debug, PartialEq, Eq)]
    enum Came {
        To(u64),
        Nowhere,
        Out,
    }

    fn by_kernel(root: &Root, path: &Path, within: ResolveFlags) -> Came {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let within = within | ResolveFlags::NO_MAGICLINKS;
        // The kernel gives up when anything on the machine is renamed meanwhile.
        let opened =
            std::iter::repeat_with(|| rustix::fs::openat2(&root.fd, path, flags, Mode::empty(), within))
                .find(|opened| !matches!(opened, Err(Errno::AGAIN)));
        match opened.unwrap() {
            Ok(fd) => Came::To(rustix::fs::fstat(&fd).unwrap().st_ino),
            Err(Errno::NOENT | Errno::NOTDIR) => Came::Nowhere,
            Err(Errno::XDEV | Errno::LOOP) => Came::Out,
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }

    fn by_walk(root: &Arc<Root>, path: &Path) -> Came {
        match resolve(root, std::slice::from_ref(root), path, Leaf::Follow) {
            Ok(place) if place.missing.is_empty() => {
                let stat = rustix::fs::statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW);
                stat.map_or(Came::Nowhere, |stat| Came::To(stat.st_ino))
            }
            Ok(_) => Came::Nowhere,
            Err(error) if error.kind == ErrorKind::FileNotFound => Came::Nowhere,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::InvalidPath, "{error}");
                Came::Out
            }
        }
    }

    /// Makes what can be made of `things` without following a link; `start` goes before the target of one.
    fn plant(base: &Path, things: &[(String, Thing)], start: &str) {
        for (path, thing) in things {
            let path = base.join(path);
            let mut above = path.ancestors().skip(1).take_while(|above| above.starts_with(base));
            if !above.all(|above| above.symlink_metadata().is_ok_and(|stat| stat.is_dir())) {
                continue;
            }
            let _ = match thing {
                Thing::Dir => std::fs::create_dir(path),
                Thing::File => std::fs::File::create_new(path).map(drop),
                Thing::Link(target) => std::os::unix::fs::symlink(format!("{start}{target}"), path),
            };
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_walk_comes_to_the_same_end_as_the_kernel(
            things in vec((spot(), thing()), 1..20),
            paths in vec(words(6), 40),
        ) {
            let held = tempfile::TempDir::new().unwrap();
            // The root has a neighbour of the same names, so that a step too far is seen.
            for name in ["root", "a", "b"] {
                std::fs::create_dir(held.path().join(name)).unwrap();
            }
            let root = Arc::new(Root::open(&held.path().join("root")).unwrap());
            plant(&root.path, &things, "");
            for path in &paths {
                let (kernel, walk) = (by_kernel(&root, path.as_ref(), ResolveFlags::BENEATH), by_walk(&root, path.as_ref()));
                prop_assert_eq!(kernel, walk, "{}", path);
            }
        }

        #[test]
        fn the_walk_follows_absolute_links_into_the_root_as_the_kernel_would(
            things in vec((spot(), thing()), 1..20),
            paths in vec(words(6), 40),
        ) {
            let (walked, told) = (tempfile::TempDir::new().unwrap(), tempfile::TempDir::new().unwrap());
            let (walked, told) = (Root::open(walked.path()).unwrap(), Root::open(told.path()).unwrap());
            // Absolute in one tree, and in the other, whose root the kernel takes for the whole, absolute there.
            plant(&walked.path, &things, &format!("{}/", walked.path.display()));
            plant(&told.path, &things, "/");
            let walked = Arc::new(walked);
            for path in &paths {
                match (by_walk(&walked, path.as_ref()), by_kernel(&told, path.as_ref(), ResolveFlags::IN_ROOT)) {
                    (Came::Nowhere, kernel) => prop_assert_eq!(kernel, Came::Nowhere, "{}", path),
                    (Came::To(_), kernel) => prop_assert!(matches!(kernel, Came::To(_)), "{}: {:?}", path, kernel),
                    // The kernel stays at the root where `..` would leave it; the walk refuses.
                    (Came::Out, _) => {}
                }
            }
        }
    }
}
