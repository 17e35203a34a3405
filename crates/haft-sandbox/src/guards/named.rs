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

use super::git::{CONFIGS, is_control_name, is_git_directory_now, resolve};
use super::objects::{common_directory, git_directory};
use super::{GuardedContent, content_now, names_in, node_kind};
use crate::git_config::named_paths;

/// More directories are not searched for links and repositories.
pub(super) const MAX_SEARCHED_DIRECTORIES: usize = 20_000;
/// The search ends after this many directory entries.
pub(super) const MAX_LISTED_ENTRIES: usize = 1_000_000;
/// The kernel follows no more.
const MAX_LINKS: usize = 40;
/// Directories that are not searched: tools generate many files in them.
pub(super) const SKIPPED_DIRECTORIES: &[&str] =
    &["node_modules", "target", ".venv", "venv", "__pycache__", "objects"];
/// Temporary directories that all programs of the machine share. They are too large to search, and are not projects unless they
/// are the workspace.
pub(crate) const SHARED_TEMP_DIRS: &[&str] = &["/tmp", "/var/tmp"];
/// More levels of included configurations are not followed; git stops at ten.
const MAX_INCLUDES: usize = 10;
/// More configurations of one repository are not read.
const MAX_CONFIGS: usize = 200;

/// A repository: its working tree and the directory with its configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Repository {
    top: PathBuf,
    pub(super) common: PathBuf,
}

/// The files that the user's links and git configurations lead to.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles {
    pub(super) repositories: BTreeSet<Repository>,
    /// Links that are named like settings.
    pub(super) links: BTreeSet<PathBuf>,
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
        let made_at = std::fs::symlink_metadata(&path).and_then(|meta| meta.created()).ok();
        Self { made_at: Reverse(made_at), path }
    }
}

