//! Programs with options that run code or commands, and those that write a file named by an operand.

use super::shells::without_version;
use super::{Inspection, Subject};
use crate::script::{FileAccess, UnclearReason};
use crate::word::Word;

/// A program whose code is an option's value or its standard input.
struct Interpreter {
    names: &'static [&'static str],
    /// Letters of options whose value is code.
    letters: &'static str,
    /// Long options and subcommands whose value is code.
    long: &'static [&'static str],
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter { names: &["python", "pypy", "ipython"], letters: "c", long: &[] },
    Interpreter { names: &["perl"], letters: "eE", long: &[] },
    Interpreter { names: &["ruby", "jruby"], letters: "e", long: &[] },
    Interpreter { names: &["node", "nodejs"], letters: "ep", long: &["--eval", "--print"] },
    Interpreter { names: &["deno"], letters: "", long: &["eval", "repl"] },
    Interpreter { names: &["bun"], letters: "ep", long: &["--eval", "--print", "repl"] },
    Interpreter { names: &["php"], letters: "rRBE", long: &["--run", "--process-code"] },
    Interpreter { names: &["lua", "luajit", "texlua"], letters: "e", long: &[] },
    Interpreter { names: &["R", "Rscript"], letters: "e", long: &[] },
    Interpreter { names: &["julia"], letters: "eE", long: &["--eval", "--print"] },
    Interpreter { names: &["osascript", "scala", "groovy"], letters: "e", long: &[] },
    Interpreter { names: &["elixir", "iex"], letters: "e", long: &["--eval", "--rpc-eval"] },
    Interpreter { names: &["erl"], letters: "", long: &["-eval", "-run", "-s"] },
    Interpreter { names: &["tclsh", "expect", "wish"], letters: "c", long: &[] },
    Interpreter { names: &["guile", "racket", "clojure", "clj", "bb"], letters: "ce", long: &["--eval"] },
    Interpreter {
        names: &["sbcl", "emacs", "emacsclient"],
        letters: "fl",
        long: &["--eval", "--load", "--funcall"],
    },
    Interpreter {
        names: &["gdb", "lldb"],
        letters: "oQxk",
        long: &["-ex", "-iex", "--eval-command", "--command"],
    },
    Interpreter {
        names: &["vim", "vi", "nvim", "ex", "view", "gvim", "vimdiff"],
        letters: "cSs",
        long: &["--cmd"],
    },
    Interpreter { names: &["ed", "red", "bc", "dc", "m4"], letters: "e", long: &["--expression"] },
    Interpreter {
        names: &["psql", "mysql", "mariadb", "sqlite"],
        letters: "ce",
        long: &["--command", "--execute"],
    },
    Interpreter { names: &["at", "batch", "crontab"], letters: "f", long: &[] },
];

/// Options of a program whose value is a command that it runs with a shell, or a program that it starts.
struct CommandOptions {
    names: &'static [&'static str],
    letters: &'static str,
    long: &'static [&'static str],
}

const COMMAND_OPTIONS: &[CommandOptions] = &[
    CommandOptions {
        names: &["tar", "gtar", "bsdtar"],
        letters: "IF",
        long: &[
            "checkpoint-action",
            "info-script",
            "new-volume-script",
            "rmt-command",
            "rsh-command",
            "to-command",
            "use-compress-program",
        ],
    },
    CommandOptions { names: &["rsync"], letters: "e", long: &["rsh", "rsync-path"] },
    CommandOptions { names: &["scp", "sftp"], letters: "SDo", long: &[] },
    CommandOptions { names: &["sort", "gsort"], letters: "", long: &["compress-program"] },
    CommandOptions { names: &["split", "gsplit"], letters: "", long: &["filter"] },
    CommandOptions { names: &["rg"], letters: "", long: &["pre", "hostname-bin"] },
    CommandOptions { names: &["man"], letters: "PH", long: &["pager", "browser", "html"] },
    CommandOptions { names: &["bat", "batcat", "delta"], letters: "", long: &["pager"] },
    CommandOptions { names: &["zip"], letters: "", long: &["unzip-command"] },
    CommandOptions { names: &["tcpdump"], letters: "z", long: &[] },
    CommandOptions {
        names: &["nc", "ncat", "netcat"],
        letters: "ec",
        long: &["exec", "sh-exec", "lua-exec"],
    },
    CommandOptions { names: &["make", "gmake"], letters: "E", long: &["eval"] },
    CommandOptions { names: &["cargo"], letters: "", long: &["config"] },
    CommandOptions { names: &["wget"], letters: "", long: &["use-askpass"] },
    CommandOptions { names: &["gcc", "cc", "g++", "clang"], letters: "", long: &["wrapper"] },
];

