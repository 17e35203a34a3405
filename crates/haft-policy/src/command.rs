//! Matching rules against shell commands.
//!
//! This is a courtesy for prompts, never a boundary: a program that is allowed can run any other. It errs to the safe side twice:
//! allowing rules hold only for what is understood, others if any part may be meant.

use std::cell::OnceCell;
use std::ops::Range;

use haft_shell::{FileAccess, Invocation, ShellScript, Word, Wrapping};
use haft_tool::Effect;
use haft_tool::net::Authority;

use crate::wildcard::wildcard;

/// An effect with its text parsed: once, and only if a rule or a mode needs to know.
#[derive(Debug)]
pub(crate) struct EffectView<'a> {
    pub(crate) effect: &'a Effect,
    command: OnceCell<ParsedCommand>,
    place: OnceCell<Option<Authority>>,
}

impl<'a> EffectView<'a> {
    pub(crate) fn of(effect: &'a Effect) -> Self {
        Self { effect, command: OnceCell::new(), place: OnceCell::new() }
    }

    pub(crate) fn all(effects: &'a [Effect]) -> Vec<Self> {
        effects.iter().map(Self::of).collect()
    }

    /// The command, if the effect is one.
    pub(crate) fn command(&self) -> Option<&ParsedCommand> {
        match self.effect {
            Effect::Run { command } => Some(self.command.get_or_init(|| ParsedCommand::of(command))),
            _ => None,
        }
    }

    /// The place, if the effect reaches one.
    pub(crate) fn place(&self) -> Option<&Authority> {
        match self.effect {
            Effect::Reach { host } => self.place.get_or_init(|| Authority::parse(host).ok()).as_ref(),
            _ => None,
        }
    }
}

/// A shell command, as rules see it.
#[derive(Debug)]
pub(crate) struct ParsedCommand {
    pub(crate) script: ShellScript,
    written: String,
    parts: Vec<CommandPart>,
}

/// A simple command in it.
#[derive(Debug)]
struct CommandPart {
    text: String,
    /// How rules that deny or ask may also write it, if that differs.
    plain_text: Option<String>,
    wrapped_by: Option<Wrapping>,
    /// Whether it is allowed only if a rule allows it.
    needs_rule: bool,
}

impl ParsedCommand {
    fn of(command: &str) -> Self {
        let script = haft_shell::parse(command);
        let part = |invocation: &Invocation| {
            let text = invocation.text();
            let plain_text = Some(invocation.program_text()).filter(|plain| *plain != text);
            // Where something else has an effect, a command by itself does not only read.
            let only_reads = !script.has_effects && haft_shell::is_read_only(invocation);
            let needs_rule = !invocation.is_transparent && !invocation.words.is_empty() && !only_reads;
            CommandPart { text, plain_text, wrapped_by: invocation.wrapped_by, needs_rule }
        };
        let parts = script.commands.iter().map(part).collect();
        Self { script, written: command.to_owned(), parts }
    }

    /// Whether a rule that denies or asks may be meant by any part.
    pub(crate) fn is_touched(&self, pattern: &CommandPattern) -> bool {
        let in_parts = self.parts.iter().any(|part| {
            pattern.matches(&part.text) || part.plain_text.as_ref().is_some_and(|text| pattern.matches(text))
        });
        in_parts || (!self.script.is_clear() && self.may_contain(pattern))
    }

    /// A piece of the command, not too long for a message.
    pub(crate) fn script_text(&self, range: Range<usize>) -> String {
        const MAX_CHARS: usize = 60;
        let text = self.written.get(range).unwrap_or_default();
        let cut: String = text.chars().take(MAX_CHARS).collect();
        if cut.len() < text.len() { format!("{cut}…") } else { cut }
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = PartOf<'_>> {
        (0..self.parts.len()).map(|index| PartOf { command: self, index })
    }

    /// Whether any piece of the source matches, of which no more is known.
    fn may_contain(&self, pattern: &CommandPattern) -> bool {
        let ends = [';', '|', '&', '\n', '\r', '(', ')', '{', '}', '`', '$', '<', '>', '"', '\''];
        let mut pieces = self.written.split(ends).chain([&*self.written]).map(single_spaces);
        pieces.any(|piece| pattern.matches(&piece))
    }

    /// Whether a rule that allows means the command: it covers a part, and all that need a rule.
    pub(crate) fn is_covered(&self, pattern: &CommandPattern) -> bool {
        let mut parts = self.parts();
        let all_covered =
            || self.uncovered(|part| part.is_covered(pattern)).is_some_and(|rest| rest.is_empty());
        self.is_exactly(pattern) || (parts.any(|part| part.is_covered(pattern)) && all_covered())
    }

