//! Which entries a walk skips: ignore files, file types, globs and hidden names, with ripgrep's precedence.
//!
//! The rules are those of the `ignore` crate. Only reading differs: ignore files are read from open directory handles, and only
//! if the directory's listing shows them.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use haft_tool::{ToolError, WalkRequest, check_glob};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};

use crate::read_regular;

/// The names of ignore files, the strongest first.
const IGNORE_FILES: [&str; 3] = [".rgignore", ".ignore", ".gitignore"];
/// Larger ignore files are not read.
pub(crate) const MAX_IGNORE_FILE_BYTES: u64 = 4 << 20;
const GIT_EXCLUDE: &str = ".git/info/exclude";
const RULE_SET_COUNT: usize = IGNORE_FILES.len() + 1;
/// From this index on, the rule sets of a directory are git's, which count only in a repository.
const GIT_RULES_OFFSET: usize = 2;

/// The directories of version control systems, which are visited only if a walk starts in one.
const VCS_DIRS: [&str; 6] = [".git", ".hg", ".svn", ".bzr", ".jj", ".sl"];

/// The ignore rules of one directory, on top of those of its parents.
#[derive(Debug)]
pub(crate) struct DirRules {
    parent: Option<Arc<Self>>,
    /// In the order of [`IGNORE_FILES`], then [`GIT_EXCLUDE`].
    rules: [Option<Gitignore>; RULE_SET_COUNT],
    /// Whether a repository starts here.
    is_repository: bool,
    /// Whether this directory or one above it has rules.
    any: bool,
    /// Whether this directory lies in a repository.
    in_repository: bool,
}

impl DirRules {
    /// The rules of a directory; `None` if it adds none. `has` tells which entries it has, `read` reads one of them.
    pub(crate) fn new(
        parent: Option<&Arc<Self>>,
        directory: &Path,
        has: impl Fn(&str) -> bool,
        read: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let is_repository = has(".git") || has(".jj");
        if !is_repository && !IGNORE_FILES.iter().any(|name| has(name)) {
            return None;
        }
        let load = |name: &str, entry: &str| {
            has(entry).then(|| read(name)).flatten().and_then(|bytes| parse(directory, &bytes))
        };
        let [rg, plain, git] = IGNORE_FILES.map(|name| load(name, name));
        let rules = [rg, plain, git, load(GIT_EXCLUDE, ".git")];
        let any = rules.iter().any(Option::is_some) || parent.is_some_and(|parent| parent.any);
        let in_repository = is_repository || parent.is_some_and(|parent| parent.in_repository);
        Some(Self { parent: parent.map(Arc::clone), rules, is_repository, any, in_repository })
    }

    /// The rules of all directories above `root`, which apply below it too.
    pub(crate) fn above(root: &Path) -> Option<Arc<Self>> {
        let mut rules = None;
        let above: Vec<&Path> = root.ancestors().skip(1).collect();
        for directory in above.into_iter().rev() {
            let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
            let read = |name: &str| read_regular(&directory.join(name), MAX_IGNORE_FILE_BYTES).ok();
            if let Some(own) = Self::new(rules.as_ref(), directory, has, read) {
                rules = Some(Arc::new(own));
            }
        }
        rules
    }

    fn matched(&self, path: &Path, is_dir: bool, global: &LazyLock<Gitignore>) -> RuleMatch {
        let mut found = [const { RuleMatch::None }; RULE_SET_COUNT];
        let mut above_repository = false;
        let mut directory = Some(self);
        while let Some(here) = directory {
            for (index, rules) in here.rules.iter().enumerate() {
                let is_git = index >= GIT_RULES_OFFSET;
                if matches!(found[index], RuleMatch::None)
                    && !(is_git && (above_repository || !self.in_repository))
                    && let Some(rules) = rules
                {
                    found[index] = rules.matched(path, is_dir).into();
                }
            }
            above_repository |= here.is_repository;
            directory = here.parent.as_deref();
        }
        let own = found.into_iter().find(|found| !matches!(found, RuleMatch::None));
        own.unwrap_or_else(|| {
            if self.in_repository { global.matched(path, is_dir).into() } else { RuleMatch::None }
        })
    }
}

fn parse(directory: &Path, bytes: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(directory);
    let text = String::from_utf8_lossy(bytes);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        // An invalid line ignores nothing, as with git.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

#[derive(Debug, Clone, Copy)]
enum RuleMatch {
    None,
    Skip,
    Take,
}

impl<T> From<Match<T>> for RuleMatch {
    fn from(matched: Match<T>) -> Self {
        match matched {
            Match::None => Self::None,
            Match::Ignore(_) => Self::Skip,
            Match::Whitelist(_) => Self::Take,
        }
    }
}

/// The filter of a whole walk.
pub(crate) struct WalkFilter {
    globs: Override,
    types: Types,
    hidden: bool,
    /// The user's rules for all repositories, read when the first repository is met.
    global: LazyLock<Gitignore>,
}

impl WalkFilter {
    pub(crate) fn new(request: &WalkRequest, base: &Path) -> Result<Self, ToolError> {
        let mut globs = OverrideBuilder::new(base);
        for glob in &request.globs {
            check_glob(glob)
                .map_err(|why| ToolError::invalid_arguments(format!("glob {glob:.100?}: {why}")))?;
            globs.add(glob).map_err(|error| invalid("glob", glob, &error))?;
        }
        let globs = globs.build().map_err(|error| invalid("glob", &request.globs.join(", "), &error))?;
        let mut types = TypesBuilder::new();
        if let Some(name) = &request.file_type {
            types.add_defaults();
            types.select(name);
        }
        let types = types
            .build()
            .map_err(|error| invalid("type", request.file_type.as_deref().unwrap_or_default(), &error))?;
        Ok(Self { globs, types, hidden: request.hidden, global: LazyLock::new(|| Gitignore::global().0) })
    }

    /// Whether the walk takes the entry `name` at `path`.
    pub(crate) fn takes(&self, rules: Option<&DirRules>, path: &Path, name: &OsStr, is_dir: bool) -> bool {
        if !self.globs.is_empty() {
            match self.globs.matched(path, is_dir).into() {
                RuleMatch::Skip => return false,
                RuleMatch::Take => return true,
                RuleMatch::None => {}
            }
        }
        let mut taken = false;
        if let Some(rules) =
            rules.filter(|rules| rules.any || (rules.in_repository && !self.global.is_empty()))
        {
            match rules.matched(path, is_dir, &self.global) {
                RuleMatch::Skip => return false,
                RuleMatch::Take => taken = true,
                RuleMatch::None => {}
            }
        }
        if !self.types.is_empty() {
            match self.types.matched(path, is_dir).into() {
                RuleMatch::Skip => return false,
                RuleMatch::Take => taken = true,
                RuleMatch::None => {}
            }
        }
        taken
            || !name.as_encoded_bytes().starts_with(b".")
            || self.hidden && !VCS_DIRS.iter().any(|dir| name == *dir)
    }
}

fn invalid(field: &str, value: &str, error: &ignore::Error) -> ToolError {
    ToolError::invalid_arguments(format!("{field}: {value:?} cannot be used: {error}"))
}
