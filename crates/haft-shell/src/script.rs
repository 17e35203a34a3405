//! What is known of a script: the commands it runs, the files it opens, and what is not understood.

use std::fmt;
use std::ops::Range;

use crate::inspect::git;
use crate::word::{Word, WordPart, base_name};

/// What a script would run and touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellScript {
    /// Every simple command wherever it is, a command before those inside it and those it wraps.
    pub commands: Vec<Invocation>,
    /// The files that redirections open, and those that a few programs write by an option or operand.
    pub files: Vec<FileUse>,
    /// What is not understood. If this is not empty, the lists above may lack something.
    pub unclear: Vec<Unclear>,
    /// Whether the script was read to its end as valid bash, as `bash -n` would.
    pub complete: bool,
    /// Whether something beside its commands, as `${x:=y}`, `$((…))` or the variable of a loop, may set a variable that has a
    /// meaning or evaluate text again.
    pub has_effects: bool,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The name and the arguments. Empty for assignments or redirections alone.
    pub words: Vec<Word>,
    /// The variable assignments before the name.
    pub assignments: Vec<Assignment>,
    /// Where it is in the source.
    pub range: Range<usize>,
    /// The command that runs this one, as `sudo` runs its operand.
    pub wrapped_by: Option<Wrapping>,
    /// Whether it is a transparent wrapper whose inner command is in the list, so that no rule has to cover it.
    pub is_transparent: bool,
    /// Whether it runs code that is not one of the listed commands, as `python -c` and `source` do.
    pub runs_code: bool,
}

/// How a command is run by another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrapping {
    /// The index of the other command in [`ShellScript::commands`].
    pub by: usize,
    /// Whether the other command runs it with the same rights and the same meaning, as `nice` does and `sudo` does not.
    pub transparent: bool,
}

/// A variable assignment before a command, or one that is a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Its value; for an array, a word that is not literal.
    pub value: Word,
}

/// A file that is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// The path as the script gives it.
    pub path: Word,
    /// What it is opened for.
    pub access: FileAccess,
}

/// What a file is opened for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileAccess {
    /// `<`.
    Read,
    /// `>`, `>|`, `&>`, and `<>`, which may do both.
    Write,
    /// `>>`, `&>>`.
    Append,
    /// `/dev/tcp/HOST/PORT` or `/dev/udp/HOST/PORT`, with which bash connects to a host. Parts that are not literal are as
    /// written.
    Connect {
        /// The host.
        host: String,
        /// The port or service.
        port: String,
    },
}

/// Something that is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unclear {
    /// Why.
    pub reason: UnclearReason,
    /// Where in the source.
    pub range: Range<usize>,
}

/// Why something is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnclearReason {
    /// bash would refuse the script, or this crate cannot read it.
    Syntax,
    /// A quote, a substitution or a here-document does not end.
    Unterminated,
    /// The name of a command is known only when the script runs.
    DynamicName,
    /// Shell code is known only when the script runs, as in `eval "$x"` or `curl … | sh`.
    DynamicCode,
    /// A wrapper has an option that this crate does not know, or words whose number is not fixed.
    WrapperOptions,
    /// A name is that of a function or an alias which the script defines.
    ShadowedName,
    /// A variable changes which programs run, as `PATH` does.
    ProgramVariable,
    /// The shell is told to read the commands that follow in another way.
    ShellState,
    /// Text in another language, such as awk or sed, may run commands or write files.
    EmbeddedCode,
    /// A control character, or a character that is invisible or looks like another one.
    MisleadingCharacter,
    /// bash may read it in another way than this crate does.
    Ambiguous,
    /// The second reader, the bash grammar of tree-sitter, refuses it or finds other commands.
    SecondReader,
    /// The source is longer than [`MAX_SOURCE_BYTES`](crate::MAX_SOURCE_BYTES).
    TooLong,
    /// More nesting than [`MAX_DEPTH`](crate::MAX_DEPTH).
    TooDeep,
    /// More than [`MAX_COMMANDS_COUNT`](crate::MAX_COMMANDS_COUNT) commands.
    TooManyCommands,
    /// Reading it would take too many steps.
    TooMuchWork,
}

impl fmt::Display for UnclearReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "is not valid bash",
            Self::Unterminated => "is not terminated",
            Self::DynamicName => "is a command whose name is known only when it runs",
            Self::DynamicCode => "is code that is known only when it runs",
            Self::WrapperOptions => "has options that hide which command it runs",
            Self::ShadowedName => "is a function or an alias, not the program of this name",
            Self::ProgramVariable => "sets a variable that changes which programs run",
            Self::ShellState => "changes how the shell reads commands",
            Self::EmbeddedCode => "has code in another language that may run commands or write files",
            Self::MisleadingCharacter => "has characters that do not look like what they are",
            Self::Ambiguous => "can be read in several ways",
            Self::SecondReader => "is read differently by a second parser",
            Self::TooLong => "is too long",
            Self::TooDeep => "is nested too deeply",
            Self::TooManyCommands => "has too many commands",
            Self::TooMuchWork => "is too complex",
        })
    }
}

impl ShellScript {
    /// Whether everything was understood, so that the lists lack nothing.
    pub fn is_clear(&self) -> bool {
        self.complete && self.unclear.is_empty()
    }

    /// The commands that rules have to cover before the script is allowed: all but transparent wrappers and assignments.
    pub fn to_cover(&self) -> impl Iterator<Item = &Invocation> {
        self.commands.iter().filter(|command| !command.is_transparent && !command.words.is_empty())
    }

    /// Whether the script is clear and only reads: each command is read-only, no expansion has an effect, and no redirection
    /// writes a file, connects, or reads a file whose name is not known.
    pub fn is_read_only(&self) -> bool {
        self.is_clear()
            && !self.has_effects
            && self.commands.iter().all(crate::is_read_only)
            && self.files.iter().all(|file| match file.access {
                // Other paths may turn out to be ones with which bash connects.
                FileAccess::Read => file.path.literal().is_some(),
                FileAccess::Write | FileAccess::Append => file.is_discarded(),
                FileAccess::Connect { .. } => false,
            })
    }
}

impl FileUse {
    /// Whether the path is `/dev/null` or a standard stream, so that no file changes.
    pub fn is_discarded(&self) -> bool {
        let path = self.path.literal();
        path.is_some_and(|path| matches!(&*path, "/dev/null" | "/dev/stdout" | "/dev/stderr"))
    }
}

impl Invocation {
    /// The name of the command as given, if it is literal.
    pub fn name(&self) -> Option<String> {
        self.words.first().and_then(Word::literal).map(std::borrow::Cow::into_owned)
    }

    /// The last part of the name: `rm` for `/bin/rm`.
    pub fn program(&self) -> Option<String> {
        self.name().map(|name| base_name(&name).to_owned())
    }

    /// The command on one line with single spaces, for the comparison with a rule. Assignments are not part of it.
    pub fn text(&self) -> String {
        self.words.iter().map(Word::text).collect::<Vec<_>>().join(" ")
    }

    /// Like [`text`](Self::text), but with the last part of the name only and without the options before git's subcommand, for
    /// rules that deny a program wherever it is and however it is told where to work.
    pub fn program_text(&self) -> String {
        let Some((program, arguments)) = self.program().zip(self.words.get(1..)) else { return self.text() };
        let arguments = if program == "git" { git::without_global_options(arguments) } else { arguments };
        let name = Word { parts: vec![WordPart::Text { text: program, quoted: false }], range: 0..0 };
        std::iter::once(&name).chain(arguments).map(Word::text).collect::<Vec<_>>().join(" ")
    }
}
