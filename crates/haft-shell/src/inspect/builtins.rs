//! Builtins that set variables by name or change how the shell reads commands.

use super::options::OptionSpec;
use super::{Inspection, Subject};
use crate::reader::assignment_in;
use crate::script::{Assignment, UnclearReason};
use crate::variables::changes_programs;
use crate::word::Word;

/// Options of `shopt` and `set -o` that change how commands are read.
const READING_OPTIONS: [&str; 9] = [
    "array_expand_once",
    "expand_aliases",
    "extglob",
    "histexpand",
    "interactive_comments",
    "keyword",
    "posix",
    "sourcepath",
    "xpg_echo",
];

/// The options of `mapfile`; the value of `-C` is code.
const MAPFILE: OptionSpec = OptionSpec { flags: "t", values: "CcdnOsu", ..OptionSpec::NONE };

/// Builtins that evaluate the subscript of a variable they are given.
const EVALUATING: [&str; 12] = [
    "[",
    "declare",
    "getopts",
    "let",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "test",
    "typeset",
    "unset",
    "wait",
];

impl Inspection {
    /// Looks at a builtin that has effects on later commands.
    pub(super) fn builtin(&mut self, program: &str, subject: &Subject<'_>) -> bool {
        let arguments = subject.words.get(1..).unwrap_or_default();
        self.has_arithmetic |= EVALUATING.contains(&program);
        match program {
            "declare" | "typeset" | "local" | "export" | "readonly" => self.declaration(arguments, subject),
            "read" | "unset" | "getopts" | "wait" => self.named_variables(arguments, subject),
            "printf" => {
                let writes_variable = arguments.first().is_some_and(|word| word.prefix().starts_with("-v"));
                if writes_variable {
                    self.named_variables(arguments.get(..2).unwrap_or(arguments), subject);
                }
            }
            "mapfile" | "readarray" => {
                self.named_variables(arguments, subject);
                let options = MAPFILE.read(arguments);
                if options.is_uncertain {
                    self.unclear_subject(UnclearReason::WrapperOptions, subject);
                }
                for (_, code) in options.given.into_iter().filter(|(name, _)| name == "-C") {
                    self.code(code.as_slice(), subject);
                }
            }
            "let" => {
                let names = |word: &Word| {
                    let text = word.prefix();
                    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(changes_programs)
                };
                if arguments.iter().any(|word| word.literal().is_none() || names(word)) {
                    self.unclear_subject(UnclearReason::ProgramVariable, subject);
                }
            }
            "set" | "shopt" => self.shell_options(arguments, subject),
            "enable" => self.unclear_subject(UnclearReason::ShellState, subject),
            "hash" if arguments.iter().any(Word::may_be_option) => {
                self.unclear_subject(UnclearReason::ShellState, subject);
            }
            "bind" | "complete" | "compgen" | "fc" | "history" if !arguments.is_empty() => {
                self.runs_code(subject);
                self.unclear_subject(UnclearReason::ShellState, subject);
            }
            _ => return false,
        }
        true
    }

    fn declaration(&mut self, arguments: &[Word], subject: &Subject<'_>) {
        for argument in arguments {
            let prefix = argument.prefix();
            if prefix.starts_with(['-', '+']) {
                // A reference to another variable sets that one.
                if prefix.contains('n') && subject.words.first().is_some_and(|name| name.prefix() != "export")
                {
                    self.unclear_subject(UnclearReason::ShellState, subject);
                }
            } else if let Some(assignment) = assignment_in(argument) {
                let Assignment { name, value } = assignment;
                self.assignments(&[Assignment { name, value }], None);
            } else if argument.literal().is_none() {
                self.unclear_subject(UnclearReason::ProgramVariable, subject);
            }
        }
    }

    /// Checks operands that may be names of variables that are set.
    fn named_variables(&mut self, arguments: &[Word], subject: &Subject<'_>) {
        for argument in arguments {
            let prefix = argument.prefix();
            let name = prefix.strip_prefix("-v").or_else(|| prefix.strip_prefix("-a")).unwrap_or(&prefix);
            let is_dynamic = argument.literal().is_none() && !prefix.starts_with('-');
            if is_dynamic || changes_programs(name.split('[').next().unwrap_or_default()) {
                self.unclear_subject(UnclearReason::ProgramVariable, subject);
            }
        }
    }

    fn shell_options(&mut self, arguments: &[Word], subject: &Subject<'_>) {
        let is_set = subject.words.first().is_some_and(|name| name.prefix() == "set");
        for argument in arguments {
            let prefix = argument.prefix();
            if is_set && prefix == "--" {
                return;
            }
            let is_cluster = is_set && prefix.starts_with(['-', '+']);
            let is_name = READING_OPTIONS.contains(&prefix.as_str());
            if is_name || is_cluster && prefix.contains(['k', 'H', 'P']) || argument.literal().is_none() {
                self.unclear_subject(UnclearReason::ShellState, subject);
            }
        }
    }
}
