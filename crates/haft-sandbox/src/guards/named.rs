//! Finds files that programs outside the sandbox read whatever their names are: a link of the user leads to them, or a git
//! configuration names them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use haft_files::{LIST_ACCESS, OpenedDirectories};
use haft_policy::{holds_settings, settings_rule};

use super::git::{is_control_name, is_git_directory_now, resolve};
use super::named_by_git::{ConfigReader, NamedByAll, Repository, made_at};
use super::objects::{common_directory, git_directory};
use super::{files_in, node_kind};

/// More directories are not searched for links and repositories. Each one is listed completely, because the user's entries may be
/// the last: that takes a small part of the time that it takes to make them.
pub(super) const MAX_SEARCHED_DIRECTORIES: usize = 20_000;
/// Settings in the user's home are at most this many directories deep: `.config/fish`.
const MAX_HOME_DEPTH: usize = 2;
/// The kernel follows no more.
const MAX_LINKS: usize = 40;
/// Directories that are not searched: tools generate many files in them.
pub(super) const SKIPPED_DIRECTORIES: &[&str] =
    &["node_modules", "target", ".venv", "venv", "__pycache__", "objects"];
/// Temporary directories that all programs of the machine share. They are too large to search, and are not projects unless they
/// are the workspace.
pub(crate) const SHARED_TEMP_DIRS: &[&str] = &["/tmp", "/var/tmp"];

/// The files that the user's links and git configurations lead to.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles {
    pub(super) repositories: BTreeSet<Repository>,
    /// Links that are named like settings.
    pub(super) links: BTreeSet<PathBuf>,
    /// Directories that these links lead to and that have too many files to check.
    pub(super) unlisted: BTreeSet<PathBuf>,
    /// All paths that these lead to.
    pub(super) targets: BTreeSet<PathBuf>,
}

/// A directory to search, oldest first: a command can make many directories, but none that is older than the user's, so it
/// cannot keep those from being searched.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct OldestFirst {
    made_at: Reverse<Option<SystemTime>>,
    path: PathBuf,
}

impl OldestFirst {
    fn new(path: PathBuf) -> Self {
        Self { made_at: made_at(&path), path }
    }
}

impl NamedFiles {
    /// Searches the roots of a scope for links and repositories, and looks at the user's own git configuration.
    pub(crate) fn find(roots: &[PathBuf]) -> Self {
        // A command may have closed a directory only for now, and open it again once something else is written.
        let mut opened = OpenedDirectories::default();
        Self::search(roots, |directory| opened.open(directory, LIST_ACCESS))
    }

    /// The same, but opens closed directories only while it has the lock, because two searches would close them for each other.
    #[cfg(target_os = "linux")]
    pub(crate) fn find_with_lock<L>(roots: &[PathBuf], lock: impl FnOnce() -> L) -> Self {
        let mut has_closed = false;
        let found = Self::search(roots, |directory| has_closed |= is_closed(directory));
        // One that was open during the search may be closed again.
        if !has_closed && !found.repositories.iter().any(|repository| is_closed(&repository.common)) {
            return found;
        }
        let _lock = lock();
        Self::find(roots)
    }

