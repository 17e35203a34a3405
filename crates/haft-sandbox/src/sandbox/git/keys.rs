//! The keys that make git, or a program that shares its configuration, run something.
//!
//! A key counts by its section and its own name, whatever subsection it is in. What is not in the table and does not
//! end like the name of a program is free: remotes, branches, users, formats, extensions.

use std::path::{Component, Path};

use super::link;
use super::parse::Section;

/// When a key's value is one that runs something. An empty one never is.
#[derive(Debug, Clone, Copy)]
enum When {
    Always,
    /// It may also be a mere yes or no.
    NotBool,
    True,
    False,
    /// It is a program if it is a path, else a known name.
    Slash,
    /// It is for the shell if it starts with `!`.
    Shell,
    /// It is more than a git command and plain flags.
    Alias,
    /// It lets a transport be used that is not one of the harmless four.
    Transport,
    /// It leads out of the repository.
    Worktree,
    /// It leads to where nothing is guarded.
    GitDir,
}

/// Section, key (`*` for all of them), when, with the reason beside it. The first row that fits decides.
const KEYS: &[(&str, &str, When)] = &[
    ("core", "hookspath", When::Always),
    // True is git's own daemon.
    ("core", "fsmonitor", When::NotBool),
    ("core", "gitproxy", When::Always),
    ("core", "askpass", When::Always),
    // Not a program, but it would make git write the repository's files over those of another place.
    ("core", "worktree", When::Worktree),
    // Not programs, but without these checks a checkout can write into `.git` itself.
    ("core", "protecthfs", When::False),
    ("core", "protectntfs", When::False),
    // Another file may say anything, and may change later.
    ("include", "path", When::Always),
    ("includeif", "path", When::Always),
    // `!` runs a shell, `-c` sets any other key, many options name programs.
    ("alias", "*", When::Alias),
    ("pager", "*", When::NotBool),
    ("diff", "external", When::Always),
    ("diff", "textconv", When::Always),
    ("merge", "driver", When::Always),
    ("filter", "clean", When::Always),
    ("filter", "smudge", When::Always),
    ("filter", "process", When::Always),
    ("interactive", "difffilter", When::Always),
    // A tool's name is the name of a script that git's own script reads: `../` leads it anywhere.
    ("diff", "tool", When::Slash),
    ("diff", "guitool", When::Slash),
    ("merge", "tool", When::Slash),
    ("merge", "guitool", When::Slash),
    ("difftool", "path", When::Always),
    ("mergetool", "path", When::Always),
    // It ends up in an `eval`.
    ("mergetool", "layout", When::Always),
    ("browser", "path", When::Always),
    ("man", "path", When::Always),
    ("instaweb", "httpd", When::Always),
    ("instaweb", "modulepath", When::Always),
    // A line break in it starts a line in the list of steps, and `exec` is a step.
    ("rebase", "instructionformat", When::Always),
    // Templates hold hooks.
    ("init", "templatedir", When::Always),
    // Run by a local or an ssh transport, for an address that may be local.
    ("remote", "uploadpack", When::Always),
    ("remote", "receivepack", When::Always),
    ("remote", "vcs", When::Always),
    ("protocol", "allow", When::Transport),
    ("submodule", "update", When::Shell),
    ("submodule", "gitdir", When::GitDir),
    // A path is a sendmail to run.
    ("sendemail", "smtpserver", When::Slash),
    ("imap", "tunnel", When::Always),
    // Not a program, but it writes what a server says to a file of the configuration's choice.
    ("http", "savecookies", When::True),
    // Others that keep their settings in git's configuration.
    ("lfs", "path", When::Always),
    ("lfs", "args", When::Always),
    ("lfs", "clean", When::Always),
    ("lfs", "smudge", When::Always),
    ("lfs", "standalonetransferagent", When::Always),
    ("svn", "configdir", When::Always),
    ("gitflow", "hooks", When::Always),
    ("secrets", "providers", When::Always),
    ("tig", "*", When::NotBool),
];

/// How the names of programs end. This finds most documented keys, and those that git and others will yet invent.
const ENDINGS: &[&str] = &[
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

/// What starts an address that runs a program, hands over a descriptor, or loads a library.
const LOADERS: &[&[u8]] = &[b"ext::", b"fd::", b"pkcs11:"];

/// Whether a key with this value runs something, in the configuration at `place`.
pub(super) fn runs(place: &Path, section: &Section, key: &[u8], value: Option<&[u8]>) -> bool {
    let within = section.subsection();
    if value.into_iter().chain(within).any(|bytes| LOADERS.iter().any(|loader| starts(bytes, loader))) {
        return true;
    }
    // A rewritten address is the base and what is left of the old one: together they may say `ext::`.
    if section.section() == b"url" && LOADERS.iter().any(|loader| starts(loader, within.unwrap_or_default()))
    {
        return true;
    }
    let row = KEYS.iter().find(|(name, listed, _)| {
        name.as_bytes() == section.section() && (*listed == "*" || listed.as_bytes() == key)
    });
    let ends = || ENDINGS.iter().any(|ending| key.ends_with(ending.as_bytes()));
    let when = match row {
        Some((_, _, when)) => *when,
        None if ends() => When::NotBool,
        None => return false,
    };
    // A key alone is a yes; where git wants a text it is an error.
    let Some(value) = value else { return matches!(when, When::True) };
    if value.is_empty() {
        return matches!(when, When::False);
    }
    match when {
        When::Always => true,
        When::NotBool => boolean(value).is_none(),
        When::True => boolean(value) != Some(false),
        When::False => boolean(value) != Some(true),
        When::Slash => value.contains(&b'/'),
        When::Shell => value.starts_with(b"!"),
        When::Alias => !is_plain_alias(value),
        When::Transport => {
            let harmless = matches!(within, Some(b"http" | b"https" | b"git" | b"ssh"));
            !harmless && !value.eq_ignore_ascii_case(b"never")
        }
        When::Worktree => !stays(place, value),
        When::GitDir => !link::is_git_dir(value),
    }
}

fn starts(bytes: &[u8], with: &[u8]) -> bool {
    bytes.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

/// Yes or no as git reads it; of numbers the usual two.
fn boolean(value: &[u8]) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
    match value {
        _ if is(&["true", "yes", "on", "1"]) => Some(true),
        _ if is(&["false", "no", "off", "0"]) => Some(false),
        _ => None,
    }
}

/// A command and flags without anything of their own: `status`, `log --oneline --graph -5`.
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

/// Whether a working tree named in the configuration at `place` is in the repository it is for. Git names one for each
/// submodule, counted from `.git/modules/<name>`; a repository's own is right above its `.git`.
fn stays(place: &Path, tree: &[u8]) -> bool {
    let parts: Vec<_> = place.components().collect();
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
