//! Applies rules about paths to the targets of links: a rule that names a link also holds for what the link leads to.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use haft_policy::{glob_at, glob_prefix};
use haft_tool::Scope;

/// The kernel follows no more.
const MAX_LINKS: usize = 40;

/// The scope, extended by the paths to which the paths of rules lead through links. The links themselves may not be written, or
/// the next call would no longer find the way.
pub fn follow_rule_links(scope: Arc<Scope>) -> Arc<Scope> {
    let mut links = Vec::new();
    let mut followed = |globs: &[String]| {
        let mut more = Vec::new();
        for glob in globs {
            let (prefix, _) = glob_prefix(glob);
            let found = FollowedPath::of(&prefix);
            if found.path != prefix {
                more.push(glob_at(glob, &found.path));
                links.extend(found.links);
            }
        }
        more
    };
    let (unreadable, unwritable) = (followed(&scope.unreadable), followed(&scope.unwritable));
    if links.is_empty() {
        return scope;
    }
    let mut scope = scope;
    let changed = Arc::make_mut(&mut scope);
    changed.unreadable.extend(unreadable);
    changed.unwritable.extend(unwritable);
    links.retain(|link| changed.roots.iter().any(|root| link.starts_with(root)));
    changed.unwritable.extend(links.iter().map(|link| glob_at("", link)));
    scope
}

/// A path with all links followed, and the links that were followed.
struct FollowedPath {
    path: PathBuf,
    links: Vec<PathBuf>,
}

impl FollowedPath {
    /// Follows the links; parts that do not exist stay as they are.
    fn of(path: &Path) -> Self {
        let mut real = Self { path: PathBuf::from("/"), links: Vec::new() };
        let mut todo: VecDeque<OsString> = names(path).collect();
        while let Some(name) = todo.pop_front() {
            if name == ".." {
                real.path.pop();
                continue;
            }
            let entry = real.path.join(&name);
            match std::fs::read_link(&entry) {
                Ok(target) if real.links.len() < MAX_LINKS => {
                    real.links.push(entry);
                    if target.is_absolute() {
                        real.path = PathBuf::from("/");
                    }
                    for name in names(&target).rev() {
                        todo.push_front(name);
                    }
                }
                _ => real.path = entry,
            }
        }
        real
    }
}

fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + use<'_> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    })
}
