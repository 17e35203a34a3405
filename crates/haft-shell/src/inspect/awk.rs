//! awk programs: whether one may run a command or write a file.

use super::options::OptionSpec;
use super::{Inspection, Subject};
use crate::script::UnclearReason;
use crate::word::Word;

const AWK: OptionSpec = OptionSpec {
    flags: "bcCghIkMnNOPrsStV",
    values: "FvefilE",
    attached: "dpDoLW",
    long_flags: "posix traditional re-interval sandbox characters-as-bytes csv non-decimal-data optimize version",
    long_values: "field-separator assign source file include load exec",
};

impl Inspection {
    pub(super) fn awk(&mut self, subject: &Subject<'_>) {
        if !only_prints(subject.words.get(1..).unwrap_or_default()) {
            self.unclear_subject(UnclearReason::EmbeddedCode, subject);
        }
    }
}

/// Whether the arguments of awk have a program that neither runs commands nor writes files.
pub(crate) fn only_prints(arguments: &[Word]) -> bool {
    let options = AWK.read(arguments);
    let is_other = |(name, _): &(String, Option<Word>)| {
        !matches!(name.as_str(), "-F" | "-v" | "--field-separator" | "--assign" | "--csv" | "--posix")
    };
    if options.is_uncertain || options.given.iter().any(is_other) {
        return false;
    }
    let program = arguments.get(options.operands_at).and_then(Word::literal);
    program.is_some_and(|program| is_plain(&program))
}

/// Whether a program has nothing that runs a command, reads one, or redirects output. Before the first `print`, `>` compares.
fn is_plain(program: &str) -> bool {
    let without_or = program.replace("||", "");
    let redirects = program.find("print").is_some_and(|at| program[at..].contains('>'));
    !redirects
        && !without_or.contains(['|', '@'])
        && !["system", "getline", "close"].iter().any(|word| program.contains(word))
}
