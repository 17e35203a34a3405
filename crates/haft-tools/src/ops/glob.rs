//! Finding files by the pattern of their path, newest first.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use haft_tool::{Flow, Text, ToolError, Walk, World};

/// A pattern and the directory it is matched in.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) root: PathBuf,
    /// A set of one, because only a set knows the short ways to match common patterns.
    matcher: GlobSet,
    hidden: bool,
}

impl Search {
    /// The search for `pattern` in `root`; the walk starts below the part of the pattern that has no wildcard.
    pub(crate) fn new(root: &Path, pattern: &str) -> Result<Self, ToolError> {
        let bad = |why: &str| ToolError::invalid_arguments(format!("pattern: {pattern:?} {why}"));
        if pattern.is_empty() || pattern.contains('\0') {
            return Err(bad("is no pattern"));
        }
        let (mut root, mut rest) = match pattern.strip_prefix('/') {
            Some(rest) => (PathBuf::from("/"), rest),
            None => (root.to_owned(), pattern.strip_prefix("./").unwrap_or(pattern)),
        };
        if rest.split('/').any(|part| part == "..") {
            return Err(bad("leads upwards; name the directory in `path` instead"));
        }
        while let Some((first, more)) = rest.split_once('/')
            && !first.contains(['*', '?', '[', '{', '\\'])
        {
            root.push(first);
            rest = more;
        }
        let glob = GlobBuilder::new(rest).literal_separator(true).build();
        let glob = glob.map_err(|error| bad(&format!("cannot be used: {error}")))?;
        let matcher = GlobSetBuilder::new().add(glob).build();
        let matcher = matcher.map_err(|error| bad(&format!("cannot be used: {error}")))?;
        let hidden = rest.starts_with('.') || rest.contains("/.");
        Ok(Self { root, matcher, hidden })
    }

    /// The files that match, newest first; those of one age by path.
    pub(crate) fn run(&self, world: &dyn World) -> Result<Files, ToolError> {
        let found = Mutex::new(Vec::new());
        let walk = Walk { root: self.root.clone(), hidden: self.hidden, ..Walk::default() };
        let below = self.root.as_os_str().len() + usize::from(self.root.as_os_str() != "/");
        world.files().walk(&walk, &mut || {
            let mut batch = Batch { all: &found, mine: Vec::new() };
            Box::new(move |file| {
                let path = file.path().as_os_str().as_bytes();
                if path.get(below..).is_some_and(|rest| self.matcher.is_match(OsStr::from_bytes(rest))) {
                    batch.mine.push((Reverse(file.modified_ns()), path.into()));
                }
                Flow::Continue
            })
        })?;
        Ok(Files { found: found.into_inner().unwrap_or_else(PoisonError::into_inner) })
    }
}

/// A file's age and path; they sort newest first.
type Aged = (Reverse<i64>, Box<[u8]>);

/// Files that match, not yet in order.
pub(crate) struct Files {
    found: Vec<Aged>,
}

impl Files {
    pub(crate) fn count(&self) -> usize {
        self.found.len()
    }

    /// A path per line, newest first. Only as many as `enough` bytes take are put in order; the rest is counted.
    pub(crate) fn into_text(mut self, enough: usize) -> Text {
        let shortest = self.found.iter().map(|(_, path)| path.len() + 1).min().unwrap_or(1);
        let most = enough / shortest + 1;
        if most < self.found.len() {
            self.found.select_nth_unstable(most);
        }
        let shown = self.found.len().min(most);
        self.found[..shown].sort_unstable();
        let mut head = String::with_capacity(enough.min(shown * 80));
        let mut taken = 0;
        for (_, path) in &self.found[..shown] {
            if head.len() >= enough {
                break;
            }
            head.push_str(&String::from_utf8_lossy(path));
            head.push('\n');
            taken += 1;
        }
        let missing_bytes = self.found[taken..].iter().map(|(_, path)| path.len() as u64 + 1).sum();
        Text { head, missing_bytes, tail: String::new() }
    }
}

/// What one thread found, given to all at its end.
struct Batch<'a> {
    all: &'a Mutex<Vec<Aged>>,
    mine: Vec<Aged>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.mine);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_starts_below_the_plain_part_of_a_pattern() {
        let search = |pattern| Search::new(Path::new("/w"), pattern).unwrap();
        assert_eq!(search("src/**/*.rs").root, Path::new("/w/src"));
        assert_eq!(search("/etc/a/*.conf").root, Path::new("/etc/a"));
        assert_eq!(search("**/*.rs").root, Path::new("/w"));
        assert_eq!(search("./a.txt").root, Path::new("/w"));
        assert!(search("**/*.rs").matcher.is_match("a.rs") && search("**/*.rs").matcher.is_match("a/b/c.rs"));
        assert!(!search("*.rs").matcher.is_match("a/b.rs"));
        assert!(search("**/.github/*.yml").hidden && !search("**/*.yml").hidden);
        let error = Search::new(Path::new("/w"), "../x/*").unwrap_err();
        assert_eq!(error.message, "pattern: \"../x/*\" leads upwards; name the directory in `path` instead");
    }
}
