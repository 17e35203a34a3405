//! Names inside a workspace that make programs run later: by git, by an editor, by a shell, by an agent.
//!
//! A file planted there would run outside of every scope, so these names are not written without a grant, even if they do
//! not exist yet.

use std::path::Path;

use haft_tool::{Scope, lies_in};

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

/// Directories whose whole contents are settings.
pub const GUARDED_DIRECTORIES: &[&str] = &[".haft", ".vscode", ".idea"];
/// Files that are settings, wherever they are.
pub const GUARDED_FILES: &[&str] = &[
    "haft.toml",
    ".mcp.json",
    ".envrc",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".gitconfig",
];

/// Why `path` is guarded, unless the scope grants it.
pub fn guard_in(scope: &Scope, path: &Path) -> Option<Guard> {
    let granted = || scope.unguarded.iter().any(|granted| lies_in(path, granted));
    guarded(path).filter(|_| !granted())
}

/// Why `path` is guarded, judged by its text alone.
pub fn guarded(path: &Path) -> Option<Guard> {
    // Called before each write of a command; almost every path has no name with a leading dot.
    let bytes = path.as_os_str().as_encoded_bytes();
    let dotted = bytes.first() == Some(&b'.') || bytes.windows(2).any(|pair| pair == b"/.");
    if !dotted && !path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("haft.toml")) {
        return None;
    }
    // Some file systems ignore case.
    let lower = path.to_string_lossy().to_ascii_lowercase();
    let names: Vec<&str> =
        Path::new(&lower).components().filter_map(|part| part.as_os_str().to_str()).collect();
    for (at, name) in names.iter().enumerate() {
        let rest = &names[at + 1..];
        let guard = match (*name, rest) {
            (".git", rest) => git(rest),
            (name, _) if GUARDED_DIRECTORIES.contains(&name) => Some(Guard::Settings),
            (name, []) if GUARDED_FILES.contains(&name) => Some(Guard::Settings),
            (".claude", [file]) if is_settings(file) => Some(Guard::Settings),
            (".config", ["fish", ..]) => Some(Guard::Settings),
            _ => None,
        };
        if guard.is_some() {
            return guard;
        }
    }
    None
}

/// What is guarded below a `.git`.
fn git(rest: &[&str]) -> Option<Guard> {
    match rest {
        [] => Some(Guard::GitLink),
        // Branches may have any name.
        ["refs" | "logs" | "objects", ..] => None,
        [.., "hooks", hook] if hook.ends_with(".sample") => None,
        [.., "config" | "config.worktree"] => Some(Guard::GitConfig),
        [.., "commondir" | "gitdir"] => Some(Guard::GitLink),
        rest => rest.iter().rev().skip(1).any(|name| *name == "hooks").then_some(Guard::Hook),
    }
}

/// `settings.json`, `settings.local.json` and their like.
fn is_settings(file: &str) -> bool {
    file.strip_prefix("settings").is_some_and(|rest| rest.strip_suffix(".json").is_some())
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
        for path in
            ["/w/.git/config", "/w/.GIT/Config", "/w/.git/config.worktree", "/w/.git/modules/m/config"]
        {
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
            "/w/.bashrc",
            "/w/.envrc",
            "/w/.config/fish/config.fish",
        ] {
            assert_eq!(guard(path), Some(Guard::Settings), "{path}");
        }
        for path in [
            "/w/.git/HEAD",
            "/w/.git/hooks",
            "/w/.git/hooks/pre-commit.sample",
            "/w/.git/refs/heads/hooks/x",
            "/w/.git/logs/refs/heads/config",
            "/w/.git/config.lock",
            "/w/.gitignore",
            "/w/.github/workflows/ci.yml",
            "/w/.claude/agents/a.md",
            "/w/settings.json",
            "/w/git/config",
            "/w/.env",
        ] {
            assert_eq!(guard(path), None, "{path}");
        }
    }
}
