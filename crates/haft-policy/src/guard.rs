//! Names inside a workspace that make programs run later: by git, by an editor, by a shell, by an agent.
//!
//! A file planted there would run outside of every scope, so these names are not written without a grant, even if they do
//! not exist yet.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

use haft_tool::{Change, Node, Scope, lies_in};

use crate::guard_table::{NAME_RULES, NameRule, RunsWhen};
use crate::wildcard::wildcard;

/// More files that run on build are not listed.
const MAX_BUILD_FILES: usize = 100;

/// Why a name is guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Settings of an agent, an editor or a shell.
    Settings,
    /// A hook, which git runs.
    Hook,
    /// Git's configuration: written freely, except for keys that name programs.
    GitConfig,
    /// A file that points git to the rest of its directory.
    GitLink,
}

impl Guard {
    /// What is guarded, for a sentence that starts with the path.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Settings => "protected: settings like these can make programs run",
            Self::Hook => "protected: git would run it",
            Self::GitConfig => "protected: git's configuration may name programs to run",
            Self::GitLink => "protected: it could lead git to another configuration",
        }
    }
}

/// Why `path` is guarded, unless the scope grants it.
pub fn guard_in(scope: &Scope, path: &Path) -> Option<Guard> {
    let granted = || scope.unguarded.iter().any(|granted| lies_in(path, granted));
    guarded(path).filter(|_| !granted())
}

/// Why `path` is guarded, judged by its text alone.
pub fn guarded(path: &Path) -> Option<Guard> {
    let lower = LowerNames::of(path);
    let names = lower.names();
    let git = names.iter().position(|name| *name == ".git").and_then(|at| git(&names[at + 1..]));
    let settings = || find_rule(&names, RunsWhen::Opened).map(|_| Guard::Settings);
    git.or_else(settings)
}

/// The row of the table for guarded settings that `path` matches. A row for everything in a directory matches the directory
/// itself, too.
pub fn settings_rule(path: &Path) -> Option<&'static NameRule> {
    find_rule(&LowerNames::of(path).names(), RunsWhen::Opened)
}

/// The row of the table that `path` matches, if it is run when the project is built or run.
pub fn build_rule(path: &Path) -> Option<&'static NameRule> {
    find_rule(&LowerNames::of(path).names(), RunsWhen::Built)
}

/// The files among `changes` that are run when the project is built or run, as paths in the workspace where they are in it.
pub fn build_files(changes: &[Change], workspace: &Path) -> Vec<String> {
    let is_file = |node: &Node| matches!(node, Node::File(_) | Node::Link { .. });
    let changed = changes.iter().filter(|change| is_file(&change.before) || is_file(&change.after));
    let run = changed.filter(|change| build_rule(&change.path).is_some()).take(MAX_BUILD_FILES);
    let name = |change: &Change| {
        change.path.strip_prefix(workspace).unwrap_or(&change.path).to_string_lossy().into_owned()
    };
    run.map(name).collect()
}

/// Whether a link or another directory at `path` would bring guarded names with it: `.claude`, `.config`.
pub fn holds_settings(path: &Path) -> bool {
    let lower = LowerNames::of(path);
    let names = lower.names();
    let is_start = |at: usize| {
        let rest = &names[at..];
        rules_from(rest[0]).any(|(rule, pattern)| {
            rule.when == RunsWhen::Opened && pattern.len() > rest.len() && are_matched(rest, pattern)
        })
    };
    (0..names.len()).any(is_start)
}

/// The names of a path in lower case, because some file systems ignore case.
struct LowerNames {
    text: String,
}

impl LowerNames {
    fn of(path: &Path) -> Self {
        Self { text: path.to_string_lossy().to_ascii_lowercase() }
    }

    fn names(&self) -> Vec<&str> {
        self.text.split('/').filter(|name| !name.is_empty() && *name != ".").collect()
    }
}

/// The rows by the first name of their pattern, and those that start with a wildcard. Looked up for each write of a command.
struct RuleIndex {
    by_name: HashMap<&'static str, Vec<usize>>,
    others: Vec<usize>,
    patterns: Vec<Vec<&'static str>>,
}

fn index() -> &'static RuleIndex {
    static INDEX: OnceLock<RuleIndex> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = RuleIndex { by_name: HashMap::new(), others: Vec::new(), patterns: Vec::new() };
        for (at, rule) in NAME_RULES.iter().enumerate() {
            let pattern: Vec<_> = rule.pattern.split('/').collect();
            let first = pattern[0];
            if first.contains('*') {
                index.others.push(at);
            } else {
                index.by_name.entry(first).or_default().push(at);
            }
            index.patterns.push(pattern);
        }
        index
    })
}

/// The rows whose pattern may start with a name.
fn rules_from(name: &str) -> impl Iterator<Item = (&'static NameRule, &'static [&'static str])> {
    let index = index();
    let named = index.by_name.get(name).map_or(&[][..], Vec::as_slice);
    named.iter().chain(&index.others).map(|&at| (&NAME_RULES[at], index.patterns[at].as_slice()))
}

fn find_rule(names: &[&str], when: RunsWhen) -> Option<&'static NameRule> {
    for at in 0..names.len() {
        let rest = &names[at..];
        let is_whole = |pattern: &[&str]| match pattern {
            [directories @ .., "**"] => rest.len() >= directories.len() && are_matched(rest, directories),
            pattern => rest.len() == pattern.len() && are_matched(rest, pattern),
        };
        let found = rules_from(rest[0]).find(|(_, pattern)| is_whole(pattern));
        // An exception is only one from rows that start with the same name.
        if let Some((rule, _)) = found
            && rule.when == when
        {
            return Some(rule);
        }
    }
    None
}

