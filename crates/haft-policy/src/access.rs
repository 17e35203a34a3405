//! Whether a call may read or write the file that a path led to. The World asks this of what it has opened, so that neither a
//! link nor a race makes a difference.

use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use globset::{Glob, GlobSet, GlobSetBuilder};
use haft_tool::{Scope, check_glob, lies_in, lock};

use crate::guard::guard_in;
use crate::secret::Secrets;

/// Why a call in this scope may not read what is at `path`, which has no links; `None` if it may.
pub fn read_refusal(scope: &Scope, path: &Path) -> Option<String> {
    if is_unreadable_secret(scope, path) {
        return Some(format!("{}; a call has to name the file itself", secret_reason(path)));
    }
    PathGlobs::unreadable(scope).refusal(path)
}

/// Why a call in this scope may not write what is at `path`, which has no links; `None` if it may.
pub fn write_refusal(scope: &Scope, path: &Path) -> Option<String> {
    if let Some(guard) = guard_in(scope, path) {
        return Some(format!("{}: {}; a call has to name the file itself", path.display(), guard.reason()));
    }
    PathGlobs::unwritable(scope).refusal(path)
}

pub(crate) fn secret_reason(path: &Path) -> String {
    format!("{} may hold secrets", path.display())
}

/// Whether `path` is a secret that the scope does not open.
pub(crate) fn is_unreadable_secret(scope: &Scope, path: &Path) -> bool {
    !scope.readable.iter().any(|readable| lies_in(path, readable)) && Secrets::of(scope).contain(path)
}

/// The paths that rules keep a call from touching.
#[derive(Debug, Clone)]
pub enum PathGlobs {
    /// No rule does.
    None,
    /// Those that match.
    Matching(Arc<GlobSet>),
    /// Every path: the globs cannot be compiled together.
    All,
}

/// How many compiled lists are kept: those of a few sessions, for reading and for writing.
const MAX_KEPT_LISTS: usize = 8;

/// The lists that were compiled last. The same rules hold for one call after the other, and compiling them takes longer than reading
/// a file.
static COMPILED: Mutex<VecDeque<(Vec<String>, PathGlobs)>> = Mutex::new(VecDeque::new());

impl PathGlobs {
    /// The paths that a call in this scope may not read.
    pub fn unreadable(scope: &Scope) -> Self {
        Self::of(&scope.unreadable)
    }

    /// The paths that a call in this scope may not write.
    pub fn unwritable(scope: &Scope) -> Self {
        Self::of(&scope.unwritable)
    }

    /// Whether no rule keeps a call from touching a path.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    fn of(globs: &[String]) -> Self {
        if globs.is_empty() {
            return Self::None;
        }
        if let Some((_, known)) = lock(&COMPILED).iter().find(|(list, _)| list == globs) {
            return known.clone();
        }
        let compiled = Self::compile(globs);
        let mut kept = lock(&COMPILED);
        kept.push_front((globs.to_vec(), compiled.clone()));
        kept.truncate(MAX_KEPT_LISTS);
        compiled
    }

    fn compile(globs: &[String]) -> Self {
        let compile = || {
            let mut set = GlobSetBuilder::new();
            for glob in globs {
                set.add(path_glob(glob)?);
            }
            set.build().map(Arc::new).map_err(|error| error.to_string())
        };
        // Each was compiled when its rule was read, but all of them together can be too large. A guard that fails blocks.
        compile().map_or(Self::All, Self::Matching)
    }

    /// Whether `path` or a directory above it is one of them.
    pub fn contain(&self, path: &Path) -> bool {
        match self {
            Self::None => false,
            Self::Matching(set) => path.ancestors().any(|path| set.is_match(path)),
            Self::All => true,
        }
    }

    fn refusal(&self, path: &Path) -> Option<String> {
        self.contain(path).then(|| format!("{}: a rule denies it", path.display()))
    }
}

/// The part of a glob of absolute paths before its first wildcard, by whole names, and whether the glob means just that path or
/// what is below it.
pub fn glob_prefix(glob: &str) -> (PathBuf, bool) {
    let mut prefix = PathBuf::from("/");
    let mut parts = glob.split('/').filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        // `escape` of `globset` puts special characters into brackets.
        let mut literal = String::new();
        let mut rest = part.chars();
        while let Some(c) = rest.next() {
            match c {
                '[' => match (rest.next(), rest.next()) {
                    (Some(escaped), Some(']')) => literal.push(escaped),
                    _ => return (prefix, false),
                },
                '*' | '?' | '{' | '\\' => return (prefix, part == "**" && parts.peek().is_none()),
                c => literal.push(c),
            }
        }
        prefix.push(literal);
    }
    (prefix, true)
}

/// The same glob with another path in place of its prefix.
pub fn glob_at(glob: &str, path: &Path) -> String {
    let depth = glob_prefix(glob).0.components().filter(|part| matches!(part, Component::Normal(_))).count();
    // What is no UTF-8 cannot be written in a glob.
    let mut moved = globset::escape(&path.to_string_lossy()).replace(char::REPLACEMENT_CHARACTER, "*");
    for part in glob.split('/').filter(|part| !part.is_empty()).skip(depth) {
        if !moved.ends_with('/') {
            moved.push('/');
        }
        moved.push_str(part);
    }
    moved
}

/// A glob of absolute paths, as rules use it.
pub(crate) fn path_glob(glob: &str) -> Result<Glob, String> {
    check_glob(glob)?;
    globset::GlobBuilder::new(glob).literal_separator(true).build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_that_cannot_be_compiled_match_every_path() {
        let globs =
            |globs: &[&str]| PathGlobs::of(&globs.iter().map(|&glob| glob.to_owned()).collect::<Vec<_>>());
        assert!(!globs(&[]).contain(Path::new("/a")));
        assert!(globs(&["/a/**"]).contain(Path::new("/a/b")) && !globs(&["/a/**"]).contain(Path::new("/b")));
        assert!(globs(&["/a/**", "["]).contain(Path::new("/b")));
    }

    #[test]
    fn the_prefix_of_a_glob_ends_before_its_first_wildcard() {
        for (glob, prefix, is_whole) in [
            ("/w/a.txt", "/w/a.txt", true),
            ("/w/secret/**", "/w/secret", true),
            ("/w/[*]/[[]x", "/w/*/[x", true),
            ("/w/[ab]/x", "/w", false),
            ("/w/a*/**", "/w", false),
            ("/w/**/x", "/w", false),
            ("**/.env", "/", false),
            ("**", "/", true),
        ] {
            assert_eq!(glob_prefix(glob), (PathBuf::from(prefix), is_whole), "{glob}");
        }
    }

    #[test]
    fn a_glob_is_moved_with_its_prefix() {
        for (glob, path, moved) in [
            ("/w/a.txt", "/r/b", "/r/b"),
            ("/w/secret/**", "/r[1]", "/r[[]1[]]/**"),
            ("/w/[*]/x*/y", "/r", "/r/x*/y"),
            ("/**/x", "/", "/**/x"),
            ("", "/r/b", "/r/b"),
        ] {
            assert_eq!(glob_at(glob, Path::new(path)), moved, "{glob}");
        }
    }
}
