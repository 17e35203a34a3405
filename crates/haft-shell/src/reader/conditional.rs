//! `[[ … ]]`.

use super::Reader;
use super::cursor::{SourceCursor, Stop, is_metacharacter};
use super::word_reader::WordPlace;
use crate::word::{Word, WordPart};

/// Operators between two words.
const BINARY_OPERATORS: [&str; 13] =
    ["=", "==", "!=", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];
/// The operators that evaluate their operands.
const EVALUATING_OPERATORS: [&str; 8] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"];
/// Letters of operators before one word.
const UNARY_LETTERS: &str = "abcdefghknoprstuvwxzGLNORS";

impl Reader<'_> {
    /// Reads `[[ … ]]`.
    pub(super) fn conditional(&mut self, start: usize) -> Result<(), Stop> {
        // `-eq` and `-v` evaluate their operands.
        self.found.has_arithmetic = true;
        self.at.eat(b"[[")?;
        self.skip_newlines()?;
        self.condition(start)?;
        if self.eat_reserved("]]")? { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Reads terms with `&&` and `||`, which need no precedence here.
    fn condition(&mut self, start: usize) -> Result<(), Stop> {
        loop {
            self.condition_term(start)?;
            self.skip_newlines()?;
            if !(self.at.eat(b"&&")? || self.at.eat(b"||")?) {
                return Ok(());
            }
            self.skip_newlines()?;
        }
    }

    fn condition_term(&mut self, start: usize) -> Result<(), Stop> {
        while self.eat_reserved("!")? {
            self.skip_newlines()?;
        }
        if self.at.peek() == Some(b'(') {
            self.at.bump()?;
            self.skip_newlines()?;
            self.nested(|reader| reader.condition(start))?;
            if self.at.peek() != Some(b')') {
                return Err(self.unexpected());
            }
            return self.at.bump();
        }
        let first = self.condition_word(WordPlace::Plain, start)?;
        let first_text = bare(&first);
        if first_text.is_some_and(|text| text == "]]") {
            return Err(self.at.syntax());
        }
        self.blanks()?;
        self.found.has_effects |= first_text.is_some_and(|text| EVALUATING_OPERATORS.contains(&text));
        if first_text.is_some_and(is_unary) {
            return self.unary_operand(start);
        }
        match self.at.peek() {
            None => Err(SourceCursor::unterminated(start)),
            Some(b'<' | b'>') if !self.is_process_substitution_ahead() => {
                self.at.bump()?;
                self.blanks()?;
                self.condition_word(WordPlace::Plain, start).map(drop)
            }
            // bash continues the search for an operator on this line only.
            Some(b'\n') => Err(self.at.syntax()),
            Some(b')' | b'&' | b'|') => Ok(()),
            Some(_) => {
                if self.reserved_ahead().as_deref() == Some("]]") {
                    return Ok(());
                }
                self.binary_operand(start)
            }
        }
    }

    /// Reads the word after an operator such as `-f`.
    fn unary_operand(&mut self, start: usize) -> Result<(), Stop> {
        let operand = self.condition_word(WordPlace::Plain, start)?;
        let is_end = bare(&operand).is_some_and(|text| text == "]]");
        if is_end { Err(self.at.syntax()) } else { Ok(()) }
    }

    fn binary_operand(&mut self, start: usize) -> Result<(), Stop> {
        let operator = self.condition_word(WordPlace::Plain, start)?;
        self.found.has_effects |= bare(&operator).is_some_and(|text| EVALUATING_OPERATORS.contains(&text));
        let place = match bare(&operator) {
            Some("=~") => WordPlace::Regex,
            Some("=" | "==" | "!=") => WordPlace::Pattern,
            Some(text) if BINARY_OPERATORS.contains(&text) => WordPlace::Plain,
            _ => return Err(self.at.syntax()),
        };
        self.blanks()?;
        self.condition_word(place, start).map(drop)
    }

    fn condition_word(&mut self, place: WordPlace, start: usize) -> Result<Word, Stop> {
        let is_group = |byte: u8| byte == b'(' && matches!(place, WordPlace::Regex | WordPlace::Pattern);
        match self.at.peek() {
            None => Err(SourceCursor::unterminated(start)),
            Some(byte)
                if is_metacharacter(byte) && !is_group(byte) && !self.is_process_substitution_ahead() =>
            {
                Err(self.at.syntax())
            }
            Some(_) => self.word(place),
        }
    }
}

/// The text of a word without any quoting.
fn bare(word: &Word) -> Option<&str> {
    match word.parts.as_slice() {
        [WordPart::Text { text, quoted: false }] => Some(text),
        _ => None,
    }
}

fn is_unary(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('-')
        && chars.next().is_some_and(|letter| UNARY_LETTERS.contains(letter))
        && chars.next().is_none()
}
