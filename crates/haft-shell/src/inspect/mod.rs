//! From the commands that a script contains to those that it would run: sees through wrappers, and says what is unclear.

mod argument_lists;
pub(crate) mod awk;
mod builtins;
pub(crate) mod git;
mod options;
mod programs;
pub(crate) mod sed;
mod shells;
mod tool_wrapper_table;
mod wrapper_table;
mod wrappers;

use std::collections::HashSet;
use std::ops::Range;

use crate::characters::{first_misleading, is_misleading};
use crate::reader::{self, MAX_DEPTH, ReadCommand, Redirect, SourceMap};
use crate::script::{
    Assignment, FileAccess, FileUse, Invocation, ShellScript, Unclear, UnclearReason, Wrapping,
};
use crate::variables::{changes_programs, value_changes_programs};
use crate::word::{DynamicKind, Word, WordPart, base_name};
use crate::{MAX_COMMANDS_COUNT, MAX_SOURCE_BYTES};

/// Inspects a whole script.
pub(crate) fn inspect(source: &str) -> ShellScript {
    let mut inspection = Inspection::default();
    if source.len() > MAX_SOURCE_BYTES {
        inspection.unclear(UnclearReason::TooLong, 0..source.len());
        return inspection.script;
    }
    if let Some(range) = first_misleading(source) {
        inspection.unclear(UnclearReason::MisleadingCharacter, range);
    }
    inspection.script.complete = inspection.source(source, &SourceMap::At(0), None, 0);
    inspection.mark_shadowed();
    // `x='a[$(rm f)]'; echo $((x))` runs rm.
    if let Some(range) = inspection.code_text.take().filter(|_| inspection.has_arithmetic) {
        inspection.unclear(UnclearReason::EmbeddedCode, range);
    }
    inspection.script
}

/// What the commands of one script have in common.
#[derive(Default)]
struct Inspection {
    script: ShellScript,
    /// Names of functions and aliases that the script defines.
    shadowing: HashSet<String>,
    /// Whether anything evaluates the values of variables again.
    has_arithmetic: bool,
    /// Text that would run a command if it were evaluated.
    code_text: Option<Range<usize>>,
}

/// Where a command gets its standard input from, if a redirection of its own says so.
#[derive(Debug, Clone, Default)]
enum CommandInput {
    #[default]
    Inherited,
    /// A here-document or here-string.
    Text(Word),
    File,
}

/// A command that is about to be inspected.
struct Subject<'a> {
    /// Its index in the list of commands.
    index: usize,
    words: &'a [Word],
    input: &'a CommandInput,
    /// The nesting of wrappers and code in words.
    depth: usize,
}

impl Inspection {
    fn unclear(&mut self, reason: UnclearReason, range: Range<usize>) {
        let unclear = Unclear { reason, range };
        if self.script.unclear.last() != Some(&unclear) {
            self.script.unclear.push(unclear);
        }
    }

    /// Inspects shell code, and tells whether it was read to its end.
    fn source(
        &mut self,
        text: &str,
        source_map: &SourceMap,
        wrapped_by: Option<Wrapping>,
        depth: usize,
    ) -> bool {
        let left = MAX_COMMANDS_COUNT.saturating_sub(self.script.commands.len());
        let read = reader::read(text, source_map.clone(), depth, left);
        self.script.unclear.extend(read.unclear);
        // bash drops NULs. They are reported as misleading.
        if read.complete && !text.contains('\0') {
            let names = read.commands.iter().filter_map(|command| command.name_at).collect();
            if let Some((reason, range)) = crate::agreement::disagreement(text, &names) {
                self.unclear(reason, source_map.map(range));
            }
        }
        self.has_arithmetic |= read.has_arithmetic;
        self.script.has_effects |= read.has_effects;
        self.code_text = self.code_text.take().or(read.code_text);
        self.shadowing.extend(read.functions);
        for (name, range) in read.set_variables {
            if changes_programs(&name) {
                self.unclear(UnclearReason::ProgramVariable, range);
            }
        }
        for command in read.commands {
            self.command(command, &read.heredocs, wrapped_by, depth);
        }
        read.complete
    }