    /// Searches directories after a call of `enter`.
    fn search(roots: &[PathBuf], mut enter: impl FnMut(&Path)) -> Self {
        let mut found = Self::default();
        let is_shared = |root: &Path| SHARED_TEMP_DIRS.iter().any(|shared| root == Path::new(shared));
        let (workspace, others) = roots.split_at(roots.len().min(1));
        let searched = workspace.iter().chain(others.iter().filter(|root| !is_shared(root)));
        let mut todo: BinaryHeap<OldestFirst> = searched.cloned().map(OldestFirst::new).collect();
        let above_roots = roots.iter().flat_map(|root| root.ancestors());
        let mut repositories: BTreeSet<(PathBuf, PathBuf)> = above_roots.filter_map(repository_at).collect();
        let mut directories = 0;
        while let Some(OldestFirst { path: directory, .. }) = todo.pop() {
            directories += 1;
            if directories > MAX_SEARCHED_DIRECTORIES {
                break;
            }
            enter(&directory);
            repositories.extend(repository_at(&directory));
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_symlink() => found.add_link(entry.path()),
                    Ok(kind) if kind.is_dir() => {
                        let name = entry.file_name();
                        if !SKIPPED_DIRECTORIES.iter().any(|skipped| name == *skipped) {
                            todo.push(OldestFirst::new(entry.path()));
                        }
                    }
                    _ => {}
                }
            }
        }
        let mut reader = ConfigReader::new();
        let repositories = repositories.into_iter();
        found.repositories = repositories.map(|(top, common)| reader.repository(top, common)).collect();
        found.repositories.insert(reader.of_user());
        found.links.extend(home_links(roots));
        found.add_links_in_linked(roots);
        found.add_targets();
        found
    }

    /// Opens the directories of the links and repositories in `roots`, so that they can be judged.
    pub(crate) fn open(&self, roots: &[PathBuf]) -> OpenedDirectories {
        let repositories = self.repositories.iter().map(|repository| repository.config.clone());
        let paths: Vec<PathBuf> = self.links.iter().cloned().chain(repositories).collect();
        OpenedDirectories::above(paths.iter().map(PathBuf::as_path), LIST_ACCESS, |directory| {
            roots.iter().any(|root| directory.starts_with(root))
        })
    }

    /// The link or git configuration that leads to `path`.
    fn leading_to(&self, path: &Path) -> Option<PathBuf> {
        let leads = |targets: Vec<PathBuf>| targets.iter().any(|target| path.starts_with(target));
        let link = self.links.iter().find(|link| leads(ways(link))).cloned();
        link.or_else(|| {
            let leads = |found: &&Repository| {
                NamedByAll::new([*found]).targets().iter().any(|target| path.starts_with(target))
            };
            self.repositories.iter().find(leads).map(|found| found.config.clone())
        })
    }

    /// What was named before the changes at these paths: without links that are there or below, and without git directories
    /// that are there or that have a changed control entry.
    pub(crate) fn without(&self, changed: &[PathBuf]) -> Self {
        let is_changed = |path: &Path| changed.iter().any(|changed| path.starts_with(changed));
        let is_prepared = |git: &Path| {
            is_changed(git) || changed.iter().any(|path| is_control_name(path) && path.starts_with(git))
        };
        let repositories = self.repositories.iter();
        let repositories =
            repositories.filter(|found| !is_changed(&found.top.join(".git")) && !is_prepared(&found.common));
        let links = self.links.iter().filter(|link| !is_changed(link)).cloned().collect();
        let (repositories, unlisted) = (repositories.cloned().collect(), self.unlisted.clone());
        let mut found = Self { repositories, links, unlisted, targets: BTreeSet::new() };
        found.add_targets();
        found
    }

    /// Whether links or repositories were found below a directory.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_below(&self, directory: &Path) -> bool {
        self.links.iter().any(|link| link.starts_with(directory))
            || self.repositories.iter().any(|repository| repository.top.starts_with(directory))
    }

    /// Whether the search leaves a path out.
    #[cfg(target_os = "linux")]
    pub(crate) fn skips(path: &Path) -> bool {
        path.components().any(|part| SKIPPED_DIRECTORIES.iter().any(|name| part.as_os_str() == *name))
    }

    /// Whether a change of the entry at `path` can change one of these files.
    pub(crate) fn concern(&self, path: &Path) -> bool {
        self.targets.iter().any(|target| path.starts_with(target) || target.starts_with(path))
    }

    fn add_link(&mut self, path: PathBuf) {
        if is_settings(&path) && node_kind(&path).is_some_and(|kind| kind.is_symlink()) {
            self.links.insert(path);
        }
    }

    /// Adds the links in directories that links lead to, under the paths that programs use: `.vscode/tasks.json` for one in
    /// `conf/vscode`.
    fn add_links_in_linked(&mut self, roots: &[PathBuf]) {
        let mut todo: Vec<(PathBuf, PathBuf)> =
            self.links.iter().map(|link| (link.clone(), link.clone())).collect();
        let mut listed = BTreeSet::new();
        while let Some((first, link)) = todo.pop() {
            let Ok(target) = std::fs::canonicalize(&link) else { continue };
            let is_inside = roots.iter().any(|root| target.starts_with(root));
            if !is_inside || !target.is_dir() || !listed.insert((first.clone(), target.clone())) {
                continue;
            }
            let Some(files) = files_in(&target) else {
                self.unlisted.insert(target);
                continue;
            };
            for path in files.iter().filter(|path| is_link(path)) {
                let link = link.join(path.strip_prefix(&target).unwrap_or(path));
                self.add_link(link.clone());
                if self.links.contains(&link) {
                    todo.push((first.clone(), link));
                }
            }
        }
    }

    fn add_targets(&mut self) {
        self.targets = NamedByAll::new(&self.repositories).targets();
        self.targets.extend(self.links.iter().flat_map(|link| ways(link)));
    }
}

