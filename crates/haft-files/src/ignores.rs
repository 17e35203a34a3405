//! Which entries a walk passes over: ignore files, types, globs and hidden names, with ripgrep's precedence.
//!
//! The rules are ripgrep's own (the `ignore` crate); only who reads the files differs: they come from held directory
//! handles, and a directory is asked for them only if its listing shows that it has them.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use haft_tool::{ToolError, WalkRequest};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};

/// The names of files that hold rules, the strongest first.
const RULE_FILES: [&str; 3] = [".rgignore", ".ignore", ".gitignore"];

/// The rules of one directory, on top of those of its parents.
#[derive(Debug)]
pub(super) struct Level {
    parent: Option<Arc<Self>>,
    /// In the order of [`RULE_FILES`], then `.git/info/exclude`.
    rules: [Option<Gitignore>; 4],
    /// Whether a repository starts here.
    repository: bool,
    /// Whether this level or one above has rules at all.
    any: bool,
    /// Whether this level or one above lies in a repository; outside of one, git's rules do not count.
    in_repository: bool,
}

impl Level {
    /// The level of a directory; `read` reads one of its files, `has` says which there are.
    pub(super) fn new(
        parent: Option<&Arc<Self>>,
        directory: &Path,
        has: impl Fn(&str) -> bool,
        read: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let repository = has(".git") || has(".jj");
        if !repository && !RULE_FILES.iter().any(|name| has(name)) {
            return None;
        }
        let rules = |name: &str, listed: &str| {
            has(listed).then(|| read(name)).flatten().and_then(|bytes| parse(directory, &bytes))
        };
        let own = [
            rules(RULE_FILES[0], RULE_FILES[0]),
            rules(RULE_FILES[1], RULE_FILES[1]),
            rules(RULE_FILES[2], RULE_FILES[2]),
            rules(".git/info/exclude", ".git"),
        ];
        let any = own.iter().any(Option::is_some) || parent.is_some_and(|parent| parent.any);
        let in_repository = repository || parent.is_some_and(|parent| parent.in_repository);
        Some(Self { parent: parent.map(Arc::clone), rules: own, repository, any, in_repository })
    }

    /// The levels of all directories above `root`, whose rules count below it too.
    pub(super) fn above(root: &Path) -> Option<Arc<Self>> {
        let mut level = None;
        let above: Vec<&Path> = root.ancestors().skip(1).collect();
        for directory in above.into_iter().rev() {
            let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
            let read = |name: &str| std::fs::read(directory.join(name)).ok();
            if let Some(own) = Self::new(level.as_ref(), directory, has, read) {
                level = Some(Arc::new(own));
            }
        }
        level
    }

    fn matched(&self, path: &Path, is_dir: bool, global: &LazyLock<Gitignore>) -> Verdict {
        let mut found = [const { Verdict::None }; 4];
        let mut beyond = false;
        let mut level = Some(self);
        while let Some(here) = level {
            for (at, rules) in here.rules.iter().enumerate() {
                let git = at >= 2;
                if matches!(found[at], Verdict::None)
                    && !(git && (beyond || !self.in_repository))
                    && let Some(rules) = rules
                {
                    found[at] = rules.matched(path, is_dir).into();
                }
            }
            beyond |= here.repository;
            level = here.parent.as_deref();
        }
        let own = found.into_iter().find(|verdict| !matches!(verdict, Verdict::None));
        own.unwrap_or_else(|| {
            if self.in_repository { global.matched(path, is_dir).into() } else { Verdict::None }
        })
    }
}

fn parse(directory: &Path, bytes: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(directory);
    let text = String::from_utf8_lossy(bytes);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        // A line that cannot be understood ignores nothing, as with git.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

#[derive(Debug, Clone, Copy)]
enum Verdict {
    None,
    Skip,
    Take,
}

impl<T> From<Match<T>> for Verdict {
    fn from(matched: Match<T>) -> Self {
        match matched {
            Match::None => Self::None,
            Match::Ignore(_) => Self::Skip,
            Match::Whitelist(_) => Self::Take,
        }
    }
}

/// What a whole walk goes by.
pub(super) struct Filter {
    globs: Override,
    types: Types,
    hidden: bool,
    /// The user's own rules for all repositories, read when a repository is met.
    global: LazyLock<Gitignore>,
}

impl Filter {
    pub(super) fn new(walk: &WalkRequest, base: &Path) -> Result<Self, ToolError> {
        let mut globs = OverrideBuilder::new(base);
        for glob in &walk.globs {
            globs.add(glob).map_err(|error| bad("glob", glob, &error))?;
        }
        let globs = globs.build().map_err(|error| bad("glob", &walk.globs.join(", "), &error))?;
        let mut types = TypesBuilder::new();
        if let Some(name) = &walk.file_type {
            types.add_defaults();
            types.select(name);
        }
        let types = types
            .build()
            .map_err(|error| bad("type", walk.file_type.as_deref().unwrap_or_default(), &error))?;
        Ok(Self { globs, types, hidden: walk.hidden, global: LazyLock::new(|| Gitignore::global().0) })
    }

    /// Whether the walk takes the entry `name` at `path`.
    pub(super) fn takes(&self, level: Option<&Level>, path: &Path, name: &OsStr, is_dir: bool) -> bool {
        if !self.globs.is_empty() {
            match self.globs.matched(path, is_dir).into() {
                Verdict::Skip => return false,
                Verdict::Take => return true,
                Verdict::None => {}
            }
        }
        let mut taken = false;
        if let Some(level) =
            level.filter(|level| level.any || (level.in_repository && !self.global.is_empty()))
        {
            match level.matched(path, is_dir, &self.global) {
                Verdict::Skip => return false,
                Verdict::Take => taken = true,
                Verdict::None => {}
            }
        }
        if !self.types.is_empty() {
            match self.types.matched(path, is_dir).into() {
                Verdict::Skip => return false,
                Verdict::Take => taken = true,
                Verdict::None => {}
            }
        }
        taken || self.hidden || !name.as_encoded_bytes().starts_with(b".")
    }
}

fn bad(field: &str, value: &str, error: &ignore::Error) -> ToolError {
    ToolError::invalid_arguments(format!("{field}: {value:?} cannot be used: {error}"))
}
