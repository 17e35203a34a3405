//! Rulesets kept for the next command: most commands of a session have the same scope.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use haft_tool::{ToolError, lock};

use super::landlock::{Grants, Ruleset};
use super::resolver::Resolver;

/// How many are kept, the last used first.
const KEPT: usize = 8;

/// Rulesets by the grants they were built from. One is built anew when the file system has changed in a way that
/// other rules would follow from.
#[derive(Debug, Default)]
pub(crate) struct Rulesets(Mutex<Vec<(Kept, Arc<Ruleset>)>>);

#[derive(Debug)]
struct Kept {
    paths: [Vec<PathBuf>; 4],
    tcp: bool,
}

impl Rulesets {
    /// The ruleset for `grants`. It stays usable while the caller holds it. `resolver` knows what was looked at just now.
    pub(crate) fn get(
        &self,
        grants: &Grants<'_>,
        resolver: &mut Resolver,
    ) -> Result<Arc<Ruleset>, ToolError> {
        if let Some(ruleset) = self.take(grants) {
            return Ok(ruleset);
        }
        // Not under the lock: other commands need not wait for this one's rules.
        let built = Arc::new(Ruleset::build(grants, resolver)?);
        let mut all = lock(&self.0);
        all.retain(|(kept, _)| !kept.is(grants));
        all.truncate(KEPT - 1);
        all.insert(0, (Kept::of(grants), Arc::clone(&built)));
        Ok(built)
    }

    fn take(&self, grants: &Grants<'_>) -> Option<Arc<Ruleset>> {
        let mut all = lock(&self.0);
        let at = all.iter().position(|(kept, _)| kept.is(grants))?;
        all[..=at].rotate_right(1);
        let ruleset = Arc::clone(&all[0].1);
        drop(all);
        ruleset.seen().is_current().then_some(ruleset)
    }
}

impl Kept {
    fn of(grants: &Grants<'_>) -> Self {
        Self { paths: lists(grants).map(<[PathBuf]>::to_vec), tcp: grants.tcp }
    }

    fn is(&self, grants: &Grants<'_>) -> bool {
        // As strings: to compare paths by their parts takes ten times as long.
        let same = |a: &[PathBuf], b: &[PathBuf]| {
            a.iter().map(|p| p.as_os_str()).eq(b.iter().map(|p| p.as_os_str()))
        };
        self.tcp == grants.tcp && self.paths.iter().zip(lists(grants)).all(|(kept, asked)| same(kept, asked))
    }
}

fn lists<'a>(grants: &Grants<'a>) -> [&'a [PathBuf]; 4] {
    let Grants { unread, write, devices, scratch, tcp: _ } = *grants;
    [unread, write, devices, scratch]
}