fn is_settings(path: &Path) -> bool {
    settings_rule(path).is_some() || holds_settings(path)
}

/// The links in the user's home that are named like settings and lead into `roots`: `~/.bashrc`, `~/.config/fish/config.fish`.
fn home_links(roots: &[PathBuf]) -> Vec<PathBuf> {
    let leads_inside =
        |path: &Path| ways(path).iter().any(|way| roots.iter().any(|root| way.starts_with(root)));
    let mut directories: Vec<PathBuf> = std::env::var_os("HOME").map(PathBuf::from).into_iter().collect();
    let mut links = Vec::new();
    for _ in 0..=MAX_HOME_DEPTH {
        let entries =
            directories.iter().flat_map(|path| std::fs::read_dir(path).into_iter().flatten().flatten());
        let entries: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| is_settings(path)).collect();
        let (linked, others) = entries.into_iter().partition::<Vec<_>, _>(|path| is_link(path));
        links.extend(linked.into_iter().filter(|path| leads_inside(path)));
        directories = others;
    }
    links
}

/// Whether a directory of Haft's user cannot be listed.
#[cfg(target_os = "linux")]
fn is_closed(directory: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let is_own = |meta: std::fs::Metadata| meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw();
    !haft_files::is_allowed(directory, LIST_ACCESS) && std::fs::symlink_metadata(directory).is_ok_and(is_own)
}

/// The working tree and the common directory of the repository in a directory.
fn repository_at(directory: &Path) -> Option<(PathBuf, PathBuf)> {
    let git = match node_kind(&directory.join(".git")) {
        Some(_) => git_directory(&directory.join(".git")),
        None => is_git_directory_now(directory).then(|| directory.to_owned()),
    };
    git.map(|git| (directory.to_owned(), common_directory(&git)))
}

/// The link or git configuration that makes programs outside the sandbox use the file at `path`.
pub fn leading_to(path: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
    let named = NamedFiles::find(roots);
    let _opened = named.open(roots);
    named.leading_to(path)
}

/// A path, each path that its chain of links leads to, and the path with all links resolved.
pub(super) fn ways(path: &Path) -> Vec<PathBuf> {
    let mut ways = vec![path.to_owned()];
    for _ in 0..MAX_LINKS {
        let Some((last, parent)) = ways.last().and_then(|last| Some((last, last.parent()?))) else { break };
        let Ok(target) = std::fs::read_link(last) else { break };
        // `..` in the target means the parent of the real directory.
        let parent = std::fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
        ways.push(resolve(&parent, target.as_os_str().as_bytes()));
    }
    ways.extend(std::fs::canonicalize(path));
    ways
}

pub(super) fn is_link(path: &Path) -> bool {
    node_kind(path).is_some_and(|kind| kind.is_symlink())
}

/// The working tree of a `.git`; another git directory is its own.
pub(super) fn top_of(git: &Path) -> &Path {
    let is_dot_git = git.file_name().is_some_and(|name: &OsStr| name.eq_ignore_ascii_case(".git"));
    git.parent().filter(|_| is_dot_git).unwrap_or(git)
}
