//! The files that the git configurations of a repository name, and those that the user's own configurations name for all of
//! them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use super::git::{CONFIGS, resolve};
use super::named::{is_link, ways};
use super::{GuardedContent, content_now, names_in};
use crate::git_config::{NamedPaths, named_paths};

/// More levels of included configurations are not followed; git stops at ten.
const MAX_INCLUDES: usize = 10;
/// More configurations of one repository are not read.
const MAX_CONFIGS: usize = 200;
/// The configurations of more worktrees are not read.
const MAX_WORKTREES_COUNT: usize = 1_000;

/// A repository: its working tree and the directory with its configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Repository {
    pub(super) top: PathBuf,
    pub(super) common: PathBuf,
    /// The configuration that messages name.
    pub(super) config: PathBuf,
    /// What its configurations named when it was found.
    named: NamedByGit,
}

/// The paths that the configurations of a repository name.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamedByGit {
    /// Included configurations, and configurations that are links.
    pub(super) configs: Vec<PathBuf>,
    /// Directories of hooks.
    pub(super) hooks: Vec<PathBuf>,
    /// Programs that git runs.
    pub(super) programs: Vec<PathBuf>,
}

impl Repository {
    pub(super) fn named(&self) -> NamedByGit {
        self.named.clone()
    }
}

/// What several repositories name. Thousands of worktrees may name the same files.
#[derive(Debug, Default)]
pub(super) struct NamedByAll {
    pub(super) configs: BTreeSet<PathBuf>,
    /// Directories of hooks, and whether no configuration names them because they are in the common directory.
    pub(super) hooks: BTreeMap<PathBuf, bool>,
    /// Programs, and a configuration that messages name.
    pub(super) programs: BTreeMap<PathBuf, PathBuf>,
}

impl NamedByAll {
    pub(super) fn new<'r>(repositories: impl IntoIterator<Item = &'r Repository>) -> Self {
        let mut all = Self::default();
        for repository in repositories {
            let named = repository.named();
            all.configs.extend(named.configs);
            for hooks in named.hooks {
                let is_own = hooks == repository.common.join("hooks");
                *all.hooks.entry(hooks).or_insert(true) &= is_own;
            }
            all.programs.extend(named.programs.into_iter().map(|path| (path, repository.config.clone())));
        }
        all
    }

    /// The paths that lead to these files.
    pub(super) fn targets(&self) -> BTreeSet<PathBuf> {
        let files = self.configs.iter().chain(self.programs.keys());
        let mut targets: BTreeSet<PathBuf> = files.flat_map(|path| ways(path)).collect();
        for (hooks, is_own) in &self.hooks {
            if !is_own || is_link(hooks) {
                targets.extend(ways(hooks));
            }
            let links = names_in(hooks).unwrap_or_default().into_iter().map(|name| hooks.join(name));
            targets.extend(links.filter(|path| is_link(path)).flat_map(|link| ways(&link)));
        }
        targets
    }
}

/// Configurations that have been read, with all that they include.
#[derive(Debug, Default)]
struct ReadConfigs {
    /// Included configurations, and configurations that are links.
    configs: Vec<PathBuf>,
    /// What each configuration names.
    paths: Vec<NamedPaths>,
}

/// Reads the configurations of repositories, those of each common directory once: thousands of worktrees may share it.
pub(super) struct ConfigReader {
    of_user: ReadConfigs,
    by_common: HashMap<PathBuf, Rc<ReadConfigs>>,
}

impl ConfigReader {
    pub(super) fn new() -> Self {
        let own = user_configs();
        let mut of_user = ReadConfigs::read(&own);
        // A variable or a link of the user may lead into the workspace.
        of_user.configs.extend(own);
        let template = std::env::var_os("GIT_TEMPLATE_DIR").map(OsString::into_vec);
        of_user.paths.push(NamedPaths { template, ..NamedPaths::default() });
        Self { of_user, by_common: HashMap::new() }
    }

    /// What the user's own configurations name by themselves, as that of a repository: no other one may have been found.
    pub(super) fn of_user(&self) -> Repository {
        let config = self.of_user.configs.iter().rfind(|path| path.exists());
        let config = config.cloned().unwrap_or_else(|| PathBuf::from("/etc/gitconfig"));
        let mut named = NamedByGit { configs: self.of_user.configs.clone(), ..NamedByGit::default() };
        for paths in &self.of_user.paths {
            named.add(paths, &|path| path.starts_with(b"/").then(|| resolve(Path::new("/"), path)));
        }
        Repository { top: config.clone(), common: config.clone(), config, named }
    }

