//! Variables that change which programs run, or what a program does beyond its arguments.

use crate::word::Word;

/// Names of such variables. A name that ends with `*` stands for all that begin with the rest.
const PROGRAM_VARIABLES: &[&str] = &[
    // The shell and the dynamic linker.
    "PATH",
    "BASH_ALIASES",
    "BASH_CMDS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "BASH_XTRACEFD",
    "BASH_FUNC_*",
    "BASHOPTS",
    "CDPATH",
    "ENV",
    "EXECIGNORE",
    "GLOBIGNORE",
    "HISTCMD",
    "HOME",
    "IFS",
    "OLDPWD",
    "OPTIND",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "PWD",
    "RANDOM",
    "SECONDS",
    "SHELL",
    "SHELLOPTS",
    "SRANDOM",
    "DYLD_*",
    "GCONV_PATH",
    "LD_*",
    "LOCPATH",
    "NLSPATH",
    "TEXTDOMAINDIR",
    // Programs that other programs start.
    "BROWSER",
    "EDITOR",
    "FCEDIT",
    "LESS",
    "LESSCLOSE",
    "LESSEDIT",
    "LESSOPEN",
    "MANPAGER",
    "MANROFFOPT",
    "PAGER",
    "SUDO_ASKPASS",
    "SSH_ASKPASS",
    "SYSTEMD_EDITOR",
    "SYSTEMD_PAGER",
    "TAR_OPTIONS",
    "VISUAL",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "RSYNC_RSH",
    "RIPGREP_CONFIG_PATH",
    "BAT_PAGER",
    "DELTA_PAGER",
    "GH_PAGER",
    // git.
    "GIT_*",
    // Languages and their tools.
    "BUNDLE_GEMFILE",
    "CARGO",
    "CARGO_*",
    "CC",
    "CFLAGS",
    "CLASSPATH",
    "CXX",
    "DENO_*",
    "GOFLAGS",
    "GOPATH",
    "GOROOT",
    "GOTOOLCHAIN",
    "JAVA_HOME",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "LD",
    "LUA_*",
    "MAKE",
    "MAKEFILES",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "MAVEN_OPTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NPM_CONFIG_*",
    "npm_config_*",
    "PERL5*",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PIP_*",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTHONBREAKPOINT",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_*",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTUP_*",
    "UV_*",
    "YARN_*",
];

/// Variables among them that change nothing of this kind.
const HARMLESS_VARIABLES: &[&str] = &[
    "CARGO_BUILD_JOBS",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_TARGET_DIR",
    "CARGO_TERM_COLOR",
    "CARGO_TERM_PROGRESS_WHEN",
    "GIT_AUTHOR_DATE",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_NO_INPUT",
];

/// Values that turn such a variable off instead of naming a program.
const HARMLESS_VALUES: &[(&str, &[&str])] = &[
    ("BAT_PAGER", &["", "cat"]),
    ("EDITOR", &[":", "cat", "true"]),
    ("GH_PAGER", &["", "cat"]),
    ("GIT_EDITOR", &[":", "cat", "true"]),
    ("GIT_PAGER", &["", "cat"]),
    ("GIT_SEQUENCE_EDITOR", &[":", "cat", "true"]),
    ("MANPAGER", &["", "cat"]),
    ("PAGER", &["", "cat"]),
    ("SYSTEMD_PAGER", &["", "cat"]),
    ("VISUAL", &[":", "cat", "true"]),
];

/// Whether setting the variable changes which programs run.
pub(crate) fn changes_programs(name: &str) -> bool {
    let is_meant =
        |entry: &str| entry.strip_suffix('*').map_or(entry == name, |start| name.starts_with(start));
    PROGRAM_VARIABLES.iter().any(|entry| is_meant(entry)) && !HARMLESS_VARIABLES.contains(&name)
}

/// Whether a name is one that scripts give to variables of their own: in lower case, and not one that a program reads.
pub(crate) fn is_own_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit())
        && !changes_programs(name)
        && !matches!(name, "auto_resume" | "histchars")
        && !name.ends_with("_proxy")
}

/// Whether setting the variable to this value changes which programs run.
pub(crate) fn value_changes_programs(name: &str, value: &Word) -> bool {
    if !changes_programs(name) {
        return false;
    }
    let harmless = HARMLESS_VALUES.iter().find(|(entry, _)| *entry == name).map(|(_, values)| *values);
    let text = value.literal();
    !harmless.zip(text).is_some_and(|(values, text)| values.contains(&&*text))
}
