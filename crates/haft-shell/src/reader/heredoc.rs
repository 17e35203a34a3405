//! Here-documents: their text begins after the line with the operator.

use super::cursor::Stop;
use super::word_reader::WordBuilder;
use super::{ReadCommand, Reader, Redirect};
use crate::script::UnclearReason;
use crate::word::{Word, WordPart};

/// A here-document whose text has not been read.
pub(super) struct PendingHeredoc {
    delimiter: String,
    strips_tabs: bool,
    /// Whether the delimiter was quoted, so that the text is literal.
    is_literal: bool,
    /// Its place in the list of here-documents.
    place: usize,
}

impl ReadCommand {
    /// Shifts the indices of here-documents that were read on their own.
    pub(super) fn renumber_heredocs(&mut self, first: usize) {
        for redirect in &mut self.redirects {
            if let Redirect::Heredoc(index) = redirect {
                *index += first;
            }
        }
    }
}

impl Reader<'_> {
    pub(super) fn begin_heredoc(&mut self, delimiter: &Word, strips_tabs: bool) -> Result<Redirect, Stop> {
        // bash takes the delimiter as it is written, without expanding it.
        let text: String = delimiter
            .parts
            .iter()
            .map(|part| match part {
                WordPart::Text { text, .. } => text.as_str(),
                WordPart::Dynamic { source, .. } => source.as_str(),
            })
            .collect();
        let has_substitution = delimiter
            .parts
            .iter()
            .any(|part| matches!(part, WordPart::Dynamic { source, .. } if source.len() > 1));
        if has_substitution || text.contains('\n') {
            return Err(self.at.syntax());
        }
        let is_literal =
            delimiter.parts.iter().any(|part| matches!(part, WordPart::Text { quoted: true, .. }));
        let place = self.found.heredocs.len();
        self.found.heredocs.push(None);
        self.pending.push(PendingHeredoc { delimiter: text, strips_tabs, is_literal, place });
        Ok(Redirect::Heredoc(place))
    }

    /// Reads the texts of the here-documents that were begun.
    pub(super) fn read_heredocs(&mut self) -> Result<(), Stop> {
        for heredoc in std::mem::take(&mut self.pending) {
            let word = self.heredoc(&heredoc)?;
            if let Some(place) = self.found.heredocs.get_mut(heredoc.place) {
                *place = Some(word);
            }
        }
        Ok(())
    }

    fn heredoc(&mut self, heredoc: &PendingHeredoc) -> Result<Word, Stop> {
        let start = self.at.position();
        let mut is_literal = heredoc.is_literal;
        let mut builder = WordBuilder::default();
        builder.quote();
        while !self.eat_delimiter(heredoc, is_literal)? {
            if self.at.peek_raw().is_none() {
                // bash warns and takes the rest as the text.
                self.unclear(UnclearReason::Unterminated, start);
                break;
            }
            if is_literal {
                self.literal_line(&mut builder)?;
                continue;
            }
            match self.expanded_line(&mut builder, heredoc) {
                Ok(()) => {}
                // bash finds such errors only when it expands the text.
                Err(Stop {
                    reason: reason @ (UnclearReason::Syntax | UnclearReason::Unterminated), ..
                }) => {
                    self.unclear(reason, start);
                    self.at.return_to(start);
                    self.pending.clear();
                    is_literal = true;
                }
                Err(stop) => return Err(stop),
            }
        }
        let range = self.source_map.map(start..self.at.position());
        let word = Word { parts: builder.finish(), range };
        self.note_text(&word);
        Ok(word)
    }

    /// Consumes the line that ends the here-document, if it is next, and leading tabs that do not count in any case.
    fn eat_delimiter(&mut self, heredoc: &PendingHeredoc, is_literal: bool) -> Result<bool, Stop> {
        if heredoc.strips_tabs {
            while self.at.peek_raw() == Some(b'\t') {
                self.at.bump_raw()?;
            }
        }
        let start = self.at.position();
        let delimiter = heredoc.delimiter.as_bytes();
        if is_literal {
            let rest = self.at.text().get(start..).unwrap_or_default();
            if rest.as_bytes().starts_with(delimiter) {
                self.at.spend(delimiter.len())?;
                self.at.return_to(start + delimiter.len());
            } else {
                return Ok(false);
            }
        } else if !self.at.eat(delimiter)? {
            // Continued lines are joined before bash looks for the delimiter, so this compares as bash does.
            return Ok(false);
        }
        match if is_literal { self.at.peek_raw() } else { self.at.peek() } {
            None => Ok(true),
            Some(b'\n') => {
                self.at.bump_raw()?;
                Ok(true)
            }
            Some(_) => {
                self.at.return_to(start);
                Ok(false)
            }
        }
    }

    fn literal_line(&mut self, builder: &mut WordBuilder) -> Result<(), Stop> {
        while let Some(byte) = self.at.peek_raw() {
            self.at.bump_raw()?;
            builder.push(&[byte], true);
            if byte == b'\n' {
                break;
            }
        }
        Ok(())
    }

    /// Reads a line with substitutions, which may span several lines.
    fn expanded_line(&mut self, builder: &mut WordBuilder, heredoc: &PendingHeredoc) -> Result<(), Stop> {
        while let Some(byte) = self.at.peek() {
            let before = self.at.position();
            self.double_quoted_byte(builder, byte, b"$`\\")?;
            if byte == b'\n' {
                break;
            }
            // bash looks for the delimiter in the lines of a substitution before it reads the substitution.
            let is_delimiter = |line: &str| line.trim_start_matches('\t') == heredoc.delimiter;
            if self.at.since(before).lines().skip(1).any(is_delimiter) {
                return Err(self.at.syntax());
            }
        }
        Ok(())
    }
}
