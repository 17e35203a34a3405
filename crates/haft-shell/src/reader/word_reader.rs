//! Words: quoting, and where a word ends.

use super::Reader;
use super::cursor::{SourceCursor, Stop, is_metacharacter, is_name};
use crate::script::UnclearReason;
use crate::word::{DynamicKind, Word, WordPart};

/// Where a word is, which decides what may be in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPlace {
    Plain,
    /// Where an assignment is understood, so that `a[x y]=1` and `a=(x y)` are one word.
    Assignable,
    /// An element of an array, which may begin with a subscript.
    Element,
    /// After `==` in `[[ ]]`: `@(a|b)` is a pattern.
    Pattern,
    /// After `=~` in `[[ ]]`: parentheses and `|` belong to the word.
    Regex,
}

/// Collects the parts of a word.
#[derive(Default)]
pub(super) struct WordBuilder {
    parts: Vec<WordPart>,
    run: Vec<u8>,
    run_is_quoted: bool,
}

impl WordBuilder {
    pub(super) fn push(&mut self, bytes: &[u8], quoted: bool) {
        if self.run_is_quoted != quoted {
            self.flush();
            self.run_is_quoted = quoted;
        }
        self.run.extend_from_slice(bytes);
    }

    /// An empty quoted part, so that the word exists although it has no text.
    pub(super) fn quote(&mut self) {
        if self.parts.is_empty() && self.run.is_empty() {
            self.parts.push(WordPart::Text { text: String::new(), quoted: true });
        }
    }

    pub(super) fn push_dynamic(&mut self, kind: DynamicKind, source: &str, quoted: bool) {
        self.flush();
        self.parts.push(WordPart::Dynamic { kind, source: source.to_owned(), quoted });
    }

    fn flush(&mut self) {
        if !self.run.is_empty() {
            let text = String::from_utf8_lossy(&self.run).into_owned();
            self.parts.push(WordPart::Text { text, quoted: self.run_is_quoted });
            self.run.clear();
        }
    }

    pub(super) fn finish(mut self) -> Vec<WordPart> {
        self.flush();
        if self.parts.len() > 1 {
            self.parts.retain(|part| !matches!(part, WordPart::Text { text, .. } if text.is_empty()));
        }
        self.parts
    }

    /// The unquoted text that is all of the word so far.
    fn bare(&self) -> Option<&str> {
        (self.parts.is_empty() && !self.run_is_quoted).then(|| std::str::from_utf8(&self.run).ok())?
    }
}