impl Inspection {
    pub(super) fn program_options(&mut self, program: &str, subject: &Subject<'_>) {
        let arguments = subject.words.get(1..).unwrap_or_default();
        let plain = without_version(program);
        if let Some(interpreter) = INTERPRETERS.iter().find(|entry| entry.names.contains(&plain)) {
            self.interpreter(interpreter, arguments, subject);
        }
        if let Some(options) = COMMAND_OPTIONS.iter().find(|entry| entry.names.contains(&program)) {
            self.values_of_commands(options.letters, options.long, arguments, subject);
        }
        match program {
            "tee" => {
                self.written_operands(arguments, |word| has_letter(word, 'a') || word.prefix() == "--append");
            }
            "gdb" | "lldb" => {
                let is_divider = |word: &Word| matches!(word.prefix().as_str(), "--args" | "-args" | "--");
                if let Some(at) = arguments.iter().position(is_divider) {
                    self.inner(arguments.get(at + 1..).unwrap_or_default(), Vec::new(), subject, false);
                }
            }
            "dd" => {
                for argument in arguments.iter().filter(|word| word.prefix().starts_with("of=")) {
                    self.file(argument.without_prefix("of=".len()), FileAccess::Write);
                }
            }
            // Their options say what they run, or the program is their operand under any name.
            "start-stop-daemon" | "capsh" => {
                self.unclear_subject(UnclearReason::WrapperOptions, subject);
            }
            _ if ["ld-linux", "ld-musl", "ld.so"].iter().any(|start| program.starts_with(start)) => {
                self.unclear_subject(UnclearReason::WrapperOptions, subject);
            }
            "make" | "gmake" if arguments.iter().any(|word| word.prefix().starts_with("SHELL=")) => {
                self.unclear_subject(UnclearReason::EmbeddedCode, subject);
            }
            "socat" if arguments.iter().any(|word| is_socat_command(&word.prefix())) => {
                self.unclear_subject(UnclearReason::EmbeddedCode, subject);
            }
            _ => {}
        }
    }

    /// Flags an interpreter that is given code, or that reads it from its standard input.
    fn interpreter(&mut self, interpreter: &Interpreter, arguments: &[Word], subject: &Subject<'_>) {
        let is_code = |word: &Word| {
            let text = word.prefix();
            interpreter.letters.chars().any(|letter| has_letter(word, letter))
                || interpreter.long.iter().any(|name| {
                    text == *name || text.strip_prefix(*name).is_some_and(|rest| rest.starts_with('='))
                })
                || text.starts_with('+') && text.len() > 1
        };
        let is_operand = |word: &Word| !word.prefix().starts_with('-') || word.literal().is_none();
        let asks_only = |word: &Word| {
            matches!(word.prefix().as_str(), "--version" | "--help" | "-V" | "-h" | "-v" | "-l")
        };
        let reads_input = !arguments.iter().any(is_operand) && !arguments.iter().any(asks_only);
        let is_dynamic = |word: &Word| word.literal().is_none() && word.may_be_option();
        if reads_input || arguments.iter().any(|word| is_code(word) || is_dynamic(word)) {
            self.runs_code(subject);
        }
    }

    /// Inspects the values of options that are commands: options of one of these letters, and long ones.
    pub(super) fn values_of_commands(
        &mut self,
        letters: &str,
        long_options: &[&str],
        arguments: &[Word],
        subject: &Subject<'_>,
    ) {
        for (at, argument) in arguments.iter().enumerate() {
            let prefix = argument.prefix();
            if prefix == "--" && argument.literal().is_some() {
                return;
            }
            let next = || arguments.get(at + 1).cloned();
            let value = if let Some(long) = prefix.strip_prefix("--") {
                let (name, is_attached) =
                    long.split_once('=').map_or((long, false), |(name, _)| (name, true));
                let is_meant = !name.is_empty() && long_options.iter().any(|option| option.starts_with(name));
                let skipped = "--".len() + name.len() + 1;
                is_meant
                    .then(|| if is_attached { Some(argument.without_prefix(skipped)) } else { next() })
                    .flatten()
            } else {
                let letter = |c: char| letters.contains(c);
                let at = prefix.starts_with('-').then(|| prefix.find(letter)).flatten();
                at.and_then(|at| {
                    let attached = argument.without_prefix(at + 1);
                    if attached.parts.is_empty() { next() } else { Some(attached) }
                })
            };
            if let Some(value) = value {
                // An action such as `exec=CODE`.
                let text = value.prefix();
                let value = match text.strip_prefix("exec=") {
                    Some(_) => value.without_prefix("exec=".len()),
                    None => value,
                };
                self.code(&[value], subject);
            }
        }
    }

    /// Notes the operands as files that are written.
    pub(super) fn written_operands(&mut self, arguments: &[Word], appends: impl Fn(&Word) -> bool) {
        let access = if arguments.iter().any(appends) { FileAccess::Append } else { FileAccess::Write };
        let mut only_operands = false;
        for argument in arguments {
            if !only_operands && argument.prefix().starts_with('-') && argument.prefix() != "-" {
                only_operands = argument.prefix() == "--";
                continue;
            }
            self.file(argument.clone(), access.clone());
        }
    }
}

/// Whether a word is a cluster of options of one letter with this one among them.
fn has_letter(word: &Word, letter: char) -> bool {
    let text = word.prefix();
    text.strip_prefix('-').is_some_and(|cluster| !cluster.starts_with('-') && cluster.contains(letter))
}

fn is_socat_command(address: &str) -> bool {
    let kind = address.split([':', ',']).next().unwrap_or_default().to_ascii_uppercase();
    matches!(kind.as_str(), "EXEC" | "SYSTEM" | "SHELL")
}
