//! What git runs: commands in its configuration, and those that its subcommands are given.

use super::options::OptionSpec;
use super::{Inspection, Subject};
use crate::script::UnclearReason;
use crate::word::Word;

const GLOBAL: OptionSpec = OptionSpec {
    flags: "pPhv",
    values: "Cc",
    attached: "",
    long_flags: "bare exec-path glob-pathspecs help html-path icase-pathspecs info-path literal-pathspecs \
                 man-path no-advice no-lazy-fetch no-optional-locks no-pager no-replace-objects \
                 noglob-pathspecs paginate version",
    long_values: "attr-source config-env git-dir namespace super-prefix work-tree list-cmds",
};
/// Settings that run nothing; a name that ends with a dot stands for all that begin with it.
const HARMLESS_SETTINGS: &[&str] = &[
    "advice.",
    "blame.",
    "branch.",
    "color.",
    "column.",
    "commit.gpgsign",
    "commit.verbose",
    "core.abbrev",
    "core.autocrlf",
    "core.commentchar",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.quotepath",
    "core.safecrlf",
    "core.untrackedcache",
    "core.usebuiltinfsmonitor",
    "core.whitespace",
    "diff.algorithm",
    "diff.colormoved",
    "diff.context",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "fetch.prune",
    "gc.auto",
    "init.defaultbranch",
    "log.",
    "maintenance.auto",
    "merge.conflictstyle",
    "merge.ff",
    "merge.renamelimit",
    "protocol.version",
    "pull.ff",
    "pull.rebase",
    "push.default",
    "rebase.autosquash",
    "rebase.autostash",
    "rerere.enabled",
    "status.",
    "tag.gpgsign",
    "tag.sort",
    "user.email",
    "user.name",
    "versionsort.suffix",
];
/// Settings whose value is a command, by how they begin or end.
const COMMAND_SETTING_STARTS: [&str; 3] = ["alias.", "pager.", "credential."];
const COMMAND_SETTING_ENDS: [&str; 18] = [
    ".askpass",
    ".clean",
    ".cmd",
    ".command",
    ".driver",
    ".editor",
    ".external",
    ".fsmonitor",
    ".gitproxy",
    ".helper",
    ".pager",
    ".process",
    ".program",
    ".receivepack",
    ".smudge",
    ".sshcommand",
    ".textconv",
    ".uploadpack",
];
/// Subcommands and their options whose value is a command.
const COMMAND_OPTIONS: &[(&str, &str, &[&str])] = &[
    ("rebase", "x", &["exec"]),
    ("difftool", "x", &["extcmd"]),
    ("grep", "O", &["open-files-in-pager"]),
    ("clone", "u", &["upload-pack"]),
    ("fetch", "", &["upload-pack"]),
    ("fetch-pack", "", &["exec", "upload-pack"]),
    ("pull", "", &["upload-pack"]),
    ("ls-remote", "", &["upload-pack", "exec"]),
    ("push", "", &["receive-pack", "exec"]),
    ("send-pack", "", &["receive-pack", "exec"]),
    ("archive", "", &["exec"]),
    (
        "filter-branch",
        "",
        &[
            "commit-filter",
            "env-filter",
            "index-filter",
            "msg-filter",
            "parent-filter",
            "setup",
            "tag-name-filter",
            "tree-filter",
        ],
    ),
    ("send-email", "", &["cc-cmd", "header-cmd", "sendmail-cmd", "smtp-server", "to-cmd"]),
];

/// The words behind the options that git itself has, which begin with the subcommand.
pub(crate) fn without_global_options(arguments: &[Word]) -> &[Word] {
    arguments.get(GLOBAL.read(arguments).operands_at..).unwrap_or_default()
}

impl Inspection {
    pub(super) fn git(&mut self, subject: &Subject<'_>) {
        let arguments = subject.words.get(1..).unwrap_or_default();
        let options = GLOBAL.read(arguments);
        if options.is_uncertain {
            self.unclear_subject(UnclearReason::WrapperOptions, subject);
        }
        for (name, value) in &options.given {
            match (name.as_str(), value) {
                ("-c", Some(setting)) => self.setting(setting, subject),
                ("--exec-path", Some(_)) | ("--config-env", _) => {
                    self.unclear_subject(UnclearReason::ProgramVariable, subject);
                }
                _ => {}
            }
        }
        let rest = arguments.get(options.operands_at..).unwrap_or_default();
        let Some((first, rest)) = rest.split_first() else { return };
        // A remote helper that runs a command.
        if rest.iter().any(|word| word.prefix().starts_with("ext::")) {
            self.unclear_subject(UnclearReason::EmbeddedCode, subject);
        }
        match first.literal().as_deref() {
            Some(subcommand) => self.git_subcommand(subcommand, rest, subject),
            None => self.unclear_subject(UnclearReason::DynamicName, subject),
        }
    }

