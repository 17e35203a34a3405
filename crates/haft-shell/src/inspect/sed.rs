//! sed scripts: whether one runs a command or writes a file.

use std::iter::Peekable;
use std::str::Chars;

use super::options::OptionSpec;
use super::{Inspection, Subject};
use crate::script::{FileAccess, UnclearReason};
use crate::word::Word;

const SED: OptionSpec = OptionSpec {
    flags: "nrEsuz",
    values: "efl",
    attached: "iI",
    long_flags: "debug in-place null-data posix quiet regexp-extended sandbox separate silent unbuffered zero-terminated \
                 follow-symlinks version help",
    long_values: "expression file line-length",
};

impl Inspection {
    pub(super) fn sed(&mut self, subject: &Subject<'_>) {
        let arguments = subject.words.get(1..).unwrap_or_default();
        let divided = divide(arguments);
        if !divided.is_certain || !divided.scripts_are_plain() {
            self.unclear_subject(UnclearReason::EmbeddedCode, subject);
        }
        if arguments.iter().any(edits_in_place) {
            for operand in divided.operands {
                self.file(operand, FileAccess::Write);
            }
        }
    }
}

/// Whether the arguments of sed only print.
pub(crate) fn only_prints(arguments: &[Word]) -> bool {
    let divided = divide(arguments);
    divided.is_certain
        && divided.scripts_are_plain()
        && !divided.operands.iter().any(Word::may_be_option)
        && !arguments.iter().any(edits_in_place)
}

/// The arguments of sed.
struct SedArguments {
    scripts: Vec<Word>,
    operands: Vec<Word>,
    /// Whether nothing else can be a script, as far as dynamic operands are no options.
    is_certain: bool,
}

impl SedArguments {
    fn scripts_are_plain(&self) -> bool {
        // Text that one script begins goes on in the next one.
        let may_have_text = self.scripts.len() < 2;
        self.scripts.iter().all(|script| script.literal().is_some_and(|text| is_plain(&text, may_have_text)))
    }
}

fn edits_in_place(word: &Word) -> bool {
    let text = word.prefix();
    let is_cluster = text.starts_with('-') && !text.starts_with("--");
    is_cluster && text.contains(['i', 'I'])
        || text.len() > 2 && "--in-place".starts_with(text.split('=').next().unwrap_or_default())
}

/// Divides the arguments. Options may follow operands.
fn divide(arguments: &[Word]) -> SedArguments {
    let (mut scripts, mut operands, mut is_certain) = (Vec::new(), Vec::new(), true);
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        let has_script = !scripts.is_empty() || !operands.is_empty();
        if has_script && !first.prefix().starts_with('-') {
            operands.push(first.clone());
            rest = after;
            continue;
        }
        let options = SED.read(rest);
        is_certain &= !options.is_uncertain && !options.has(&["-f", "--file"]);
        for (name, value) in options.given {
            if matches!(name.as_str(), "-e" | "--expression") {
                scripts.extend(value);
            }
        }
        rest = rest.get(options.operands_at..).unwrap_or_default();
        if let Some((operand, after)) = rest.split_first() {
            operands.push(operand.clone());
            rest = after;
        }
    }
    if scripts.is_empty() && !operands.is_empty() {
        scripts.push(operands.remove(0));
    }
    SedArguments { scripts, operands, is_certain }
}

/// Whether every command of a script is one that neither runs anything nor writes a file. What is not understood is not.
/// `may_have_text` says whether the commands `a`, `i` and `c` are allowed.
fn is_plain(script: &str, may_have_text: bool) -> bool {
    let mut scanner = ScriptScanner { chars: script.chars().peekable(), may_have_text };
    loop {
        match scanner.command() {
            Some(true) => {}
            Some(false) => return true,
            None => return false,
        }
    }
}

struct ScriptScanner<'a> {
    chars: Peekable<Chars<'a>>,
    may_have_text: bool,
}

impl ScriptScanner<'_> {
    /// Reads one command: whether there was one, or nothing if it is not plain.
    fn command(&mut self) -> Option<bool> {
        self.skip(|c| c.is_whitespace() || c == ';');
        if self.chars.peek().is_none() {
            return Some(false);
        }
        self.address()?;
        self.skip(char::is_whitespace);
        if self.chars.next_if_eq(&',').is_some() {
            self.skip(char::is_whitespace);
            self.chars.next_if(|c| matches!(c, '+' | '~'));
            self.address()?;
        }
        self.skip(|c| c.is_whitespace() || c == '!');
        match self.chars.next()? {
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {
                self.end()
            }
            'l' | 'q' | 'Q' | 'L' => {
                self.skip(|c| c == ' ' || c.is_ascii_digit());
                self.end()
            }
            // Text and files that are read end with the line.
            'a' | 'i' | 'c' if self.may_have_text => {
                while let Some(c) = self.chars.next() {
                    match c {
                        '\\' => drop(self.chars.next()?),
                        '\n' => break,
                        _ => {}
                    }
                }
                Some(true)
            }
            'r' | 'R' | '#' => {
                self.skip(|c| c != '\n');
                Some(true)
            }
            // Versions of sed differ in where a label ends, but not in these characters. Where one is defined (`:`) is not understood.
            'b' | 't' | 'T' => {
                self.skip(|c| c == ' ' || c == '\t');
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
                self.end()
            }
            's' => {
                let delimiter = self.chars.next().filter(|c| !matches!(c, '\n' | '\\'))?;
                self.until(delimiter)?;
                self.until(delimiter)?;
                self.skip(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || c.is_ascii_digit());
                self.end()
            }
            'y' => {
                let delimiter = self.chars.next().filter(|c| !matches!(c, '\n' | '\\'))?;
                self.until(delimiter)?;
                self.until(delimiter)?;
                self.end()
            }
            _ => None,
        }
    }

    /// Skips an address, if there is one.
    fn address(&mut self) -> Option<()> {
        match self.chars.peek() {
            Some('$') => drop(self.chars.next()),
            Some('/') => {
                self.chars.next();
                self.until('/')?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            Some('\\') => {
                self.chars.next();
                let delimiter = self.chars.next().filter(|c| *c != '\n')?;
                self.until(delimiter)?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            _ => self.skip(|c| c.is_ascii_digit() || c == '~'),
        }
        Some(())
    }

    /// Skips text up to a delimiter that is not escaped. A delimiter in brackets is not understood: versions of sed differ.
    fn until(&mut self, delimiter: char) -> Option<()> {
        let mut is_in_brackets = false;
        loop {
            match self.chars.next()? {
                '\\' => drop(self.chars.next()?),
                c if c == delimiter => return (!is_in_brackets).then_some(()),
                '[' => is_in_brackets = true,
                ']' => is_in_brackets = false,
                _ => {}
            }
        }
    }

    /// A command ends with a semicolon, a brace, a comment or the line.
    fn end(&mut self) -> Option<bool> {
        self.skip(|c| c == ' ' || c == '\t');
        match self.chars.peek() {
            None | Some(';' | '\n' | '}' | '#') => Some(true),
            Some(_) => None,
        }
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        while self.chars.next_if(|c| is_skipped(*c)).is_some() {}
    }
}