    /// Whether the pattern is the command as it is written, so that it was allowed whether it is understood or not.
    pub(crate) fn is_exactly(&self, pattern: &CommandPattern) -> bool {
        matches!(pattern, CommandPattern::Exact { written, .. } if written == self.written.trim())
    }

    /// The commands in it that need a rule and for which `is_allowed` finds none; `None` if it is not understood.
    pub(crate) fn uncovered<'a>(&'a self, is_allowed: impl Fn(PartOf<'a>) -> bool) -> Option<Vec<&'a str>> {
        let uncovered = |(index, part): (usize, &'a CommandPart)| {
            let is_covered = !part.needs_rule || is_allowed(PartOf { command: self, index });
            (!is_covered).then_some(part.text.as_str())
        };
        self.script.is_clear().then(|| self.parts.iter().enumerate().filter_map(uncovered).collect())
    }

    /// The files that redirections and a few programs write, as paths if they are known.
    pub(crate) fn written_files(&self) -> impl Iterator<Item = Option<String>> {
        let written = self.script.files.iter().filter(|file| match file.access {
            FileAccess::Read => false,
            FileAccess::Write | FileAccess::Append => !file.is_discarded(),
            _ => true,
        });
        // Where a relative path leads is not known after `cd`.
        let moves = self.parts.iter().any(|part| {
            let name = part.text.split(' ').next().unwrap_or_default();
            matches!(name, "cd" | "pushd" | "popd")
        });
        written.map(move |file| {
            let path = file.path.literal().filter(|_| !matches!(file.access, FileAccess::Connect { .. }))?;
            let is_known = path.starts_with('/') || !moves;
            is_known.then(|| path.into_owned())
        })
    }
}

/// A simple command among those of a whole one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartOf<'a> {
    command: &'a ParsedCommand,
    index: usize,
}

impl PartOf<'_> {
    /// Whether the pattern matches it, or a command that runs it and names it.
    pub(crate) fn is_covered(self, pattern: &CommandPattern) -> bool {
        let Some(part) = self.command.parts.get(self.index) else { return false };
        if pattern.matches(&part.text) {
            return true;
        }
        let mut wrapping = part.wrapped_by;
        while let Some(Wrapping { by, .. }) = wrapping {
            let Some(outer) = self.command.parts.get(by) else { return false };
            if pattern.matches(&outer.text) && pattern.names_in(&outer.text, &part.text) {
                return true;
            }
            wrapping = outer.wrapped_by;
        }
        false
    }
}

/// What a rule says of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandPattern {
    /// This command.
    Exact {
        /// In the form of [`Invocation::text`].
        text: String,
        written: String,
    },
    /// The words of this beginning, alone or with others behind them: `prefix:*` and `prefix *`.
    Prefix(String),
    /// `*` spans anything.
    Wildcard(String),
}

impl CommandPattern {
    pub(crate) fn new(written: &str) -> Self {
        let written = written.trim();
        if let Some(prefix) = written.strip_suffix(":*") {
            return Self::Prefix(as_compared(prefix));
        }
        let text = single_spaces(written);
        match text.strip_suffix(" *") {
            Some(prefix) if !prefix.contains('*') => Self::Prefix(as_compared(prefix)),
            _ if text.contains('*') => Self::Wildcard(text),
            _ => Self::Exact { text: as_compared(&text), written: written.to_owned() },
        }
    }

