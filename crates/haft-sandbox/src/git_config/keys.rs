//! The keys that make git, or a program that shares its configuration, run something.
//!
//! A key is identified by its section and its own name, whatever its subsection. Keys that are not in the table and do
//! not end like the name of a program are harmless: remotes, branches, users, formats, extensions.

use std::path::{Component, Path};

use super::link;
use super::parse::ConfigSection;
use super::remotes::may_be_local;

/// Which values of a key run something; an empty one never does.
#[derive(Debug, Clone, Copy)]
enum RunsIf {
    Always,
    /// Booleans are allowed, too.
    NotBool,
    True,
    False,
    /// A path is a program, anything else a known name.
    Slash,
    /// A shell command starts with `!`.
    Shell,
    /// An alias that is more than a git command with plain flags.
    Alias,
    /// Allows a transport that is not one of the harmless four.
    Transport,
    /// A path outside of the repository.
    Worktree,
    /// A git directory whose files are not guarded.
    GitDir,
}

/// Section, key (`*` for all of them) and condition. The first matching row decides.
const KEYS: &[(&str, &str, RunsIf)] = &[
    ("core", "hookspath", RunsIf::Always),
    // True means git's own daemon.
    ("core", "fsmonitor", RunsIf::NotBool),
    ("core", "gitproxy", RunsIf::Always),
    ("core", "askpass", RunsIf::Always),
    // Not a program, but it would make git write the repository's files over those of another place.
    ("core", "worktree", RunsIf::Worktree),
    // Not programs, but without these checks a checkout can write into `.git` itself.
    ("core", "protecthfs", RunsIf::False),
    ("core", "protectntfs", RunsIf::False),
    // Another file may contain anything, and may change later.
    ("include", "path", RunsIf::Always),
    ("includeif", "path", RunsIf::Always),
    // `!` runs a shell, `-c` sets any other key, many options name programs.
    ("alias", "*", RunsIf::Alias),
    ("pager", "*", RunsIf::NotBool),
    ("diff", "external", RunsIf::Always),
    ("diff", "textconv", RunsIf::Always),
    ("merge", "driver", RunsIf::Always),
    ("filter", "clean", RunsIf::Always),
    ("filter", "smudge", RunsIf::Always),
    ("filter", "process", RunsIf::Always),
    ("interactive", "difffilter", RunsIf::Always),
    // A tool's name is part of the path of a script that git's own script sources: `../` leads anywhere.
    ("diff", "tool", RunsIf::Slash),
    ("diff", "guitool", RunsIf::Slash),
    ("merge", "tool", RunsIf::Slash),
    ("merge", "guitool", RunsIf::Slash),
    ("difftool", "path", RunsIf::Always),
    ("mergetool", "path", RunsIf::Always),
    // Passed to `eval`.
    ("mergetool", "layout", RunsIf::Always),
    ("browser", "path", RunsIf::Always),
    ("man", "path", RunsIf::Always),
    ("instaweb", "httpd", RunsIf::Always),
    ("instaweb", "modulepath", RunsIf::Always),
    // A line break in it adds a line to the todo list, and `exec` is a command there.
    ("rebase", "instructionformat", RunsIf::Always),
    // Templates contain hooks.
    ("init", "templatedir", RunsIf::Always),
    // Run by local and ssh transports, for a URL that may be local.
    ("remote", "uploadpack", RunsIf::Always),
    ("remote", "receivepack", RunsIf::Always),
    ("remote", "vcs", RunsIf::Always),
    ("protocol", "allow", RunsIf::Transport),
    ("submodule", "update", RunsIf::Shell),
    ("submodule", "gitdir", RunsIf::GitDir),
    // A path is a sendmail program.
    ("sendemail", "smtpserver", RunsIf::Slash),
    ("imap", "tunnel", RunsIf::Always),
    // Not a program, but it writes data of a server to a file that the configuration names.
    ("http", "savecookies", RunsIf::True),
    // Other tools that keep their settings in git's configuration.
    ("lfs", "path", RunsIf::Always),
    ("lfs", "args", RunsIf::Always),
    ("lfs", "clean", RunsIf::Always),
    ("lfs", "smudge", RunsIf::Always),
    ("lfs", "standalonetransferagent", RunsIf::Always),
    ("svn", "configdir", RunsIf::Always),
    ("gitflow", "hooks", RunsIf::Always),
    ("secrets", "providers", RunsIf::Always),
    ("tig", "*", RunsIf::NotBool),
];

