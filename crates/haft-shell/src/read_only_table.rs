//! Programs that only read and print, with the options that would make them do more. To add one, add an entry.

use AllowedOperands::{AtMost, Formats};
use AllowedOptions::{AllBut, NamesBut, Only};

/// Which options and operands keep a program read-only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadOnlyProgram {
    pub(crate) names: &'static [&'static str],
    pub(crate) options: AllowedOptions,
    pub(crate) operands: AllowedOperands,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum AllowedOptions {
    /// All of them.
    Any,
    /// All but these letters and long names.
    AllBut(&'static str, &'static [&'static str]),
    /// Only these letters and long names.
    Only(&'static str, &'static [&'static str]),
    /// Words with one dash are names, as in `find`; all but those that begin so.
    NamesBut(&'static [&'static str]),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum AllowedOperands {
    Any,
    AtMost(usize),
    /// No operand begins with a letter or a digit: `date +%F` prints, `date 0101` sets.
    Formats,
}

const fn any(names: &'static [&'static str]) -> ReadOnlyProgram {
    ReadOnlyProgram { names, options: AllowedOptions::Any, operands: AllowedOperands::Any }
}

const fn all_but(
    names: &'static [&'static str],
    letters: &'static str,
    long: &'static [&'static str],
) -> ReadOnlyProgram {
    ReadOnlyProgram { names, options: AllBut(letters, long), operands: AllowedOperands::Any }
}

const fn limited(
    names: &'static [&'static str],
    options: AllowedOptions,
    operands: AllowedOperands,
) -> ReadOnlyProgram {
    ReadOnlyProgram { names, options, operands }
}

pub(crate) const READ_ONLY_PROGRAMS: &[ReadOnlyProgram] = &[
    // No option of these writes a file, runs a program or reaches a network.
    any(&[
        "ls", "dir", "vdir", "cat", "head", "tail", "wc", "nl", "tac", "rev", "cut", "tr", "fold", "expand",
    ]),
    any(&[
        "unexpand", "paste", "join", "comm", "cmp", "column", "fmt", "pr", "od", "hexdump", "strings",
        "cksum",
    ]),
    any(&["md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "sum", "base32"]),
    any(&["base64", "grep", "egrep", "fgrep", "du", "df", "stat", "basename", "dirname", "realpath"]),
    any(&["readlink", "pwd", "echo", "true", "false", ":", "whoami", "id", "groups", "uname", "nproc"]),
    any(&[
        "free", "uptime", "ps", "pgrep", "printenv", "which", "whereis", "type", "seq", "sleep", "cd", "diff",
    ]),
    any(&["expr", "numfmt", "tsort", "factor", "lscpu", "lsblk", "lsmod", "vmstat", "locale"]),
    any(&["logname", "tty", "users", "who", "w", "getconf"]),
    any(&["break", "continue", "return", "exit", "shift", "times"]),
    // Some option of these does.
    all_but(&["sort", "gsort"], "oT", &["output", "compress-program", "temporary-directory", "files0-from"]),
    all_but(&["tree"], "oR", &["output"]),
    all_but(&["file"], "CzZm", &["compile", "uncompress", "uncompress-noreport", "magic-file"]),
    all_but(&["rg"], "z", &["pre", "pre-glob", "hostname-bin", "search-zip"]),
    all_but(&["jq"], "fL", &["from-file", "run-tests"]),
    limited(
        &["date"],
        Only("duRIr", &["date", "utc", "universal", "iso-8601", "rfc-3339", "rfc-email", "reference"]),
        Formats,
    ),
    limited(
        &["hostname"],
        Only("fsdiIA", &["fqdn", "short", "domain", "ip-address", "all-ip-addresses", "all-fqdns"]),
        AtMost(0),
    ),
    // Another operand is a file that is written.
    limited(&["uniq"], AllowedOptions::Any, AtMost(1)),
    limited(&["xxd"], AllBut("r", &["revert"]), AtMost(1)),
    // Without operands these print what is set.
    limited(&["env"], Only("0", &["null"]), AtMost(0)),
    limited(&["export", "declare", "alias", "shopt", "trap", "umask", "dirs"], Only("p", &[]), AtMost(0)),
    all_but(&["wait"], "p", &[]),
    limited(&["tee"], AllBut("", &[]), AtMost(0)),
    limited(&["command"], Only("vV", &[]), AllowedOperands::Any),
    limited(
        &["find", "gfind"],
        NamesBut(&["-exec", "-ok", "-delete", "-fprint", "-fls", "-files0-from"]),
        AllowedOperands::Any,
    ),
];

/// Programs that only print something when the one argument is an option such as `--version`. Programs whose
/// version a file of the project chooses, as `rust-toolchain.toml` does for `cargo`, are not among them.
pub(crate) const VERSIONED_PROGRAMS: &[&str] = &[
    "awk", "bash", "bun", "clang", "cmake", "curl", "deno", "gcc", "gem", "git", "java", "javac", "jq",
    "just", "lua", "make", "ninja", "node", "npm", "perl", "php", "pip", "pip3", "psql", "python", "python3",
    "ruby", "ruff", "sed", "sqlite3", "tar", "uv", "vim", "wget", "zsh",
];
/// The options that make them print.
pub(crate) const VERSION_OPTIONS: [&str; 2] = ["--version", "--help"];
