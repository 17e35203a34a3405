//! Reads bash: a recursive descent over the source that notes each simple command and what is not valid.
//!
//! It reads what `bash -n` reads, and in addition the substitutions in text that `bash -n` only skips. Where the two could
//! differ it says that something is unclear. Recursion is bounded by [`MAX_DEPTH`], work by a number of steps.

mod arithmetic;
mod commands;
mod compound;
mod conditional;
mod cursor;
mod dollar;
mod heredoc;
mod word_reader;

use std::ops::Range;

use crate::script::{Assignment, Unclear, UnclearReason};
use crate::word::Word;
pub(crate) use commands::assignment_in;
use cursor::{SourceCursor, Stop};
use heredoc::PendingHeredoc;

/// Nesting of substitutions, compound commands and code in words that is read.
pub const MAX_DEPTH: usize = 40;
/// Steps per byte of source, beyond [`MIN_STEPS`]. Only text that is read again and again comes near it.
const MAX_STEPS_PER_BYTE: usize = 40;
/// Steps that every source may take.
const MIN_STEPS: usize = 10_000;

/// One simple command as the source has it; without words for assignments and redirections alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadCommand {
    pub(crate) words: Vec<Word>,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) range: Range<usize>,
    /// Where its name is in the text that was read, if that is the text of the reader itself and not of a backtick.
    pub(crate) name_at: Option<usize>,
}

/// A redirection.
#[derive(Debug, Clone)]
pub(crate) enum Redirect {
    Read(Word),
    Write(Word),
    Append(Word),
    /// A here-string.
    Text(Word),
    /// A here-document, by its index in [`ReadScript::heredocs`].
    Heredoc(usize),
    /// A copied or closed descriptor.
    Descriptor,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct ReadScript {
    pub(crate) commands: Vec<ReadCommand>,
    pub(crate) heredocs: Vec<Word>,
    /// The names of functions that are defined.
    pub(crate) functions: Vec<String>,
    /// Variables that are set by other means than an assignment: loops, `${x:=…}`, arithmetic.
    pub(crate) set_variables: Vec<(String, Range<usize>)>,
    pub(crate) unclear: Vec<Unclear>,
    /// Whether there is arithmetic, which evaluates the values of variables again.
    pub(crate) has_arithmetic: bool,
    /// Whether something in it may set a variable or evaluate text, so that it is not read-only.
    pub(crate) has_effects: bool,
    /// A word whose known text has the form of a command substitution.
    pub(crate) code_text: Option<Range<usize>>,
    pub(crate) complete: bool,
}

/// How positions of a text map to the source that was given to the crate.
#[derive(Debug, Clone)]
pub(crate) enum SourceMap {
    /// The text is a part of the source and begins at this offset.
    At(usize),
    /// The text was made of this part of the source by quote removal.
    Within(Range<usize>),
}

impl SourceMap {
    pub(crate) fn map(&self, range: Range<usize>) -> Range<usize> {
        match self {
            Self::At(offset) => range.start + offset..range.end + offset,
            Self::Within(range) => range.clone(),
        }
    }
}

/// Reads `text`, noting at most `max_commands` commands. `depth` is the nesting that has been used up outside of it.
pub(crate) fn read(text: &str, source_map: SourceMap, depth: usize, max_commands: usize) -> ReadScript {
    let max_steps = MIN_STEPS + text.len().saturating_mul(MAX_STEPS_PER_BYTE);
    let mut reader = Reader {
        at: SourceCursor::new(text, max_steps),
        source_map,
        depth,
        max_commands,
        is_for_header: false,
        found: Found::default(),
        pending: Vec::new(),
    };
    let end = reader.script();
    let complete = match end {
        Ok(()) => true,
        Err(stop) => {
            let range = reader.source_map.map(stop.at..text.len().max(stop.at));
            reader.found.unclear.push(Unclear { reason: stop.reason, range });
            false
        }
    };
    let Found {
        commands,
        heredocs,
        functions,
        set_variables,
        unclear,
        has_arithmetic,
        has_effects,
        code_text,
    } = reader.found;
    let commands = commands.into_iter().flatten().collect();
    let heredocs = heredocs.into_iter().map(Option::unwrap_or_default).collect();
    ReadScript {
        commands,
        heredocs,
        functions,
        set_variables,
        unclear,
        has_arithmetic,
        has_effects,
        code_text,
        complete,
    }
}

/// What has been found so far. Commands keep the place at which they begin, so that they come before those inside them.
#[derive(Debug, Default)]
struct Found {
    commands: Vec<Option<ReadCommand>>,
    heredocs: Vec<Option<Word>>,
    functions: Vec<String>,
    set_variables: Vec<(String, Range<usize>)>,
    unclear: Vec<Unclear>,
    has_arithmetic: bool,
    has_effects: bool,
    code_text: Option<Range<usize>>,
}

/// The lengths of the lists of [`Found`], to return to them.
struct FoundMark([usize; 6], usize);

struct Reader<'a> {
    at: SourceCursor<'a>,
    source_map: SourceMap,
    depth: usize,
    max_commands: usize,
    /// Whether the arithmetic that is being read is that of `for ((…))`.
    is_for_header: bool,
    found: Found,
    /// The here-documents whose text begins after the next newline.
    pending: Vec<PendingHeredoc>,
}

impl Reader<'_> {
    fn script(&mut self) -> Result<(), Stop> {
        self.skip_newlines()?;
        if !self.at.is_at_end() {
            self.list()?;
        }
        self.blanks()?;
        if !self.at.is_at_end() {
            return Err(self.at.syntax());
        }
        self.read_heredocs()
    }

    /// Runs `read` one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if self.depth >= MAX_DEPTH {
            return Err(self.at.stop(UnclearReason::TooDeep));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn unclear(&mut self, reason: UnclearReason, from: usize) {
        let range = self.source_map.map(from..self.at.position());
        self.found.unclear.push(Unclear { reason, range });
    }

    fn note_text(&mut self, word: &Word) {
        self.found.has_effects |= !word.is_plain();
        if word.has_code_text() {
            self.found.code_text.get_or_insert_with(|| word.range.clone());
        }
    }

    fn mark(&self) -> FoundMark {
        let found = &self.found;
        let lengths = [
            found.commands.len(),
            found.heredocs.len(),
            found.functions.len(),
            found.set_variables.len(),
            found.unclear.len(),
            self.pending.len(),
        ];
        FoundMark(lengths, self.at.position())
    }

    /// Forgets what was found since `mark` and returns to its position.
    fn return_to(&mut self, mark: &FoundMark) {
        let FoundMark([commands, heredocs, functions, set_variables, unclear, pending], position) = *mark;
        self.found.commands.truncate(commands);
        self.found.heredocs.truncate(heredocs);
        self.found.functions.truncate(functions);
        self.found.set_variables.truncate(set_variables);
        self.found.unclear.truncate(unclear);
        self.pending.truncate(pending);
        self.at.return_to(position);
    }
}