/// Suffixes of keys that name programs. They cover most documented keys, and future ones of git and others.
const PROGRAM_SUFFIXES: &[&str] = &[
    // diff, hook, tar, trailer; core.sshCommand, core.alternateRefsCommand, gpg.ssh.defaultKeyCommand
    "command",
    // mergetool, difftool, browser, man, guitool, trailer; sendemail.toCmd, ccCmd, headerCmd, sendmailCmd
    "cmd",
    // gpg, gpg.<format>
    "program",
    // svn.authorsProg
    "prog",
    // uploadpack.packObjectsHook, gc.recentObjectsHook; git-annex
    "hook",
    // core, sequence
    "editor",
    // core; delta
    "pager",
    // web, help, instaweb
    "browser",
    // credential, credential.<url>
    "helper",
    // git-annex, for ssh and rsync
    "-options",
    "-transport",
];

/// Prefixes of URLs that run a program, pass a descriptor, or load a library.
const PROGRAM_URLS: &[&[u8]] = &[b"ext::", b"fd::", b"pkcs11:"];

/// Whether a key with this value runs something, in the configuration at `path`.
pub(super) fn runs_program(path: &Path, section: &ConfigSection, key: &[u8], value: Option<&[u8]>) -> bool {
    let within = section.subsection();
    if value.into_iter().chain(within).any(|bytes| PROGRAM_URLS.iter().any(|url| starts_with(bytes, url))) {
        return true;
    }
    // A rewritten URL is the base and the rest of the old one: together they may start with `ext::`.
    if section.section() == b"url"
        && PROGRAM_URLS.iter().any(|url| starts_with(url, within.unwrap_or_default()))
    {
        return true;
    }
    // It may also be the path of a repository with hooks, wherever the rest leads.
    if section.section() == b"url"
        && matches!(key, b"insteadof" | b"pushinsteadof")
        && may_be_local(within.unwrap_or_default())
    {
        return value.is_some();
    }
    let row = KEYS.iter().find(|(name, listed, _)| {
        name.as_bytes() == section.section() && (*listed == "*" || listed.as_bytes() == key)
    });
    let is_program = || PROGRAM_SUFFIXES.iter().any(|suffix| key.ends_with(suffix.as_bytes()));
    let when = match row {
        Some((_, _, when)) => *when,
        None if is_program() => RunsIf::NotBool,
        None => return false,
    };
    // A key without a value means true; where git needs a string it is an error.
    let Some(value) = value else { return matches!(when, RunsIf::True) };
    if value.is_empty() {
        return matches!(when, RunsIf::False);
    }
    match when {
        RunsIf::Always => true,
        RunsIf::NotBool => boolean(value).is_none(),
        RunsIf::True => boolean(value) != Some(false),
        RunsIf::False => boolean(value) != Some(true),
        RunsIf::Slash => value.contains(&b'/'),
        RunsIf::Shell => value.starts_with(b"!"),
        RunsIf::Alias => !is_plain_alias(value),
        RunsIf::Transport => {
            let harmless = matches!(within, Some(b"http" | b"https" | b"git" | b"ssh"));
            !harmless && !value.eq_ignore_ascii_case(b"never")
        }
        RunsIf::Worktree => !is_inside_repository(path, value),
        RunsIf::GitDir => !link::is_git_dir(value),
    }
}

fn starts_with(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// A boolean as git parses it; of numbers only 0 and 1.
fn boolean(value: &[u8]) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
    match value {
        _ if is(&["true", "yes", "on", "1"]) => Some(true),
        _ if is(&["false", "no", "off", "0"]) => Some(false),
        _ => None,
    }
}

/// Whether an alias is a command with flags that take no arguments: `status`, `log --oneline --graph -5`.
fn is_plain_alias(value: &[u8]) -> bool {
    let word =
        |word: &[u8]| !word.is_empty() && word.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'-');
    let flag = |flag: &[u8]| match flag {
        [b'-', b'-', name @ ..] => word(name),
        [b'-', letter] => letter.is_ascii_alphanumeric(),
        [b'-', number @ ..] => !number.is_empty() && number.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let mut words = value.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    words.next().is_some_and(|first| word(first) && !first.starts_with(b"-")) && words.all(flag)
}

/// Whether a working tree named in the configuration at `path` is inside of the repository. Git sets one for each
/// submodule, relative to `.git/modules/<name>`; a repository's own is the parent of its `.git`.
fn is_inside_repository(path: &Path, tree: &[u8]) -> bool {
    let parts: Vec<_> = path.components().collect();
    let Some(git) = parts.iter().rposition(|part| part.as_os_str() == ".git") else { return false };
    let depth = parts.len().saturating_sub(git + 1);
    let Ok(tree) = std::str::from_utf8(tree) else { return false };
    let mut steps = Path::new(tree).components();
    let up = steps.by_ref().take(depth).filter(|step| matches!(step, Component::ParentDir)).count();
    up == depth
        && steps.all(|step| match step {
            Component::Normal(name) => depth > 1 && !name.eq_ignore_ascii_case(".git"),
            _ => false,
        })
}