impl Reader<'_> {
    /// Reads a word, which must be there.
    pub(super) fn word(&mut self, place: WordPlace) -> Result<Word, Stop> {
        let start = self.at.position();
        let mut builder = WordBuilder::default();
        while let Some(byte) = self.at.peek() {
            match byte {
                b'<' | b'>' if self.at.peek_second() == Some(b'(') => {
                    self.process_substitution(&mut builder)?;
                }
                b'(' if place == WordPlace::Regex => self.group_in_pattern(&mut builder)?,
                b'(' if place == WordPlace::Pattern && ends_with_extended_glob(&builder) => {
                    self.group_in_pattern(&mut builder)?;
                }
                b'(' if place == WordPlace::Assignable && begins_array(&builder) => {
                    self.array(&mut builder)?;
                    break;
                }
                b'|' if place == WordPlace::Regex => self.plain_byte(&mut builder, byte)?,
                byte if is_metacharacter(byte) => break,
                b'[' if place == WordPlace::Assignable && builder.bare().is_some_and(is_name)
                    || place == WordPlace::Element && builder.bare() == Some("") =>
                {
                    self.subscript(&mut builder)?;
                }
                _ => self.word_byte(&mut builder, byte)?,
            }
        }
        let parts = builder.finish();
        if parts.is_empty() {
            return Err(self.at.syntax());
        }
        let range = self.source_map.map(start..self.at.position());
        let parts = if matches!(place, WordPlace::Regex) { parts } else { with_expansions(parts) };
        let word = Word { parts, range };
        self.note_text(&word);
        Ok(word)
    }

    /// A byte of a word that may begin a quote or a substitution.
    fn word_byte(&mut self, builder: &mut WordBuilder, byte: u8) -> Result<(), Stop> {
        match byte {
            b'\\' => {
                self.at.bump_raw()?;
                let Some(escaped) = self.at.peek_raw() else {
                    builder.push(b"\\", true);
                    return Ok(());
                };
                self.at.bump_raw()?;
                builder.push(&[escaped], true);
                self.rest_of_char(builder, true)
            }
            b'\'' => self.single_quoted(builder),
            b'"' => self.double_quoted(builder),
            b'$' => self.dollar(builder, false),
            b'`' => self.backtick(builder, false),
            byte => self.plain_byte(builder, byte),
        }
    }

    fn plain_byte(&mut self, builder: &mut WordBuilder, byte: u8) -> Result<(), Stop> {
        self.at.bump()?;
        builder.push(&[byte], false);
        Ok(())
    }

    /// The bytes after the first of an escaped character, which belong to the same run of text.
    fn rest_of_char(&mut self, builder: &mut WordBuilder, quoted: bool) -> Result<(), Stop> {
        while let Some(byte @ 0x80..=0xbf) = self.at.peek_raw() {
            self.at.bump_raw()?;
            builder.push(&[byte], quoted);
        }
        Ok(())
    }

    fn single_quoted(&mut self, builder: &mut WordBuilder) -> Result<(), Stop> {
        let start = self.at.position();
        self.at.bump_raw()?;
        builder.quote();
        loop {
            match self.at.peek_raw() {
                None => return Err(SourceCursor::unterminated(start)),
                Some(b'\'') => return self.at.bump_raw(),
                Some(byte) => {
                    self.at.bump_raw()?;
                    builder.push(&[byte], true);
                }
            }
        }
    }

    /// Reads `"…"`.
    pub(super) fn double_quoted(&mut self, builder: &mut WordBuilder) -> Result<(), Stop> {
        let start = self.at.position();
        self.at.bump()?;
        builder.quote();
        loop {
            match self.at.peek() {
                None => return Err(SourceCursor::unterminated(start)),
                Some(b'"') => return self.at.bump(),
                Some(byte) => self.double_quoted_byte(builder, byte, b"$`\"\\")?,
            }
        }
    }

    /// A byte inside double quotes or a here-document; a backslash escapes only the bytes of `escapable`.
    pub(super) fn double_quoted_byte(
        &mut self,
        builder: &mut WordBuilder,
        byte: u8,
        escapable: &[u8],
    ) -> Result<(), Stop> {
        match byte {
            b'\\' => {
                self.at.bump_raw()?;
                match self.at.peek_raw() {
                    Some(escaped) if escapable.contains(&escaped) => {
                        self.at.bump_raw()?;
                        builder.push(&[escaped], true);
                    }
                    _ => builder.push(b"\\", true),
                }
                Ok(())
            }
            b'$' => self.nested(|reader| reader.dollar(builder, true)),
            b'`' => self.backtick(builder, true),
            byte => {
                self.at.bump()?;
                builder.push(&[byte], true);
                Ok(())
            }
        }
    }

    /// Reads `(…)` inside a pattern or a regular expression.
    fn group_in_pattern(&mut self, builder: &mut WordBuilder) -> Result<(), Stop> {
        let start = self.at.position();
        let mut open = 0_usize;
        loop {
            match self.at.peek() {
                None => return Err(SourceCursor::unterminated(start)),
                Some(byte @ (b'(' | b')')) => {
                    open = if byte == b'(' { open + 1 } else { open - 1 };
                    self.plain_byte(builder, byte)?;
                    if open == 0 {
                        return Ok(());
                    }
                }
                Some(byte) => self.word_byte(builder, byte)?,
            }
        }
    }

    /// Reads the `[…]` after a name, or at the beginning of an element of an array.
    fn subscript(&mut self, builder: &mut WordBuilder) -> Result<(), Stop> {
        let start = self.at.position();
        self.at.bump()?;
        self.arithmetic_until(b'[', b']', start)?;
        builder.push_dynamic(DynamicKind::Arithmetic, self.at.since(start), false);
        Ok(())
    }

    /// Reads the `(…)` of `a=(…)`.
    fn array(&mut self, builder: &mut WordBuilder) -> Result<(), Stop> {
        let start = self.at.position();
        self.at.bump()?;
        self.nested(|reader| {
            loop {
                reader.skip_newlines()?;
                match reader.at.peek() {
                    None => return Err(SourceCursor::unterminated(start)),
                    Some(b')') => return reader.at.bump(),
                    Some(_) => drop(reader.word(WordPlace::Element)?),
                }
            }
        })?;
        let source = self.at.since(start);
        builder.push_dynamic(DynamicKind::Variable, source, false);
        // An array cannot be continued: `a=(b)c` are two words to bash.
        match self.at.peek() {
            Some(byte) if !is_metacharacter(byte) => {
                self.unclear(UnclearReason::Ambiguous, start);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn begins_array(builder: &WordBuilder) -> bool {
    let Some(target) = builder.bare().and_then(|text| text.strip_suffix('=')) else { return false };
    is_name(target.strip_suffix('+').unwrap_or(target))
}

fn ends_with_extended_glob(builder: &WordBuilder) -> bool {
    !builder.run_is_quoted && builder.run.last().is_some_and(|byte| b"?*+@!".contains(byte))
}

/// Splits what the shell expands out of the unquoted text: tildes, globs and braces.
fn with_expansions(parts: Vec<WordPart>) -> Vec<WordPart> {
    let unquoted: String = parts
        .iter()
        .map(|part| match part {
            WordPart::Text { text, quoted: false } => text.as_str(),
            _ => "\0",
        })
        .collect();
    let has_brackets = unquoted.find('[').is_some_and(|at| unquoted[at + 1..].contains(']'));
    let has_braces = unquoted.find('{').is_some_and(|at| {
        let after = &unquoted[at..];
        after.rfind('}').is_some_and(|end| after[..end].contains(',') || after[..end].contains(".."))
    });
    let mut expanded = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        let WordPart::Text { text, quoted: false } = part else {
            expanded.push(part);
            continue;
        };
        let mut rest = text.as_str();
        if index == 0 && rest.starts_with('~') {
            let end = rest.find('/').unwrap_or(rest.len());
            expanded.push(dynamic(DynamicKind::Tilde, &rest[..end]));
            rest = &rest[end..];
        }
        let is_expanded = |c: char| match c {
            '*' | '?' => true,
            '[' => has_brackets,
            '{' => has_braces,
            _ => false,
        };
        while let Some(at) = rest.find(is_expanded) {
            if at > 0 {
                expanded.push(WordPart::Text { text: rest[..at].to_owned(), quoted: false });
            }
            let is_brace = rest[at..].starts_with('{');
            let kind = if is_brace { DynamicKind::Brace } else { DynamicKind::Glob };
            let end = if is_brace { rest.rfind('}').filter(|end| *end > at).unwrap_or(at) } else { at };
            expanded.push(dynamic(kind, &rest[at..=end]));
            rest = &rest[end + 1..];
        }
        if !rest.is_empty() {
            expanded.push(WordPart::Text { text: rest.to_owned(), quoted: false });
        }
    }
    expanded
}

fn dynamic(kind: DynamicKind, source: &str) -> WordPart {
    WordPart::Dynamic { kind, source: source.to_owned(), quoted: false }
}
