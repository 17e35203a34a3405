//! Whether a command only reads and prints.

use crate::inspect::{awk, sed};
use crate::read_only_table::{
    AllowedOperands, AllowedOptions, READ_ONLY_PROGRAMS, ReadOnlyProgram, VERSION_OPTIONS, VERSIONED_PROGRAMS,
};
use crate::script::Invocation;
use crate::word::{Word, WordPart};
use crate::{read_only_arguments, read_only_git};

/// Whether the command is known to write no file, to run no other program and to reach no network. The commands inside its
/// words and those it wraps are commands of their own, and so are the files of its redirections.
pub fn is_read_only(command: &Invocation) -> bool {
    if command.runs_code || !command.assignments.is_empty() || !command.words.iter().all(Word::is_plain) {
        return false;
    }
    if command.is_transparent {
        return command.program().is_none_or(|program| program != "nohup");
    }
    let Some((name, arguments)) = command.words.split_first() else { return true };
    // A path could name any program, so only plain names are known.
    let Some(name) = name.literal() else { return false };
    if let [argument] = arguments
        && VERSIONED_PROGRAMS.contains(&&*name)
        && argument.literal().is_some_and(|text| VERSION_OPTIONS.contains(&&*text))
    {
        return true;
    }
    match &*name {
        "git" => read_only_git::is_read_only(arguments),
        "sed" => sed::only_prints(arguments),
        "awk" | "gawk" | "mawk" => awk::only_prints(arguments),
        "xargs" => read_only_arguments::xargs(arguments),
        "printf" => read_only_arguments::printf(arguments),
        "read" => read_only_arguments::read(arguments),
        "test" => read_only_arguments::test(arguments),
        "[" => arguments.split_last().is_some_and(|(_, arguments)| read_only_arguments::test(arguments)),
        "set" => arguments.iter().all(|word| {
            let text = word.literal();
            text.is_some_and(|text| {
                *text == *"pipefail"
                    || text.starts_with(['-', '+']) && text[1..].chars().all(|c| "eoux".contains(c))
            })
        }),
        name => {
            let found = READ_ONLY_PROGRAMS.iter().find(|program| program.names.contains(&name));
            found.is_some_and(|program| program.allows(arguments))
        }
    }
}

impl ReadOnlyProgram {
    fn allows(&self, arguments: &[Word]) -> bool {
        let mut only_operands = false;
        let mut operand_count = 0_usize;
        for argument in arguments {
            let text = argument.prefix();
            let is_literal = argument.literal().is_some();
            if !only_operands && is_literal && text == "--" {
                only_operands = true;
            } else if !only_operands && argument.may_be_option() && text != "-" {
                if !self.options.allows(argument) {
                    return false;
                }
            } else {
                operand_count += 1;
                if matches!(self.operands, AllowedOperands::Formats) && !is_format(argument) {
                    return false;
                }
            }
            let is_counted = matches!(self.operands, AllowedOperands::AtMost(_));
            if is_counted && !is_literal && argument.may_split() {
                return false;
            }
        }
        match self.operands {
            AllowedOperands::Any | AllowedOperands::Formats => true,
            AllowedOperands::AtMost(max) => operand_count <= max,
        }
    }
}

impl AllowedOptions {
    /// Whether a word that is or may be an option is allowed.
    fn allows(self, word: &Word) -> bool {
        if let Self::Any = self {
            return true;
        }
        let text = word.prefix();
        let starts_as_option =
            matches!(word.parts.first(), Some(WordPart::Text { .. })) && text.starts_with('-');
        let is_split = word.literal().is_none() && word.may_split();
        if !starts_as_option || is_split {
            return false;
        }
        let name = text.split('=').next().unwrap_or_default();
        match self {
            Self::Any => true,
            Self::AllBut(letters, long) => match name.strip_prefix("--") {
                // Names can be abbreviated.
                Some(name) => !long.iter().any(|forbidden| forbidden.starts_with(name)),
                None => word.literal().is_some() && !text.contains(|c| letters.contains(c)),
            },
            Self::Only(letters, long) => match name.strip_prefix("--") {
                Some(name) => long.contains(&name),
                None => word.literal().is_some() && text.chars().skip(1).all(|c| letters.contains(c)),
            },
            Self::NamesBut(names) => {
                word.literal().is_some() && !names.iter().any(|forbidden| text.starts_with(forbidden))
            }
        }
    }
}

/// Whether an operand of `date` is a format, which begins with a plus sign.
fn is_format(word: &Word) -> bool {
    word.prefix().starts_with('+')
}
