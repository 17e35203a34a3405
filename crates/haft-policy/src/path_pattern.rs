//! Path patterns of rules.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use globset::{Glob, GlobMatcher};

use crate::access::path_glob;

/// A pattern of absolute paths. It means what is below a path that matches, too.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    glob: Glob,
    /// Compiled when a single rule is compared; all rules together have a set.
    matcher: OnceLock<GlobMatcher>,
}

/// How far a pattern without a slash reaches, such as `*.env`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BareName {
    /// Files of the workspace, so that a rule does not allow more than meant.
    InWorkspace,
    /// Files anywhere.
    Anywhere,
}

impl PathPattern {
    /// Reads `//abs`, `~/home`, `/from-the-workspace`, `a/b` and `../a` from the workspace, `*.env` at any depth.
    pub(crate) fn parse(pattern: &str, workspace: &Path, bare: BareName) -> Result<Self, String> {
        let anchored =
            |root: &Path, rest: &str| format!("{}/{rest}", globset::escape(&root.to_string_lossy()));
        let whole = if let Some(rest) = pattern.strip_prefix("//") {
            format!("/{rest}")
        } else if let Some(rest) = pattern.strip_prefix("~/").or((pattern == "~").then_some("")) {
            let home = std::env::var_os("HOME").map(PathBuf::from).ok_or("needs $HOME, which is not set")?;
            anchored(&home, rest)
        } else if let Some(rest) = pattern.strip_prefix('/').or_else(|| pattern.strip_prefix("./")) {
            anchored(workspace, rest)
        } else if pattern.trim_end_matches('/').contains('/') || matches!(pattern, "." | "..") {
            anchored(workspace, pattern)
        } else if bare == BareName::InWorkspace {
            anchored(workspace, &format!("**/{pattern}"))
        } else {
            format!("**/{pattern}")
        };
        Self::of_glob(&without_dots(&whole)?).map_err(|error| format!("is no path pattern: {error}"))
    }

    /// The pattern of one path.
    pub(crate) fn of_path(path: &Path) -> Result<Self, String> {
        Self::of_glob(&globset::escape(&path.to_string_lossy()))
    }

    fn of_glob(glob: &str) -> Result<Self, String> {
        Ok(Self { glob: path_glob(glob)?, matcher: OnceLock::new() })
    }

    pub(crate) fn glob(&self) -> &Glob {
        &self.glob
    }

    /// Whether it means `path`.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        let matcher = self.matcher.get_or_init(|| self.glob.compile_matcher());
        path.ancestors().any(|path| matcher.is_match(path))
    }
}

/// The pattern without `.`, `..` and slashes at its end: the paths that it is compared with have none.
fn without_dots(pattern: &str) -> Result<String, String> {
    let mut parts = Vec::new();
    for part in pattern.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.pop() {
                Some(above) if above != "**" => {}
                Some(_) => return Err("has `..` after `**`, which has no meaning".to_owned()),
                None => {}
            },
            part => parts.push(part),
        }
    }
    let is_absolute = pattern.starts_with('/');
    Ok(format!("{}{}", if is_absolute { "/" } else { "" }, parts.join("/")))
}