    fn command(
        &mut self,
        command: ReadCommand,
        heredocs: &[Word],
        wrapped_by: Option<Wrapping>,
        depth: usize,
    ) {
        let ReadCommand { words, assignments, redirects, range, .. } = command;
        let input = self.redirects(redirects, heredocs);
        if !words.is_empty() || !assignments.is_empty() {
            self.invocation(&words, assignments, range, wrapped_by, &input, depth);
        }
    }

    /// Notes the files of redirections, and returns what the standard input is.
    fn redirects(&mut self, redirects: Vec<Redirect>, heredocs: &[Word]) -> CommandInput {
        let mut input = CommandInput::Inherited;
        for redirect in redirects {
            let (path, access) = match redirect {
                Redirect::Read(path) => {
                    input = CommandInput::File;
                    (path, FileAccess::Read)
                }
                Redirect::Write(path) => (path, FileAccess::Write),
                Redirect::Append(path) => (path, FileAccess::Append),
                Redirect::Text(word) => {
                    input = CommandInput::Text(word);
                    continue;
                }
                Redirect::Heredoc(index) => {
                    input = heredocs
                        .get(index)
                        .map_or(CommandInput::File, |word| CommandInput::Text(word.clone()));
                    continue;
                }
                Redirect::Descriptor => continue,
            };
            self.file(path, access);
        }
        input
    }

    fn file(&mut self, path: Word, access: FileAccess) {
        if matches!(path.parts.as_slice(), [WordPart::Dynamic { kind: DynamicKind::ProcessSubstitution, .. }])
        {
            return;
        }
        let text: String = path.parts.iter().map(source_of).collect();
        let address = text.strip_prefix("/dev/tcp/").or_else(|| text.strip_prefix("/dev/udp/"));
        let access = match address.and_then(|address| address.split_once('/')) {
            Some((host, port)) => FileAccess::Connect { host: host.to_owned(), port: port.to_owned() },
            None => access,
        };
        if path
            .parts
            .iter()
            .any(|part| matches!(part, WordPart::Text { text, quoted: false } if is_misleading(text)))
        {
            self.unclear(UnclearReason::MisleadingCharacter, path.range.clone());
        }
        self.script.files.push(FileUse { path, access });
    }

    /// Notes a command and what it runs.
    fn invocation(
        &mut self,
        words: &[Word],
        assignments: Vec<Assignment>,
        range: Range<usize>,
        wrapped_by: Option<Wrapping>,
        input: &CommandInput,
        depth: usize,
    ) {
        let index = self.script.commands.len();
        if index >= MAX_COMMANDS_COUNT {
            self.unclear(UnclearReason::TooManyCommands, range);
            return;
        }
        if depth >= MAX_DEPTH {
            self.unclear(UnclearReason::TooDeep, range.clone());
        }
        let is_misled = |word: &Word| {
            word.parts
                .iter()
                .any(|part| matches!(part, WordPart::Text { text, quoted: false } if is_misleading(text)))
        };
        if words.iter().any(is_misled) || assignments.iter().any(|assignment| is_misled(&assignment.value)) {
            self.unclear(UnclearReason::MisleadingCharacter, range.clone());
        }
        self.assignments(&assignments, words.first());
        self.script.commands.push(Invocation {
            words: words.to_vec(),
            assignments,
            range: range.clone(),
            wrapped_by,
            is_transparent: false,
            runs_code: false,
        });
        let Some(name) = words.first() else { return };
        match program_name(name) {
            Some(name) if !name.is_ascii() => self.unclear(UnclearReason::MisleadingCharacter, range),
            Some(name) if depth < MAX_DEPTH => {
                let subject = Subject { index, words, input, depth };
                self.see_through(base_name(&name), &subject);
            }
            Some(_) => {}
            None => self.unclear(UnclearReason::DynamicName, range),
        }
    }

