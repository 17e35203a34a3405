//! Caches Landlock rulesets, because most commands of a session have the same scope.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use haft_tool::lock;

use super::namespaces::Namespaces;
use super::ruleset::{FileGrants, LandlockRuleset};

const MAX_CACHED: usize = 8;

/// Rulesets by their grants, the most recently used first. A ruleset is replaced when the file system has changed in a
/// way that leads to other rules.
#[derive(Debug, Default)]
pub(super) struct RulesetCache(Mutex<Vec<(RulesetKey, Arc<LandlockRuleset>)>>);

#[derive(Debug)]
struct RulesetKey {
    namespaces: Option<Weak<Namespaces>>,
    paths: [Vec<PathBuf>; 4],
    tcp: bool,
}

impl RulesetCache {
    pub(super) fn get(&self, grants: &FileGrants<'_>) -> io::Result<Arc<LandlockRuleset>> {
        if let Some(ruleset) = self.cached(grants) {
            return Ok(ruleset);
        }
        // Built without the lock, so that other commands do not wait.
        let ruleset = Arc::new(LandlockRuleset::new(grants)?);
        let mut cached = lock(&self.0);
        cached.retain(|(key, _)| !key.matches(grants));
        cached.truncate(MAX_CACHED - 1);
        cached.insert(0, (RulesetKey::new(grants), Arc::clone(&ruleset)));
        Ok(ruleset)
    }

    fn cached(&self, grants: &FileGrants<'_>) -> Option<Arc<LandlockRuleset>> {
        let mut cached = lock(&self.0);
        let index = cached.iter().position(|(key, _)| key.matches(grants))?;
        cached[..=index].rotate_right(1);
        let ruleset = Arc::clone(&cached[0].1);
        drop(cached);
        ruleset.is_current().then_some(ruleset)
    }
}

impl RulesetKey {
    fn new(grants: &FileGrants<'_>) -> Self {
        Self {
            namespaces: grants.namespaces.map(Arc::downgrade),
            paths: path_lists(grants).map(<[PathBuf]>::to_vec),
            tcp: grants.tcp,
        }
    }

    fn matches(&self, grants: &FileGrants<'_>) -> bool {
        let has_namespaces = match (&self.namespaces, grants.namespaces) {
            (Some(key), Some(namespaces)) => std::ptr::eq(key.as_ptr(), Arc::as_ptr(namespaces)),
            (key, namespaces) => key.is_none() && namespaces.is_none(),
        };
        has_namespaces
            && self.tcp == grants.tcp
            && self.paths.iter().zip(path_lists(grants)).all(|(key, paths)| key == paths)
    }
}

fn path_lists<'a>(grants: &FileGrants<'a>) -> [&'a [PathBuf]; 4] {
    let FileGrants { unreadable, writable, devices, private, namespaces: _, tcp: _ } = *grants;
    [unreadable, writable, devices, private]
}
