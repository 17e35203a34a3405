//! Applies the table of wrappers to a command.

use super::options::ReadOptions;
use super::tool_wrapper_table::TOOL_WRAPPERS;
use super::wrapper_table::{InnerCommand, WRAPPERS, Wrapper};
use super::{Inspection, Subject};
use crate::reader::assignment_in;
use crate::script::UnclearReason;
use crate::word::Word;

impl Inspection {
    /// Sees through a wrapper, if the command is one.
    pub(super) fn wrapper(&mut self, program: &str, subject: &Subject<'_>) -> bool {
        for wrapper in WRAPPERS.iter().chain(TOOL_WRAPPERS) {
            for name in wrapper.names {
                let mut parts = name.split(' ');
                if parts.next() != Some(program) {
                    continue;
                }
                if let Some((start, is_certain)) = after_subcommands(subject.words, parts) {
                    if !is_certain {
                        self.unclear_subject(UnclearReason::WrapperOptions, subject);
                    }
                    self.apply(wrapper, subject, start);
                    return true;
                }
            }
        }
        false
    }

    /// Sees through `wrapper`, whose arguments begin at `start`.
    fn apply(&mut self, wrapper: &Wrapper, subject: &Subject<'_>, start: usize) {
        let arguments = subject.words.get(start..).unwrap_or_default();
        let mut options = wrapper.options.read(arguments);
        if matches!(wrapper.inner, InnerCommand::OptionsOnly) {
            read_permuted(wrapper, arguments, &mut options);
        }
        if options.has(wrapper.unclear) {
            self.unclear_subject(UnclearReason::WrapperOptions, subject);
        }
        if options.has(wrapper.without) {
            return;
        }
        let operands = arguments.get(options.operands_at..).unwrap_or_default();
        if options.is_uncertain {
            self.unclear_subject(UnclearReason::WrapperOptions, subject);
            // The first operand may be the value of the option that is not known.
            self.operands(wrapper, subject, operands.get(1..).unwrap_or_default());
        }
        let mut has_command = false;
        for (name, value) in &options.given {
            if let Some(value) = value.as_ref().filter(|_| wrapper.code.contains(&name.as_str())) {
                has_command = true;
                self.code(std::slice::from_ref(value), subject);
            }
        }
        has_command |= self.operands(wrapper, subject, operands);
        if !has_command && (wrapper.starts_shell || options.has(wrapper.shell)) {
            self.unknown_code(subject);
        }
    }

    /// Sees through the operands of a wrapper, and tells whether there was a command.
    fn operands(&mut self, wrapper: &Wrapper, subject: &Subject<'_>, operands: &[Word]) -> bool {
        let (skipped, is_code) = match wrapper.inner {
            InnerCommand::Words(skipped) => (skipped, false),
            InnerCommand::Code(skipped) => (skipped, true),
            InnerCommand::AfterAssignments => (0, false),
            InnerCommand::OptionsOnly => return false,
        };
        if operands.iter().take(skipped).any(Word::may_split) {
            self.unclear_subject(UnclearReason::WrapperOptions, subject);
        }
        let mut rest = operands.get(skipped..).unwrap_or_default();
        // `flock FILE -c CODE`
        if let [option, code, ..] = rest
            && option.literal().is_some_and(|text| wrapper.code.contains(&&*text))
        {
            self.code(std::slice::from_ref(code), subject);
            return true;
        }
        if skipped > 0 && rest.first().and_then(Word::literal).as_deref() == Some("--") {
            rest = rest.get(1..).unwrap_or_default();
        }
        // `env -` is `env -i`.
        if matches!(wrapper.inner, InnerCommand::AfterAssignments)
            && rest.first().and_then(Word::literal).as_deref() == Some("-")
        {
            rest = rest.get(1..).unwrap_or_default();
        }
        let mut assignments = Vec::new();
        if matches!(wrapper.inner, InnerCommand::AfterAssignments) {
            let count = rest.iter().map_while(assignment_in).map(|found| assignments.push(found)).count();
            rest = rest.get(count..).unwrap_or_default();
        }
        if rest.is_empty() {
            self.assignments(&assignments, None);
            return false;
        }
        if is_code {
            self.code(rest, subject);
            return true;
        }
        // A path could name any program.
        let is_plain = subject.words.first().is_some_and(|name| !name.prefix().contains('/'));
        let transparent = wrapper.transparent && is_plain;
        if transparent && let Some(command) = self.script.commands.get_mut(subject.index) {
            command.is_transparent = true;
        }
        self.inner(rest, assignments, subject, transparent);
        true
    }
}

/// Reads options that stand after operands, as `su` allows.
fn read_permuted(wrapper: &Wrapper, arguments: &[Word], options: &mut ReadOptions) {
    while options.operands_at + 1 < arguments.len() {
        let from = options.operands_at + 1;
        let more = wrapper.options.read(arguments.get(from..).unwrap_or_default());
        options.operands_at = from + more.operands_at;
        options.is_uncertain |= more.is_uncertain;
        options.given.extend(more.given);
    }
}

/// The index after these subcommands, and whether no options before them make it uncertain. Without subcommands it is the
/// index of the first argument.
fn after_subcommands<'a>(
    words: &[Word],
    subcommands: impl Iterator<Item = &'a str>,
) -> Option<(usize, bool)> {
    let (mut at, mut is_certain) = (1, true);
    for subcommand in subcommands {
        let rest = words.get(at..)?;
        let is_subcommand = |word: &Word| word.literal().is_some_and(|text| text == subcommand);
        let found = rest.iter().position(is_subcommand)?;
        // Only options and their values may come before it.
        if found > 0 && !rest.first().is_some_and(Word::may_be_option) {
            return None;
        }
        is_certain &= found == 0;
        at += found + 1;
    }
    Some((at, is_certain))
}