    /// Looks for what a command runs, writes and sets beyond its name.
    fn see_through(&mut self, program: &str, subject: &Subject<'_>) {
        let is_found = self.shell(program, subject)
            || self.builtin(program, subject)
            || self.argument_list(program, subject)
            || self.wrapper(program, subject);
        if is_found {
            return;
        }
        match program {
            "git" => self.git(subject),
            "sed" | "gsed" => self.sed(subject),
            "awk" | "gawk" | "mawk" | "nawk" => self.awk(subject),
            _ => {}
        }
        self.program_options(program, subject);
    }

    /// Notes a command that another one runs.
    fn inner(&mut self, words: &[Word], assignments: Vec<Assignment>, by: &Subject<'_>, transparent: bool) {
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return };
        let range = first.range.start..last.range.end.max(first.range.start);
        let wrapping = Some(Wrapping { by: by.index, transparent });
        self.invocation(words, assignments, range, wrapping, by.input, by.depth + 1);
    }

    /// Inspects words that a command joins to shell code. What is dynamic in them is left as it is written.
    fn code(&mut self, words: &[Word], by: &Subject<'_>) {
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return };
        let range = first.range.start..last.range.end.max(first.range.start);
        if words.iter().any(|word| word.literal().is_none()) {
            self.unclear(UnclearReason::DynamicCode, range.clone());
        }
        if by.depth + 1 >= MAX_DEPTH {
            self.unclear(UnclearReason::TooDeep, range);
            return;
        }
        let text = words
            .iter()
            .map(|word| word.parts.iter().map(source_of).collect())
            .collect::<Vec<String>>()
            .join(" ");
        let wrapping = Some(Wrapping { by: by.index, transparent: false });
        self.source(&text, &SourceMap::Within(range), wrapping, by.depth + 1);
    }

    /// Notes that a command runs code that is not known.
    fn unknown_code(&mut self, by: &Subject<'_>) {
        self.runs_code(by);
        let range = self.range_of(by);
        self.unclear(UnclearReason::DynamicCode, range);
    }

    fn runs_code(&mut self, by: &Subject<'_>) {
        if let Some(command) = self.script.commands.get_mut(by.index) {
            command.runs_code = true;
        }
    }

    fn range_of(&self, subject: &Subject<'_>) -> Range<usize> {
        self.script.commands.get(subject.index).map_or(0..0, |command| command.range.clone())
    }

    fn unclear_subject(&mut self, reason: UnclearReason, subject: &Subject<'_>) {
        let range = self.range_of(subject);
        self.unclear(reason, range);
    }

    /// Notes assignments before a command, or without one, that change which programs run.
    fn assignments(&mut self, assignments: &[Assignment], name: Option<&Word>) {
        let name = name.and_then(Word::literal);
        for Assignment { name: variable, value } in assignments {
            // The builtin that splits a line.
            let is_separator = variable == "IFS" && name.as_deref() == Some("read");
            if value_changes_programs(variable, value) && !is_separator {
                self.unclear(UnclearReason::ProgramVariable, value.range.clone());
            }
        }
    }

    /// Marks the commands whose name is that of a function or an alias.
    fn mark_shadowed(&mut self) {
        let is_shadowed =
            |command: &&Invocation| command.name().is_some_and(|name| self.shadowing.contains(&name));
        let shadowed = self.script.commands.iter().filter(is_shadowed);
        let found: Vec<Unclear> = shadowed
            .map(|command| Unclear { reason: UnclearReason::ShadowedName, range: command.range.clone() })
            .collect();
        self.script.unclear.extend(found);
    }
}

/// The name of a program, if all of it but the user's home is known.
fn program_name(name: &Word) -> Option<String> {
    match name.parts.as_slice() {
        [WordPart::Dynamic { kind: DynamicKind::Tilde, .. }, WordPart::Text { text, .. }] => {
            Some(text.clone())
        }
        _ => name.literal().map(std::borrow::Cow::into_owned),
    }
}

/// How a part is written, after the removal of quotes.
fn source_of(part: &WordPart) -> &str {
    match part {
        WordPart::Text { text, .. } => text,
        WordPart::Dynamic { source, .. } => source,
    }
}