    fn matches(&self, command: &str) -> bool {
        match self {
            Self::Exact { text, .. } => text == command,
            Self::Prefix(prefix) => command
                .strip_prefix(prefix.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')),
            Self::Wildcard(pattern) => wildcard(pattern, command),
        }
    }

    /// Whether it names the command `inner` at the end of `outer`, instead of leaving open what `outer` runs.
    fn names_in(&self, outer: &str, inner: &str) -> bool {
        let Some(before) = outer.strip_suffix(inner) else { return matches!(self, Self::Exact { .. }) };
        let name_end = before.len() + inner.split(' ').next().unwrap_or_default().len();
        match self {
            Self::Exact { .. } => true,
            Self::Prefix(prefix) => prefix.len() >= name_end,
            Self::Wildcard(pattern) => pattern.find('*').is_some_and(|star| star >= name_end),
        }
    }
}

/// Commands are compared in the form of [`Invocation::text`], which may have other quotes.
fn as_compared(text: &str) -> String {
    if text.contains(['\'', '"', '\\']) {
        let script = haft_shell::parse(text);
        if let (true, [command, ..]) = (script.is_clear() && script.files.is_empty(), &*script.commands)
            && command.assignments.is_empty()
            && script.commands.iter().skip(1).all(|inner| inner.wrapped_by.is_some())
        {
            return command.text();
        }
    }
    single_spaces(text)
}

/// The specifiers of rules that would allow a command, the narrowest first: what in it needs a rule, as it is written, or the beginning of
/// it. None if several commands need one, or it is not understood.
pub fn command_specifiers(command: &str) -> Vec<String> {
    let command = ParsedCommand::of(command);
    let needing: Vec<usize> = (0..command.parts.len()).filter(|at| command.parts[*at].needs_rule).collect();
    let ([only], true) = (needing.as_slice(), command.script.is_clear()) else { return Vec::new() };
    let (Some(part), Some(invocation)) = (command.parts.get(*only), command.script.commands.get(*only))
    else {
        return Vec::new();
    };
    // What a program that runs code may do is not in its first words.
    let beginning = || {
        let words: Option<Vec<String>> = invocation.words.iter().take(2).map(plain_word).collect();
        words
            .filter(|words| words.len() == 2 && !invocation.runs_code)
            .map(|words| format!("{}:*", words.join(" ")))
    };
    let exact =
        Some(part.text.clone()).filter(|text| !text.contains(['*', '\'', '"', '\\', '(', ')', ',', ':']));
    exact.into_iter().chain(beginning()).collect()
}

/// A word that is no option and needs no quotes.
fn plain_word(word: &Word) -> Option<String> {
    let text = word.literal()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/-+".contains(c);
    (!text.starts_with('-') && !text.is_empty() && text.chars().all(is_plain)).then(|| text.into_owned())
}

/// Single spaces between words, so that spacing does not fool a rule.
fn single_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(pattern: &str, command: &str) -> bool {
        ParsedCommand::of(command).is_covered(&CommandPattern::new(pattern))
    }

    fn touches(pattern: &str, command: &str) -> bool {
        ParsedCommand::of(command).is_touched(&CommandPattern::new(pattern))
    }

    #[test]
    fn an_allowing_rule_covers_what_is_understood() {
        assert!(covers("make:*", "make -j 4"));
        assert!(covers("make *", "make   all") && covers("make *", "make"));
        assert!(covers("git commit:*", "git commit -m 'a; b'"));
        assert!(covers("git commit:*", "git commit -m \"$(cat notes)\""));
        assert!(!covers("make:*", "makes") && !covers("make *", "make; rm x"));
        assert!(covers("*", "make && rm x"));
        assert!(!covers("make *", "make $(rm x)") && !covers("make *", "make \"`rm x`\""));
        assert!(!covers("make *", "make 'unterminated") && !covers("eval:*", "eval \"$x\""));
        assert!(covers("eval \"$x\"", "eval \"$x\"") && !covers("echo x rm y", "echo x\nrm y"));
        assert!(covers("make:*", "make | head") && !covers("make:*", "head x"));
        assert!(covers("npm test \"a b\"", "npm test 'a b'") && covers("npm test 'a b'", "npm test 'a b'"));
    }

    #[test]
    fn a_wrapper_that_a_rule_names_with_its_command_covers_that_command() {
        assert!(covers("sudo apt-get install:*", "sudo apt-get install jq"));
        assert!(covers("timeout 5 npm test", "timeout 5 npm test"));
        assert!(covers("npm test", "timeout 5 npm test"));
        assert!(!covers("sudo:*", "sudo rm x") && !covers("timeout:*", "timeout 5 rm x"));
        assert!(!covers("xargs:*", "xargs rm"));
    }

    #[test]
    fn narrowest_specifiers_of_a_command_are_what_needs_a_rule() {
        let specifiers = |command: &str| command_specifiers(command).join(" | ");
        assert_eq!(specifiers("npm test"), "npm test | npm test:*");
        assert_eq!(specifiers("cd sub && timeout 5 npm run build | tail -5"), "npm run build | npm run:*");
        assert_eq!(specifiers("git commit -m 'a b'"), "git commit:*");
        assert_eq!(specifiers("rm -rf 'a b'"), "");
        assert_eq!(specifiers("python3 -c 'print(1)'"), "");
        assert_eq!(specifiers("make && npm test"), "");
        assert_eq!(specifiers("eval \"$x\""), "");
    }

    #[test]
    fn a_denying_rule_sees_every_part() {
        assert!(touches("rm:*", "make && /bin/rm -rf x") && touches("rm *", "echo $(rm x)"));
        assert!(touches("rm *", "ls\nrm  x") && touches("rm *", "sudo -u me r''m x"));
        assert!(touches("rm *", "'unterminated; rm x"));
        assert!(touches("git push:*", "git -C sub -c color.ui=never push origin"));
        assert!(!touches("rm *", "firm x") && !touches("rm *", "git commit -m 'no; rm x'"));
    }
}