    /// The repository with its working tree in `top` and its configuration in `common`.
    pub(super) fn repository(&mut self, top: PathBuf, common: PathBuf) -> Repository {
        let own = self.by_common.entry(common.clone());
        let own = Rc::clone(own.or_insert_with(|| Rc::new(ReadConfigs::read(&own_configs(&common)))));
        let mut named = NamedByGit { configs: own.configs.clone(), ..NamedByGit::default() };
        let is_hooks_named = |paths: &NamedPaths| paths.hooks.is_some();
        if !self.of_user.paths.iter().chain(&own.paths).any(is_hooks_named) {
            named.hooks.push(common.join("hooks"));
        }
        // The configuration of a bare repository may give it a working tree.
        let worktrees = own.paths.iter().filter_map(|paths| paths.worktree.as_ref());
        let worktrees = worktrees.map(|path| resolve(&common, &expand_home(path)));
        for top in [top.clone()].into_iter().chain(worktrees) {
            for paths in &self.of_user.paths {
                named.add(paths, &|path| (!path.starts_with(b"/")).then(|| resolve(&top, path)));
            }
            for paths in &own.paths {
                named.add(paths, &|path| Some(resolve(&top, path)));
            }
        }
        let config = common.join(CONFIGS[0]);
        Repository { top, common, config, named }
    }
}

impl NamedByGit {
    /// Adds what a configuration names. Conditions decide which of several values is in effect, so all of them count.
    fn add(&mut self, paths: &NamedPaths, resolved: &dyn Fn(&[u8]) -> Option<PathBuf>) {
        let resolved = |path: &Vec<u8>| resolved(&expand_home(path));
        self.programs.extend(paths.programs.iter().filter_map(resolved));
        self.hooks.extend(paths.hooks.iter().filter_map(resolved));
        for template in paths.template.iter().filter_map(resolved) {
            self.hooks.push(template.join("hooks"));
            self.configs.push(template.join(CONFIGS[0]));
        }
    }
}

impl ReadConfigs {
    fn read(first: &[PathBuf]) -> Self {
        let mut read = Self::default();
        read.configs.extend(first.iter().filter(|path| is_link(path)).cloned());
        let mut configs = first.to_vec();
        // Configurations may include each other.
        let mut seen: BTreeSet<PathBuf> = first.iter().cloned().collect();
        let max_configs = first.len() + MAX_CONFIGS;
        for _ in 0..=MAX_INCLUDES {
            let mut included = Vec::new();
            for config in &configs {
                let GuardedContent::Bytes(bytes) = content_now(config) else { continue };
                let paths = named_paths(config, &bytes);
                let parent = config.parent().unwrap_or(Path::new("/"));
                included.extend(paths.includes.iter().map(|path| resolve(parent, &expand_home(path))));
                read.paths.push(paths);
            }
            included.retain(|path| seen.len() < max_configs && seen.insert(path.clone()));
            if included.is_empty() {
                break;
            }
            read.configs.extend(included.iter().cloned());
            configs = included;
        }
        read
    }
}

/// The configurations in a common directory, and those of its worktrees, oldest first: a command can make many worktrees, but
/// none that is older than the user's.
fn own_configs(common: &Path) -> Vec<PathBuf> {
    let worktrees = common.join("worktrees");
    let names = names_in(&worktrees).unwrap_or_default();
    let mut worktrees: Vec<PathBuf> = names.into_iter().map(|name| worktrees.join(name)).collect();
    if worktrees.len() > MAX_WORKTREES_COUNT {
        worktrees.sort_by_cached_key(|path| Reverse(made_at(path)));
        worktrees.truncate(MAX_WORKTREES_COUNT);
    }
    let of_worktrees = worktrees.into_iter().map(|worktree| worktree.join(CONFIGS[1]));
    CONFIGS.iter().map(|name| common.join(name)).chain(of_worktrees).collect()
}

/// When an entry was made; an earlier time is greater.
pub(super) fn made_at(path: &Path) -> Reverse<Option<SystemTime>> {
    Reverse(std::fs::symlink_metadata(path).and_then(|meta| meta.created()).ok())
}

/// The configurations for all of the user's repositories, which may be in a workspace or name files there. Programs outside
/// may have the variables or not, so the default places count, too.
pub(super) fn user_configs() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let named = ["GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"].into_iter().filter_map(variable);
    let named = named.filter_map(|path| std::path::absolute(path).ok());
    let home = variable("HOME");
    let own = variable("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
    [PathBuf::from("/etc/gitconfig")]
        .into_iter()
        .chain(own.map(|own| own.join("git/config")))
        .chain(home.map(|home| home.join(".gitconfig")))
        .chain(named)
        .collect()
}

/// A path of a configuration with the home that it begins with: `~/x`, `~user/x`.
pub(super) fn expand_home(path: &[u8]) -> Vec<u8> {
    let expanded = || {
        let after_tilde = path.strip_prefix(b"~")?;
        let (user, rest) = after_tilde.split_at(after_tilde.iter().position(|byte| *byte == b'/')?);
        let home = if user.is_empty() { std::env::var_os("HOME")?.into_vec() } else { home_of(user)? };
        Some([home.as_slice(), rest].concat())
    };
    expanded().unwrap_or_else(|| path.to_vec())
}

/// The home of a user of this machine.
fn home_of(user: &[u8]) -> Option<Vec<u8>> {
    let users = std::fs::read("/etc/passwd").ok()?;
    let mut users = users.split(|byte| *byte == b'\n').map(|line| line.split(|byte| *byte == b':'));
    users
        .find_map(|mut fields| (fields.next() == Some(user)).then(|| fields.nth(4)).flatten())
        .map(<[u8]>::to_vec)
}
