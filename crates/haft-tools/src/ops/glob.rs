//! Finding files by the pattern of their path, newest first.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use haft_tool::{Text, ToolError, WalkRequest, World, lock};

/// A pattern and the directory it is matched in.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) root: PathBuf,
    /// A set of one, because only a set knows the short ways to match common patterns; `None` matches everything.
    matcher: Option<GlobSet>,
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
        let matcher = match rest {
            "**" | "**/*" => None,
            _ => Some(
                GlobSetBuilder::new()
                    .add(glob)
                    .build()
                    .map_err(|error| bad(&format!("cannot be used: {error}")))?,
            ),
        };
        let hidden = rest.starts_with('.') || rest.contains("/.");
        Ok(Self { root, matcher, hidden })
    }

    /// The files that match, newest first; those of one age by path.
    pub(crate) fn run(&self, world: &dyn World) -> Result<Files, ToolError> {
        let batches = Mutex::new(Vec::new());
        let walk = WalkRequest { root: self.root.clone(), hidden: self.hidden, ..WalkRequest::default() };
        let below = self.root.as_os_str().len() + usize::from(self.root.as_os_str() != "/");
        world.files().walk(&walk, &mut || {
            let mut handing = Handing { to: &batches, batch: Batch::default() };
            Box::new(move |file| {
                let path = file.path().as_os_str().as_bytes();
                let matches = |rest: &[u8]| {
                    self.matcher.as_ref().is_none_or(|matcher| matcher.is_match(OsStr::from_bytes(rest)))
                };
                if path.get(below..).is_some_and(matches) {
                    handing.batch.push(file.modified_ns(), path);
                }
                ControlFlow::Continue(())
            })
        })?;
        Ok(Files { batches: batches.into_inner().unwrap_or_else(PoisonError::into_inner) })
    }
}

/// What one thread found: all paths in one piece, because a thousand small ones cost more than the search.
#[derive(Default)]
struct Batch {
    paths: Vec<u8>,
    found: Vec<(Reverse<i64>, Range<usize>)>,
}

impl Batch {
    fn push(&mut self, modified: i64, path: &[u8]) {
        let start = self.paths.len();
        self.paths.extend_from_slice(path);
        self.found.push((Reverse(modified), start..self.paths.len()));
    }
}

/// Gives a thread's batch to all when the thread is done.
struct Handing<'a> {
    to: &'a Mutex<Vec<Batch>>,
    batch: Batch,
}

impl Drop for Handing<'_> {
    fn drop(&mut self) {
        lock(self.to).push(std::mem::take(&mut self.batch));
    }
}

/// Files that match, not yet in order.
pub(crate) struct Files {
    batches: Vec<Batch>,
}

impl Files {
    pub(crate) fn count(&self) -> usize {
        self.batches.iter().map(|batch| batch.found.len()).sum()
    }

    /// A path per line, newest first. Only as many as `enough` bytes take are put in order; the rest is counted.
    pub(crate) fn into_text(self, enough: usize) -> Text {
        let mut found: Vec<(Reverse<i64>, &[u8])> = Vec::with_capacity(self.count());
        for batch in &self.batches {
            found
                .extend(batch.found.iter().map(|(modified, range)| (*modified, &batch.paths[range.clone()])));
        }
        let shortest = found.iter().map(|(_, path)| path.len() + 1).min().unwrap_or(1);
        let most = enough / shortest + 1;
        if most < found.len() {
            found.select_nth_unstable(most);
        }
        let shown = found.len().min(most);
        found[..shown].sort_unstable();
        let mut head = String::with_capacity(enough.min(shown * 80));
        let mut taken = 0;
        while taken < shown && head.len() < enough {
            head.push_str(&String::from_utf8_lossy(found[taken].1));
            head.push('\n');
            taken += 1;
        }
        let missing_bytes = found[taken..].iter().map(|(_, path)| path.len() as u64 + 1).sum();
        Text { head, missing_bytes, tail: String::new() }
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
        let matches = |pattern, path| search(pattern).matcher.is_none_or(|matcher| matcher.is_match(path));
        assert!(matches("**/*.rs", "a.rs") && matches("**/*.rs", "a/b/c.rs") && matches("**/*", "a/b"));
        assert!(!matches("*.rs", "a/b.rs") && !matches("*", "a/b"));
        assert!(search("**/.github/*.yml").hidden && !search("**/*.yml").hidden);
        let error = Search::new(Path::new("/w"), "../x/*").unwrap_err();
        assert_eq!(error.message, "pattern: \"../x/*\" leads upwards; name the directory in `path` instead");
    }
}