/// Whether names match as far as both go.
fn are_matched(names: &[&str], pattern: &[&str]) -> bool {
    names.iter().zip(pattern).all(|(name, pattern)| wildcard(pattern, name))
}

/// What is guarded below a `.git`.
fn git(rest: &[&str]) -> Option<Guard> {
    match rest {
        [] => Some(Guard::GitLink),
        // Branches may have any name.
        ["refs" | "logs" | "objects", ..] => None,
        [.., "hooks", hook] if hook.ends_with(".sample") => None,
        [.., "config" | "config.worktree"] | [.., "remotes" | "branches", _] => Some(Guard::GitConfig),
        [.., "commondir" | "gitdir"] => Some(Guard::GitLink),
        rest => rest.iter().rev().skip(1).any(|name| *name == "hooks").then_some(Guard::Hook),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_programs_run_is_guarded_and_nothing_else() {
        let guard = |path: &str| guarded(Path::new(path));
        for path in
            ["/w/.git/hooks/pre-commit", "/w/a/.git/hooks/x/y", "/w/.git/modules/m/hooks/post-checkout"]
        {
            assert_eq!(guard(path), Some(Guard::Hook), "{path}");
        }
        for path in [
            "/w/.git/config",
            "/w/.GIT/Config",
            "/w/.git/config.worktree",
            "/w/.git/modules/m/config",
            "/w/.git/remotes/origin",
            "/w/.git/branches/origin",
        ] {
            assert_eq!(guard(path), Some(Guard::GitConfig), "{path}");
        }
        for path in ["/w/.git", "/w/.git/commondir", "/w/.git/worktrees/x/gitdir"] {
            assert_eq!(guard(path), Some(Guard::GitLink), "{path}");
        }
        for path in [
            "/w/haft.toml",
            "/w/a/Haft.toml",
            "/w/.haft/x",
            "/w/.mcp.json",
            "/w/.claude/settings.local.json",
            "/w/.Claude/SETTINGS.json",
            "/w/a/.vscode/tasks.json",
            "/w/.VSCode",
            "/w/.idea",
            "/w/vendor/p/.idea/workspace.xml",
            "/w/.bashrc",
            "/w/.envrc",
            "/w/.config/fish/config.fish",
            "/w/my.code-workspace",
            "/w/mise.local.toml",
            "/w/.cursor/mcp.json",
            "/h/.cursor/worktrees/p/.cursor/mcp.json",
            "/h/.cursor/rules/p/.mcp.json",
            "/w/.RData",
            "/w/.hg/hgrc-not-shared",
            "/w/.jj/repo",
            "/w/.github/hooks/a.json",
            "/w/.factory/mcp.json",
            "/w/.vim/coc-settings.json",
        ] {
            assert_eq!(guard(path), Some(Guard::Settings), "{path}");
        }
        for path in [
            "/w/.git/HEAD",
            "/w/.git/hooks",
            "/w/.git/hooks/pre-commit.sample",
            "/w/.git/refs/heads/hooks/x",
            "/w/.git/refs/remotes/origin",
            "/w/.git/logs/refs/heads/config",
            "/w/.git/config.lock",
            "/w/.gitignore",
            "/w/.github/workflows/ci.yml",
            "/w/.claude/agents/a.md",
            "/w/.factory/droids/a.md",
            "/w/.pi/prompts/a.md",
            "/w/.vim/notes",
            "/w/.cursor/rules/a.mdc",
            "/h/.cursor/worktrees/p/src/main.rs",
            "/w/settings.json",
            "/w/git/config",
            "/w/.env",
            "/w/Makefile",
        ] {
            assert_eq!(guard(path), None, "{path}");
        }
    }

    #[test]
    fn what_runs_on_build_is_known() {
        let rule = |path: &str| build_rule(Path::new(path)).map(|rule| rule.program);
        assert_eq!(rule("/w/a/Makefile"), Some("make"));
        assert_eq!(rule("/w/.husky/pre-commit"), Some("husky"));
        assert_eq!(rule("/w/rules.mk"), Some("make"));
        assert_eq!(rule("/w/.git/rebase-merge/git-rebase-todo"), Some("git rebase --continue"));
        assert_eq!(rule("/w/.git/worktrees/x/rebase-merge/git-rebase-todo"), Some("git rebase --continue"));
        assert_eq!(rule("/w/.claude/agents/a.md"), Some("Claude Code, when they are used"));
        assert_eq!(rule("/w/.git/rebase-merge/done"), None);
        assert_eq!(rule("/w/.vscode/tasks.json"), None);
        assert_eq!(rule("/w/src/main.rs"), None);
    }

    #[test]
    fn directories_that_would_bring_settings_are_known() {
        for path in ["/w/.claude", "/w/.vscode", "/w/.config", "/w/a/.Config"] {
            assert!(holds_settings(Path::new(path)), "{path}");
        }
        for path in ["/w/src", "/w/.claude/agents", "/w/config"] {
            assert!(!holds_settings(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn patterns_are_in_lower_case_and_listed_once() {
        let mut seen = std::collections::HashSet::new();
        for rule in NAME_RULES {
            assert_eq!(rule.pattern, rule.pattern.to_ascii_lowercase());
            assert!(seen.insert(rule.pattern), "{} is listed twice", rule.pattern);
        }
    }
}
