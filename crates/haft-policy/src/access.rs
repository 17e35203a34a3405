//! Whether a call may read or write the file that a path led to. The World asks this of what it has opened, so that neither a
//! link nor a race makes a difference.

use std::path::Path;

use globset::{Glob, GlobSet, GlobSetBuilder};
use haft_tool::{Scope, lies_in};

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
    PathGlobs::of(&scope.unwritable).refusal(path)
}

pub(crate) fn secret_reason(path: &Path) -> String {
    format!("{} may hold secrets", path.display())
}

/// Whether `path` is a secret that the scope does not open.
pub(crate) fn is_unreadable_secret(scope: &Scope, path: &Path) -> bool {
    !scope.readable.iter().any(|readable| lies_in(path, readable)) && Secrets::of(scope).contain(path)
}

/// The paths that rules keep a call from touching.
#[derive(Debug, Default)]
pub struct PathGlobs(Option<GlobSet>);

impl PathGlobs {
    /// The paths that a call in this scope may not read.
    pub fn unreadable(scope: &Scope) -> Self {
        Self::of(&scope.unreadable)
    }

    fn of(globs: &[String]) -> Self {
        if globs.is_empty() {
            return Self(None);
        }
        let mut set = GlobSetBuilder::new();
        // Each was compiled when its rule was read.
        for glob in globs.iter().filter_map(|glob| path_glob(glob).ok()) {
            set.add(glob);
        }
        Self(set.build().ok())
    }

    /// Whether `path` or a directory above it is one of them.
    pub fn contain(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|set| path.ancestors().any(|path| set.is_match(path)))
    }

    fn refusal(&self, path: &Path) -> Option<String> {
        self.contain(path).then(|| format!("{}: a rule denies it", path.display()))
    }
}

/// A glob of absolute paths, as rules use it.
pub(crate) fn path_glob(glob: &str) -> Result<Glob, globset::Error> {
    globset::GlobBuilder::new(glob).literal_separator(true).build()
}
