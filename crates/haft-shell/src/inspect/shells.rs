//! Shells, and the builtins that run code: `eval`, `trap`, `alias`, `source`.

use super::{CommandInput, Inspection, Subject};
use crate::script::{FileAccess, UnclearReason};
use crate::word::{DynamicKind, Word, WordPart};

const SHELLS: [&str; 11] =
    ["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "lksh", "pdksh", "yash"];
/// Shells with a language of their own.
const OTHER_SHELLS: [&str; 8] = ["fish", "csh", "tcsh", "nu", "elvish", "xonsh", "pwsh", "powershell"];
/// Long options of shells with a value: a file that is run.
const STARTUP_FILE_OPTIONS: [&str; 2] = ["--rcfile", "--init-file"];

impl Inspection {
    /// Sees through a shell, or a builtin that runs code.
    pub(super) fn shell(&mut self, program: &str, subject: &Subject<'_>) -> bool {
        let arguments = subject.words.get(1..).unwrap_or_default();
        match program {
            "eval" => {
                let first = arguments.first().and_then(Word::literal);
                let rest = if first.as_deref() == Some("--") { arguments.get(1..) } else { Some(arguments) };
                self.code(rest.unwrap_or_default(), subject);
            }
            "trap" => self.trap(arguments, subject),
            "alias" => self.alias(arguments, subject),
            "source" | "." => {
                self.runs_code(subject);
                match arguments.first() {
                    Some(file) if file.literal().is_some() => self.file(file.clone(), FileAccess::Read),
                    _ => self.unclear_subject(UnclearReason::DynamicCode, subject),
                }
            }
            _ if SHELLS.contains(&without_version(program)) => self.shell_arguments(arguments, subject),
            _ if OTHER_SHELLS.contains(&program) => self.unknown_code(subject),
            _ => return false,
        }
        true
    }

    fn trap(&mut self, arguments: &[Word], subject: &Subject<'_>) {
        let operands = match arguments.first().and_then(Word::literal).as_deref() {
            Some("-l" | "-p" | "-lp" | "-") => return,
            Some("--") => arguments.get(1..).unwrap_or_default(),
            _ => arguments,
        };
        // A single operand is a signal that gets its default action back.
        if let [code, _, ..] = operands {
            self.code(std::slice::from_ref(code), subject);
        }
    }

    fn alias(&mut self, arguments: &[Word], subject: &Subject<'_>) {
        for argument in arguments {
            let prefix = argument.prefix();
            match prefix.split_once('=') {
                Some((name, _)) => {
                    self.code(&[argument.without_prefix(name.len() + 1)], subject);
                    self.shadowing.insert(name.to_owned());
                }
                None if argument.literal().is_none() => {
                    self.unclear_subject(UnclearReason::DynamicCode, subject);
                }
                None => {}
            }
        }
    }

    fn shell_arguments(&mut self, arguments: &[Word], subject: &Subject<'_>) {
        let (mut at, mut runs_code, mut reads_input) = (0, false, false);
        while let Some(word) = arguments.get(at) {
            let prefix = word.prefix();
            if word.literal().is_none() && word.may_be_option() {
                // An option such as `-c` cannot be ruled out.
                self.unknown_code(subject);
                break;
            }
            if !prefix.starts_with(['-', '+']) {
                break;
            }
            at += 1;
            match prefix.as_str() {
                "--" | "-" => break,
                "--version" | "--help" => return,
                long if long.starts_with("--") => {
                    if STARTUP_FILE_OPTIONS.contains(&long) {
                        self.unknown_code(subject);
                        at += 1;
                    }
                }
                cluster => {
                    runs_code |= cluster.starts_with('-') && cluster.contains('c');
                    reads_input |= cluster.contains('s') || cluster.contains('i');
                    at += cluster.matches(['o', 'O']).count();
                }
            }
        }
        let operand = arguments.get(at);
        match operand {
            Some(code) if runs_code => self.code(std::slice::from_ref(code), subject),
            None if runs_code => {}
            Some(file) if !reads_input => self.script_file(file, subject),
            _ => self.code_from_input(subject),
        }
    }

    /// Notes the file that a shell runs.
    fn script_file(&mut self, file: &Word, subject: &Subject<'_>) {
        let text = file.literal();
        match text.as_deref() {
            Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => self.code_from_input(subject),
            Some(_) => self.file(file.clone(), FileAccess::Read),
            None => {
                let is_appended =
                    |part: &WordPart| matches!(part, WordPart::Dynamic { kind: DynamicKind::Tilde, .. });
                if file.parts.first().is_some_and(is_appended) && file.parts.len() == 2 {
                    self.file(file.clone(), FileAccess::Read);
                } else {
                    self.unknown_code(subject);
                }
            }
        }
    }

    /// Inspects the code that a shell reads from its standard input.
    fn code_from_input(&mut self, subject: &Subject<'_>) {
        self.runs_code(subject);
        match subject.input {
            CommandInput::Text(text) => self.code(std::slice::from_ref(text), subject),
            CommandInput::Inherited | CommandInput::File => self.unknown_code(subject),
        }
    }
}

/// A program's name without the version at its end: `python` for `python3.12`.
pub(super) fn without_version(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}