    fn git_subcommand(&mut self, subcommand: &str, arguments: &[Word], subject: &Subject<'_>) {
        let is = |word: Option<&Word>, text: &str| word.is_some_and(|word| word.prefix() == text);
        match subcommand {
            "bisect" if is(arguments.first(), "run") => {
                self.inner(arguments.get(1..).unwrap_or_default(), Vec::new(), subject, false);
            }
            "submodule" => {
                if let Some(at) = arguments.iter().position(|word| word.prefix() == "foreach") {
                    let rest = arguments.get(at + 1..).unwrap_or_default();
                    let skipped = rest.iter().take_while(|word| word.prefix().starts_with('-')).count();
                    self.code(rest.get(skipped..).unwrap_or_default(), subject);
                }
            }
            "config" => self.git_config(arguments, subject),
            "clone" | "init" | "submodule-helper" => {
                for (at, argument) in arguments.iter().enumerate() {
                    let text = argument.prefix();
                    if text.starts_with("--template") {
                        self.unclear_subject(UnclearReason::EmbeddedCode, subject);
                    }
                    let setting = match text.as_str() {
                        "-c" | "--config" => arguments.get(at + 1).cloned(),
                        text if text.starts_with("--config=") => {
                            Some(argument.without_prefix("--config=".len()))
                        }
                        text if text.starts_with("-c") => Some(argument.without_prefix("-c".len())),
                        _ => None,
                    };
                    if let Some(setting) = setting {
                        self.setting(&setting, subject);
                    }
                }
            }
            _ => {}
        }
        for (name, letters, long) in COMMAND_OPTIONS {
            if *name == subcommand {
                self.values_of_commands(letters, long, arguments, subject);
            }
        }
    }

    /// Inspects a setting as `-c` gives it.
    fn setting(&mut self, setting: &Word, subject: &Subject<'_>) {
        let prefix = setting.prefix();
        let Some((key, _)) = prefix.split_once('=') else {
            // Without a value it is true, which names no program.
            if setting.literal().is_none() {
                self.unclear_subject(UnclearReason::ProgramVariable, subject);
            }
            return;
        };
        let value = setting.without_prefix(key.len() + 1);
        self.setting_value(&key.to_ascii_lowercase(), value, subject);
    }

    fn setting_value(&mut self, key: &str, value: Word, subject: &Subject<'_>) {
        let is_harmless =
            |entry: &&str| if entry.ends_with('.') { key.starts_with(*entry) } else { key == *entry };
        let text = value.literal();
        let turns_off = matches!(text.as_deref(), Some("" | "cat" | "true" | "false"));
        if HARMLESS_SETTINGS.iter().any(is_harmless) || is_command_setting(key) && turns_off {
            return;
        }
        if !is_command_setting(key) {
            self.unclear_subject(UnclearReason::ProgramVariable, subject);
            return;
        }
        let is_shell_code = value.prefix().starts_with('!');
        if is_shell_code {
            self.code(&[value.without_prefix(1)], subject);
        } else if key.starts_with("alias.") {
            // The alias of a subcommand, which can have any option.
            self.unclear_subject(UnclearReason::EmbeddedCode, subject);
        } else {
            self.code(&[value], subject);
        }
    }

    /// `git config` writes settings that run later.
    fn git_config(&mut self, arguments: &[Word], subject: &Subject<'_>) {
        let mut operands = arguments.iter().filter(|word| !word.prefix().starts_with('-'));
        let mut key = operands.next();
        if key.is_some_and(|word| matches!(word.prefix().as_str(), "set" | "get" | "unset" | "list")) {
            key = operands.next();
        }
        let (Some(key), Some(value)) = (key, operands.next()) else { return };
        if key.literal().is_none() {
            self.unclear_subject(UnclearReason::ProgramVariable, subject);
        }
        self.setting_value(&key.prefix().to_ascii_lowercase(), value.clone(), subject);
    }
}

fn is_command_setting(key: &str) -> bool {
    COMMAND_SETTING_STARTS.iter().any(|start| key.starts_with(start))
        || COMMAND_SETTING_ENDS.iter().any(|end| key.ends_with(end))
}
