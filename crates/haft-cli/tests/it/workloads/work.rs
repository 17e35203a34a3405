//! One piece of real work: it must do inside just what it does outside.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::fixture::sandbox::{OLDER_LANDLOCK_ABIS, SandboxFixture, User};
use crate::fixture::tree::{differences, timeless};

/// One piece of work, a script for bash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) name: &'static str,
    /// Programs without which it is left out; git, cc and python3 are always there.
    needs: &'static [&'static str],
    flags: &'static [&'static str],
    script: &'static str,
    /// Whether the tree it leaves is the same each time.
    same_tree: bool,
    /// Whether it works only in namespaces.
    needs_namespaces: bool,
    /// With older versions of Landlock it works another way.
    min_landlock_abi: usize,
}

pub(crate) const fn work(name: &'static str, script: &'static str) -> Work {
    Work {
        name,
        needs: &[],
        flags: &[],
        script,
        same_tree: true,
        needs_namespaces: false,
        min_landlock_abi: 1,
    }
}

impl Work {
    pub(crate) const fn needs(mut self, programs: &'static [&'static str]) -> Self {
        self.needs = programs;
        self
    }

    pub(crate) const fn with(mut self, flags: &'static [&'static str]) -> Self {
        self.flags = flags;
        self
    }

    /// It leaves times, numbers of processes or the like in its files.
    pub(crate) const fn leaves_anything(mut self) -> Self {
        self.same_tree = false;
        self
    }

    /// Without namespaces it is refused.
    pub(crate) const fn needs_namespaces(mut self) -> Self {
        self.needs_namespaces = true;
        self
    }

    /// With older versions of Landlock it works another way.
    pub(crate) const fn needs_landlock(mut self, abi: usize) -> Self {
        self.min_landlock_abi = abi;
        self
    }

    /// What went another way inside than outside, with and without namespaces, and for one of the users with an older Landlock:
    /// with which of them depends on the index.
    fn differs(&self, user: User, index: usize) -> Vec<String> {
        let plain = SandboxFixture::new(user);
        for program in self.needs {
            if plain.unsandboxed(&format!("{program} --version || {program} -v")).code != 0 {
                tell(&format!("{} ({}) is left out: there is no {program}", self.name, user.word()));
                return Vec::new();
            }
        }
        let script = format!("set -euo pipefail\n{}", self.script);
        let outside = plain.unsandboxed(&script);
        if outside.code != 0 {
            return vec![format!("it does not work outside either: {}{}", outside.stdout, outside.stderr)];
        }
        let modes: &[bool] = if self.needs_namespaces { &[true] } else { &[true, false] };
        let mut modes: Vec<_> = modes.iter().map(|namespaces| (*namespaces, None)).collect();
        let users = User::all();
        if users.get(index % users.len()) == Some(&user) {
            let abi = (index / users.len() % OLDER_LANDLOCK_ABIS + 1).max(self.min_landlock_abi);
            modes.push((self.needs_namespaces, Some(abi)));
        }
        let wrong = modes.into_iter().flat_map(|(namespaces, landlock_abi)| {
            let held = SandboxFixture::new(user).with_namespaces(namespaces);
            let lines = self.differs_from(&plain, &outside.stdout, &script, &held, landlock_abi);
            lines
                .into_iter()
                .map(move |line| format!("namespaces {namespaces}, Landlock {landlock_abi:?}: {line}"))
        });
        wrong.collect()
    }

    fn differs_from(
        &self,
        plain: &SandboxFixture,
        outside: &str,
        script: &str,
        held: &SandboxFixture,
        landlock_abi: Option<usize>,
    ) -> Vec<String> {
        let mut command = held.sandboxed(self.flags, script);
        if let Some(abi) = landlock_abi {
            command.env("HAFT_LANDLOCK_ABI", abi.to_string());
        }
        let inside = held.run(&mut command);
        let mut wrong = Vec::new();
        if inside.code != 0 {
            wrong.push(format!("it ended with {}: {}", inside.code, inside.stderr));
        }
        let plainly = |text: &str, fixture: &SandboxFixture| text.replace(&fixture.mark(), "FIXTURE");
        let (expected, got) = (plainly(outside, plain), plainly(&inside.stdout, held));
        if expected != got {
            wrong.extend(other_lines(&expected, &got));
        }
        if self.same_tree {
            let (expected, got) = (timeless(&plain.work(), &[]), timeless(&held.work(), &[]));
            wrong.extend(differences(&expected, &got));
        }
        let left = held.processes();
        if !left.is_empty() {
            wrong.push(format!("it left {left:?}"));
        }
        wrong
    }
}

/// The lines that only one of two outputs has; at most four dozen.
fn other_lines(expected: &str, got: &str) -> Vec<String> {
    let only = |of: &str, other: &str, word: &str| -> Vec<String> {
        let known: BTreeSet<&str> = other.lines().collect();
        of.lines().filter(|line| !known.contains(line)).map(|line| format!("only {word}: {line}")).collect()
    };
    let mut lines = only(expected, got, "outside");
    lines.extend(only(got, expected, "inside"));
    if lines.is_empty() {
        lines.push("the same lines in another order or number".to_owned());
    }
    lines.truncate(48);
    lines
}

/// Says why something is left out, past the test's own capture.
fn tell(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Everything of a table works for everybody.
pub(crate) fn all_work(table: &[Work]) {
    let mut failures = String::new();
    for user in User::all() {
        let is_wanted = |work: &Work| std::env::var("WORK").map_or(true, |wanted| wanted == work.name);
        for (index, work) in table.iter().enumerate().filter(|(_, work)| is_wanted(work)) {
            for line in work.differs(*user, index) {
                writeln!(failures, "{} ({}): {line}", work.name, user.word()).unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}