impl NamedFiles {
    /// Searches the roots of a scope for links and repositories, and looks at the user's own git configuration.
    pub(crate) fn find(roots: &[PathBuf]) -> Self {
        let mut found = Self::default();
        let is_shared = |root: &Path| SHARED_TEMP_DIRS.iter().any(|shared| root == Path::new(shared));
        let (workspace, others) = roots.split_at(roots.len().min(1));
        let searched = workspace.iter().chain(others.iter().filter(|root| !is_shared(root)));
        let mut todo: BinaryHeap<OldestFirst> = searched.cloned().map(OldestFirst::new).collect();
        for root in roots {
            for above in root.ancestors() {
                found.add_repository(above);
            }
        }
        // A command may have closed a directory only for now, and open it again once something else is written.
        let mut opened = OpenedDirectories::default();
        let (mut directories, mut listed) = (0, 0);
        while let Some(OldestFirst { path: directory, .. }) = todo.pop() {
            directories += 1;
            if directories > MAX_SEARCHED_DIRECTORIES || listed > MAX_LISTED_ENTRIES {
                break;
            }
            opened.open(&directory, LIST_ACCESS);
            found.add_repository(&directory);
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                listed += 1;
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
        found.add_targets();
        found
    }

    /// Opens the directories of the links and repositories in `roots`, so that they can be judged.
    pub(crate) fn open(&self, roots: &[PathBuf]) -> OpenedDirectories {
        let repositories = self.repositories.iter().map(|repository| repository.common.join("config"));
        let paths: Vec<PathBuf> = self.links.iter().cloned().chain(repositories).collect();
        OpenedDirectories::above(paths.iter().map(PathBuf::as_path), LIST_ACCESS, |directory| {
            roots.iter().any(|root| directory.starts_with(root))
        })
    }

    /// The link or git configuration that leads to `path`.
    fn leading_to(&self, path: &Path) -> Option<PathBuf> {
        let leads = |targets: Vec<PathBuf>| targets.iter().any(|target| path.starts_with(target));
        let link = self.links.iter().find(|link| leads(ways(link))).cloned();
        let mut repositories = self.repositories.iter();
        link.or_else(|| {
            repositories
                .find(|repository| leads(repository.targets()))
                .map(|found| found.common.join("config"))
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
        let mut found =
            Self { repositories: repositories.cloned().collect(), links, targets: BTreeSet::new() };
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
        let is_settings = settings_rule(&path).is_some() || holds_settings(&path);
        if is_settings && node_kind(&path).is_some_and(|kind| kind.is_symlink()) {
            self.links.insert(path);
        }
    }

    fn add_repository(&mut self, directory: &Path) {
        let git = match node_kind(&directory.join(".git")) {
            Some(_) => git_directory(&directory.join(".git")),
            None => is_git_directory_now(directory).then(|| directory.to_owned()),
        };
        if let Some(git) = git {
            self.repositories
                .insert(Repository { top: directory.to_owned(), common: common_directory(&git) });
        }
    }

    fn add_targets(&mut self) {
        let linked = self.links.iter().flat_map(|link| ways(link));
        self.targets = linked.chain(self.repositories.iter().flat_map(Repository::targets)).collect();
    }
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
        ways.push(resolve(parent, target.as_os_str().as_bytes()));
    }
    ways.extend(std::fs::canonicalize(path));
    ways
}

/// The paths that the configurations of a repository name.
#[derive(Debug, Default)]
pub(super) struct NamedByGit {
    /// Included configurations, and configurations that are links.
    pub(super) configs: Vec<PathBuf>,
    /// Directories of hooks.
    pub(super) hooks: Vec<PathBuf>,
    /// Programs that git runs.
    pub(super) programs: Vec<PathBuf>,
}

impl Repository {
    /// The files and directories that the configurations and the links among the hooks lead to.
    pub(super) fn targets(&self) -> Vec<PathBuf> {
        let named = self.named();
        let files = named.configs.iter().chain(&named.programs);
        let mut targets: Vec<PathBuf> = files.flat_map(|path| ways(path)).collect();
        for hooks in &named.hooks {
            if *hooks != self.common.join("hooks") || is_link(hooks) {
                targets.extend(ways(hooks));
            }
            let links = names_in(hooks).unwrap_or_default().into_iter().map(|name| hooks.join(name));
            targets.extend(links.filter(|path| is_link(path)).flat_map(|link| ways(&link)));
        }
        targets
    }

    pub(super) fn named(&self) -> NamedByGit {
        let mut named = NamedByGit::default();
        let worktrees = self.common.join("worktrees");
        let names = names_in(&worktrees).unwrap_or_default();
        let worktrees = names.into_iter().map(|name| worktrees.join(name).join(CONFIGS[1]));
        let own = CONFIGS.iter().map(|name| self.common.join(name));
        let own: Vec<PathBuf> = own.chain(worktrees).collect();
        named.configs.extend(own.iter().filter(|path| is_link(path)).cloned());
        let mut configs: Vec<PathBuf> = user_configs().into_iter().chain(own).collect();
        // Configurations may include each other.
        let mut seen: BTreeSet<PathBuf> = configs.iter().cloned().collect();
        for _ in 0..MAX_INCLUDES {
            let mut included = Vec::new();
            for config in &configs {
                let GuardedContent::Bytes(bytes) = content_now(config) else { continue };
                let paths = named_paths(config, &bytes);
                let parent = config.parent().unwrap_or(&self.common);
                included.extend(paths.includes.iter().map(|path| resolve(parent, &expand_home(path))));
                let programs = paths.programs.iter().map(|path| resolve(&self.top, &expand_home(path)));
                named.programs.extend(programs);
                // Conditions decide which of several values is in effect, so all of them count.
                named.hooks.extend(paths.hooks.map(|path| resolve(&self.top, &expand_home(&path))));
            }
            included.retain(|path| seen.len() < MAX_CONFIGS && seen.insert(path.clone()));
            if included.is_empty() {
                break;
            }
            named.configs.extend(included.iter().cloned());
            configs = included;
        }
        if named.hooks.is_empty() {
            named.hooks.push(self.common.join("hooks"));
        }
        named
    }
}

/// The configurations for all of the user's repositories, which may name files of a workspace.
pub(super) fn user_configs() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let own = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let own = own.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let own = own.map(|own| own.join("git/config"));
    [PathBuf::from("/etc/gitconfig")]
        .into_iter()
        .chain(own)
        .chain(home.map(|home| home.join(".gitconfig")))
        .collect()
}

fn expand_home(path: &[u8]) -> Vec<u8> {
    match (path.strip_prefix(b"~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => [home.as_bytes(), b"/", rest].concat(),
        _ => path.to_vec(),
    }
}

pub(super) fn is_link(path: &Path) -> bool {
    node_kind(path).is_some_and(|kind| kind.is_symlink())
}

/// The working tree of a `.git`; another git directory is its own.
pub(super) fn top_of(git: &Path) -> &Path {
    let is_dot_git = git.file_name().is_some_and(|name: &OsStr| name.eq_ignore_ascii_case(".git"));
    git.parent().filter(|_| is_dot_git).unwrap_or(git)
}
