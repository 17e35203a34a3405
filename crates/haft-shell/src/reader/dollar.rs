//! Everything that begins with `$`, backticks and process substitutions.

use super::cursor::{SourceCursor, Stop, is_name_byte};
use super::word_reader::WordBuilder;
use super::{Reader, SourceMap};
use crate::script::UnclearReason;
use crate::word::DynamicKind;

impl Reader<'_> {
    /// Reads what begins with `$`.
    pub(super) fn dollar(&mut self, builder: &mut WordBuilder, quoted: bool) -> Result<(), Stop> {
        let start = self.at.position();
        self.at.bump()?;
        let kind = match self.at.peek() {
            Some(b'(') if self.at.peek_second() == Some(b'(') => {
                self.nested(|reader| reader.double_parentheses(start))?
            }
            Some(b'(') => {
                self.nested(|reader| reader.command_substitution(start))?;
                DynamicKind::Substitution
            }
            Some(b'{') => {
                self.nested(|reader| reader.braced(start, quoted))?;
                DynamicKind::Variable
            }
            Some(b'[') => {
                self.at.bump()?;
                self.nested(|reader| reader.arithmetic_until(b'[', b']', start))?;
                DynamicKind::Arithmetic
            }
            Some(b'\'') if !quoted => return self.ansi_quoted(builder),
            // A string to translate. bash replaces it only if the script names a catalog.
            Some(b'"') if !quoted => return self.double_quoted(builder),
            Some(b'*' | b'@' | b'#' | b'?' | b'-' | b'$' | b'!' | b'0'..=b'9') => {
                self.at.bump()?;
                DynamicKind::Variable
            }
            Some(byte) if is_name_byte(byte) => {
                while self.at.peek().is_some_and(is_name_byte) {
                    self.at.bump()?;
                }
                DynamicKind::Variable
            }
            _ => {
                builder.push(b"$", quoted);
                return Ok(());
            }
        };
        builder.push_dynamic(kind, self.at.since(start), quoted);
        Ok(())
    }

    /// Reads the `(…)` of a command substitution.
    pub(super) fn command_substitution(&mut self, start: usize) -> Result<(), Stop> {
        self.at.bump()?;
        let pending = std::mem::take(&mut self.pending);
        self.skip_newlines()?;
        if self.at.peek() != Some(b')') {
            self.list()?;
            self.blanks()?;
        }
        // A here-document that begins inside and would have its text outside.
        if !self.pending.is_empty() {
            return Err(SourceCursor::unterminated(start));
        }
        self.pending = pending;
        match self.at.peek() {
            Some(b')') => self.at.bump(),
            Some(_) => Err(self.at.syntax()),
            None => Err(SourceCursor::unterminated(start)),
        }
    }

    /// Reads `<(…)` or `>(…)`.
    pub(super) fn process_substitution(&mut self, builder: &mut WordBuilder) -> Result<(), Stop> {
        let start = self.at.position();
        self.at.bump()?;
        self.nested(|reader| reader.command_substitution(start))?;
        builder.push_dynamic(DynamicKind::ProcessSubstitution, self.at.since(start), false);
        Ok(())
    }

    /// Reads `` `…` ``, whose text loses one level of backslashes before it is read as a script.
    pub(super) fn backtick(&mut self, builder: &mut WordBuilder, quoted: bool) -> Result<(), Stop> {
        let start = self.at.position();
        self.at.bump_raw()?;
        let inside = self.at.position();
        let mut text = Vec::new();
        loop {
            match self.at.peek_raw() {
                None => return Err(SourceCursor::unterminated(start)),
                Some(b'`') => break,
                Some(b'\\') => {
                    self.at.bump_raw()?;
                    match self.at.peek_raw() {
                        Some(escaped @ (b'$' | b'`' | b'\\')) => {
                            self.at.bump_raw()?;
                            text.push(escaped);
                        }
                        Some(b'"') if quoted => {
                            self.at.bump_raw()?;
                            text.push(b'"');
                        }
                        // Kept, so that a line continuation stays one.
                        _ => text.push(b'\\'),
                    }
                }
                Some(byte) => {
                    self.at.bump_raw()?;
                    text.push(byte);
                }
            }
        }
        let length = self.at.position() - inside;
        self.at.bump_raw()?;
        let source_map = if text.len() == length {
            match &self.source_map {
                SourceMap::At(offset) => SourceMap::At(offset + inside),
                within @ SourceMap::Within(_) => within.clone(),
            }
        } else {
            SourceMap::Within(self.source_map.map(start..self.at.position()))
        };
        self.at.spend(text.len())?;
        let text = String::from_utf8_lossy(&text).into_owned();
        self.nested(|reader| reader.read_inside(&text, source_map))?;
        builder.push_dynamic(DynamicKind::Substitution, self.at.since(start), quoted);
        Ok(())
    }

    /// Reads the text of backticks. bash reads it only when it runs it, so an error is no error of the whole.
    fn read_inside(&mut self, text: &str, source_map: SourceMap) -> Result<(), Stop> {
        let noted = self.found.commands.len();
        if noted >= self.max_commands {
            return Err(self.at.stop(UnclearReason::TooManyCommands));
        }
        let inner = super::read(text, source_map, self.depth, self.max_commands - noted);
        let first_heredoc = self.found.heredocs.len();
        self.found.commands.extend(inner.commands.into_iter().map(|mut command| {
            command.renumber_heredocs(first_heredoc);
            command.name_at = None;
            Some(command)
        }));
        self.found.heredocs.extend(inner.heredocs.into_iter().map(Some));
        self.found.functions.extend(inner.functions);
        self.found.set_variables.extend(inner.set_variables);
        self.found.unclear.extend(inner.unclear);
        self.found.has_arithmetic |= inner.has_arithmetic;
        self.found.has_effects |= inner.has_effects;
        self.found.code_text = self.found.code_text.take().or(inner.code_text);
        Ok(())
    }

    /// Reads `{…}` after `$`.
    fn braced(&mut self, start: usize, quoted: bool) -> Result<(), Stop> {
        self.at.bump()?;
        let inside = self.at.position();
        // `${ cmd; }` and `${|cmd; }` run commands in bash 5.3, ksh and zsh.
        if matches!(self.at.peek(), Some(b' ' | b'\t' | b'\n' | b'|' | b'(')) {
            self.unclear(UnclearReason::DynamicCode, start);
        }
        while matches!(self.at.peek(), Some(b'#' | b'!')) {
            self.at.bump()?;
        }
        let name_from = self.at.position();
        while self.at.peek().is_some_and(is_name_byte) {
            self.at.bump()?;
        }
        let name = self.at.since(name_from).to_owned();
        // `${x:a:b}` has arithmetic.
        self.found.has_arithmetic |= self.at.peek() == Some(b':');
        if self.at.peek() == Some(b'[') && !name.is_empty() {
            self.at.bump()?;
            self.arithmetic_until(b'[', b']', start)?;
        }
        if self.at.is_ahead(b":=") || self.at.is_ahead(b"=") {
            let range = self.source_map.map(start..self.at.position());
            self.found.set_variables.push((name, range));
        }
        let mut ignored = WordBuilder::default();
        loop {
            match self.at.peek() {
                None => return Err(SourceCursor::unterminated(start)),
                Some(b'}') => return self.at.bump(),
                Some(b'\\') => {
                    self.at.bump_raw()?;
                    self.at.bump_raw()?;
                }
                Some(b'\'') => self.quoted_in_braces(start, quoted)?,
                Some(b'"') => self.double_quoted(&mut ignored)?,
                Some(b'$') => self.dollar(&mut ignored, quoted)?,
                Some(b'`') => self.backtick(&mut ignored, quoted)?,
                // bash skips the text when it reads it, and runs it when it expands it.
                Some(b'<' | b'>') if self.at.peek_second() == Some(b'(') => {
                    self.unclear(UnclearReason::DynamicCode, inside);
                    self.at.bump()?;
                }
                Some(_) => self.at.bump()?,
            }
        }
    }

    /// Skips `'…'` inside `${…}` or a subscript. Inside double quotes bash skips it when it reads the script, but may run the substitutions
    /// in it when it expands the text.
    pub(super) fn quoted_in_braces(&mut self, start: usize, quoted: bool) -> Result<(), Stop> {
        self.at.bump_raw()?;
        let from = self.at.position();
        loop {
            match self.at.peek_raw() {
                None => return Err(SourceCursor::unterminated(start)),
                Some(b'\'') => break,
                Some(_) => self.at.bump_raw()?,
            }
        }
        if quoted && self.at.since(from).contains(['$', '`']) {
            self.unclear(UnclearReason::DynamicCode, from);
        }
        self.at.bump_raw()
    }

    /// Reads `'…'` after `$`.
    fn ansi_quoted(&mut self, builder: &mut WordBuilder) -> Result<(), Stop> {
        let start = self.at.position();
        self.at.bump_raw()?;
        builder.quote();
        let from = self.at.position();
        loop {
            match self.at.peek_raw() {
                None => return Err(SourceCursor::unterminated(start)),
                Some(b'\'') => break,
                Some(b'\\') => {
                    self.at.bump_raw()?;
                    if self.at.peek_raw().is_none() {
                        return Err(SourceCursor::unterminated(start));
                    }
                    self.at.bump_raw()?;
                }
                Some(_) => self.at.bump_raw()?,
            }
        }
        let text = self.at.since(from);
        self.at.bump_raw()?;
        builder.push(&crate::escapes::decode(text), true);
        Ok(())
    }
}
