//! Finding files by a pattern of their path, newest first.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use globset::{GlobBuilder, GlobSet};
use haft_tool::{Text, ToolError, WalkRequest, World, check_glob};

/// A pattern and the directory it is matched in.
#[derive(Debug)]
pub(crate) struct GlobQuery {
    /// Where the walk starts: below the leading part of the pattern that has no wildcard.
    pub(crate) root: PathBuf,
    /// A set of one pattern, because only sets are optimized for common patterns.
    matcher: GlobSet,
}

impl GlobQuery {
    pub(crate) fn new(root: &Path, pattern: &str) -> Result<Self, ToolError> {
        let invalid = |why: &str| ToolError::invalid_arguments(format!("pattern: {pattern:?} {why}"));
        if pattern.is_empty() || pattern.contains('\0') {
            return Err(invalid("is not a pattern"));
        }
        let (mut root, mut rest) = match pattern.strip_prefix('/') {
            Some(rest) => (PathBuf::from("/"), rest),
            None => (root.to_owned(), pattern.strip_prefix("./").unwrap_or(pattern)),
        };
        if rest.split('/').any(|part| part == "..") {
            return Err(invalid("leads upwards; name the directory in `path` instead"));
        }
        while let Some((first, more)) = rest.split_once('/')
            && !first.contains(['*', '?', '[', '{', '\\'])
        {
            root.push(first);
            rest = more;
        }
        check_glob(rest).map_err(|why| invalid(&format!("cannot be used: {why}")))?;
        let glob = GlobBuilder::new(rest).literal_separator(true).build();
        let matcher = glob.and_then(|glob| GlobSet::builder().add(glob).build());
        let matcher = matcher.map_err(|error| invalid(&format!("cannot be used: {error}")))?;
        Ok(Self { root, matcher })
    }

    /// The files that match, newest first; files of the same time by path.
    pub(crate) fn run(&self, world: &dyn World) -> Result<Vec<PathBuf>, ToolError> {
        let (sender, receiver) = mpsc::channel();
        // Bytes instead of `Path`'s methods, which parse both paths into components for every file.
        let root = self.root.as_os_str().as_bytes();
        let relative_start = root.len() + usize::from(!root.ends_with(b"/"));
        let walk = WalkRequest { root: self.root.clone(), hidden: true, ..WalkRequest::default() };
        world.files().walk(&walk, &mut || {
            let sender = sender.clone();
            Box::new(move |file| {
                let path = file.path().as_os_str().as_bytes();
                let relative = path.get(relative_start..).unwrap_or(path);
                if self.matcher.is_match(OsStr::from_bytes(relative)) {
                    // Cannot fail: the receiver lives longer than the walk.
                    let _ = sender.send((Reverse(file.modified_ns()), file.path().to_owned()));
                }
                ControlFlow::Continue(())
            })
        })?;
        drop(sender);
        let mut files: Vec<_> = receiver.into_iter().collect();
        files.sort_unstable_by(|(time, path), (other_time, other)| {
            time.cmp(other_time).then_with(|| path.as_os_str().cmp(other.as_os_str()))
        });
        Ok(files.into_iter().map(|(_, path)| path).collect())
    }
}

/// One path per line; lines after about `max_bytes` are only counted.
pub(crate) fn path_lines(paths: &[PathBuf], max_bytes: usize) -> Text {
    let mut text = Text::default();
    for path in paths {
        if text.head.len() < max_bytes {
            text.head.push_str(&path.to_string_lossy());
            text.head.push('\n');
        } else {
            text.missing_bytes += path.as_os_str().as_bytes().len() as u64 + 1;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walk_starts_below_the_literal_part_of_the_pattern() {
        let query = |pattern| GlobQuery::new(Path::new("/w"), pattern).unwrap();
        assert_eq!(query("src/**/*.rs").root, Path::new("/w/src"));
        assert_eq!(query("/etc/a/*.conf").root, Path::new("/etc/a"));
        assert_eq!(query("**/*.rs").root, Path::new("/w"));
        assert_eq!(query("./a.txt").root, Path::new("/w"));
        let matches = |pattern, path| query(pattern).matcher.is_match(path);
        assert!(matches("**/*.rs", "a.rs") && matches("**/*.rs", "a/b/c.rs") && matches("**/*", "a/b"));
        assert!(!matches("*.rs", "a/b.rs") && !matches("*", "a/b"));
        let error = GlobQuery::new(Path::new("/w"), "../x/*").unwrap_err();
        assert_eq!(error.message, "pattern: \"../x/*\" leads upwards; name the directory in `path` instead");
    }
}
