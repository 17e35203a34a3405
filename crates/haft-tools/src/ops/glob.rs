//! Finding files by the pattern of their path, newest first.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use globset::{GlobBuilder, GlobMatcher};
use haft_tool::{Flow, ToolError, Walk, World};

/// A pattern and the directory it is matched in.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) root: PathBuf,
    matcher: GlobMatcher,
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
        let matcher = glob.map_err(|error| bad(&format!("cannot be used: {error}")))?.compile_matcher();
        let hidden = rest.starts_with('.') || rest.contains("/.");
        Ok(Self { root, matcher, hidden })
    }

    /// The files that match, newest first; those of one age by path.
    pub(crate) fn run(&self, world: &dyn World) -> Result<Vec<PathBuf>, ToolError> {
        let found = Mutex::new(Vec::new());
        let walk = Walk { root: self.root.clone(), hidden: self.hidden, ..Walk::default() };
        world.files().walk(&walk, &mut || {
            let mut mine = Batch { all: &found, mine: Vec::new() };
            Box::new(move |file| {
                let path = file.path();
                if path.strip_prefix(&self.root).is_ok_and(|rest| self.matcher.is_match(rest)) {
                    mine.mine.push((file.modified_ns(), path.to_owned()));
                }
                Flow::Continue
            })
        })?;
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        Ok(found.into_iter().map(|(_, path)| path).collect())
    }
}

/// What one thread found, given to all at its end.
struct Batch<'a> {
    all: &'a Mutex<Vec<(i128, PathBuf)>>,
    mine: Vec<(i128, PathBuf)>,
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
