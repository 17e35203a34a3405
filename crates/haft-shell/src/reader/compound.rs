//! Compound commands: groups, loops, conditionals, `case`, functions and coprocesses.

use super::Reader;
use super::commands::CLOSING_WORDS;
use super::cursor::{SourceCursor, Stop, is_metacharacter};
use super::word_reader::WordPlace;
use crate::variables::is_own_variable;

/// Semicolons between the three expressions of `for ((…;…;…))`.
const FOR_SEPARATORS_COUNT: usize = 2;

impl Reader<'_> {
    /// Reads a compound command if one is next; `reserved` is the word that is next.
    pub(super) fn compound(&mut self, reserved: &str) -> Result<bool, Stop> {
        let start = self.at.position();
        match reserved {
            "{" => {
                self.at.bump()?;
                self.list()?;
                self.expect("}")?;
            }
            "if" => self.if_command()?,
            "while" | "until" => {
                self.at.eat(reserved.as_bytes())?;
                self.list()?;
                self.expect("do")?;
                self.list()?;
                self.expect("done")?;
            }
            "for" | "select" => self.for_command(reserved)?,
            "case" => self.case_command()?,
            "function" => self.function_command()?,
            "coproc" => self.coprocess()?,
            "[[" => self.nested(|reader| reader.conditional(start))?,
            _ if self.at.peek() == Some(b'(') => self.nested(|reader| reader.parentheses(start))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads `((…))` or `(…)`.
    fn parentheses(&mut self, start: usize) -> Result<(), Stop> {
        if self.at.peek_second() == Some(b'(') {
            let mark = self.mark();
            if self.arithmetic_parentheses(start)? {
                return Ok(());
            }
            self.return_to(&mark);
        }
        self.at.bump()?;
        self.list()?;
        self.blanks()?;
        if self.at.peek() != Some(b')') {
            return Err(self.unexpected());
        }
        self.at.bump()
    }

    fn if_command(&mut self) -> Result<(), Stop> {
        self.at.eat(b"if")?;
        self.list()?;
        self.expect("then")?;
        self.list()?;
        loop {
            if self.eat_reserved("elif")? {
                self.list()?;
                self.expect("then")?;
                self.list()?;
                continue;
            }
            if self.eat_reserved("else")? {
                self.list()?;
            }
            return self.expect("fi");
        }
    }

    fn for_command(&mut self, keyword: &str) -> Result<(), Stop> {
        self.at.eat(keyword.as_bytes())?;
        self.blanks()?;
        if keyword == "for" && self.at.is_ahead(b"((") {
            self.for_header()?;
            self.blanks()?;
            if self.at.peek() == Some(b';') {
                self.at.bump()?;
            }
            self.skip_newlines()?;
            return self.loop_body(true);
        }
        if self.at.peek().is_none_or(is_metacharacter) {
            return Err(self.unexpected());
        }
        let name = self.word(WordPlace::Plain)?;
        if let Some(text) = name.literal() {
            self.found.has_effects |= !is_own_variable(&text);
            self.found.set_variables.push((text.into_owned(), name.range.clone()));
        }
        self.blanks()?;
        if self.at.peek() == Some(b';') {
            self.at.bump()?;
            self.skip_newlines()?;
            return self.loop_body(true);
        }
        self.skip_newlines()?;
        if !self.eat_reserved("in")? {
            return self.loop_body(false);
        }
        loop {
            self.blanks()?;
            match self.at.peek() {
                None => return Err(self.unexpected()),
                Some(b';' | b'\n') => break,
                Some(byte) if is_metacharacter(byte) && !self.is_process_substitution_ahead() => {
                    return Err(self.at.syntax());
                }
                Some(_) => drop(self.word(WordPlace::Plain)?),
            }
        }
        if self.at.peek() == Some(b';') {
            self.at.bump()?;
        }
        self.skip_newlines()?;
        self.loop_body(true)
    }

    /// Reads the `((…;…;…))` of a loop.
    fn for_header(&mut self) -> Result<(), Stop> {
        let start = self.at.position();
        self.is_for_header = true;
        let is_closed = self.arithmetic_parentheses(start)?;
        self.is_for_header = false;
        let header = self.at.since(start);
        let has_text = header.contains(['"', '$', '`', '\'']);
        let is_divided = has_text || header.matches(';').count() == FOR_SEPARATORS_COUNT;
        if is_closed && is_divided { Ok(()) } else { Err(self.at.syntax()) }
    }

    fn loop_body(&mut self, may_be_group: bool) -> Result<(), Stop> {
        if may_be_group && self.eat_reserved("{")? {
            self.list()?;
            return self.expect("}");
        }
        self.expect("do")?;
        self.list()?;
        self.expect("done")
    }

    fn case_command(&mut self) -> Result<(), Stop> {
        let start = self.at.position();
        self.at.eat(b"case")?;
        self.blanks()?;
        if self.at.peek().is_none_or(is_metacharacter) && !self.is_process_substitution_ahead() {
            return Err(self.unexpected());
        }
        self.word(WordPlace::Plain)?;
        self.skip_newlines()?;
        self.expect("in")?;
        loop {
            self.skip_newlines()?;
            if self.at.is_at_end() {
                return Err(SourceCursor::unterminated(start));
            }
            if self.eat_reserved("esac")? {
                return Ok(());
            }
            self.case_patterns()?;
            self.skip_newlines()?;
            let is_empty = self.at.is_ahead(b";;")
                || self.at.is_ahead(b";&")
                || self.reserved_ahead().as_deref() == Some("esac");
            if !is_empty {
                self.list()?;
                self.blanks()?;
            }
            let is_divided = self.at.eat(b";;&")? || self.at.eat(b";;")? || self.at.eat(b";&")?;
            if !is_divided {
                self.skip_newlines()?;
                return self.expect("esac");
            }
        }
    }

    /// Reads `(a|b)`, where the first parenthesis is optional.
    fn case_patterns(&mut self) -> Result<(), Stop> {
        if self.at.peek() == Some(b'(') {
            self.at.bump()?;
        }
        loop {
            self.blanks()?;
            if self.at.peek().is_none_or(is_metacharacter) && !self.is_process_substitution_ahead() {
                return Err(self.unexpected());
            }
            self.word(WordPlace::Plain)?;
            self.blanks()?;
            match self.at.peek() {
                Some(b'|') => self.at.bump()?,
                Some(b')') => return self.at.bump(),
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn function_command(&mut self) -> Result<(), Stop> {
        self.at.eat(b"function")?;
        self.blanks()?;
        if self.at.peek().is_none_or(is_metacharacter) && !self.is_process_substitution_ahead() {
            return Err(self.unexpected());
        }
        let name = self.word(WordPlace::Plain)?;
        self.note_function(Some(&name));
        self.blanks()?;
        if self.at.peek() == Some(b'(') {
            let position = self.at.position();
            self.at.bump()?;
            self.blanks()?;
            if self.at.peek() == Some(b')') {
                self.at.bump()?;
            } else {
                // The body is a subshell.
                self.at.return_to(position);
            }
        }
        self.skip_newlines()?;
        let reserved = self.reserved_ahead().unwrap_or_default();
        if matches!(reserved.as_str(), "function" | "coproc") || !self.compound(&reserved)? {
            return Err(self.unexpected());
        }
        Ok(())
    }

    fn coprocess(&mut self) -> Result<(), Stop> {
        // It sets a variable.
        self.found.has_effects = true;
        self.at.eat(b"coproc")?;
        self.blanks()?;
        if self.coprocess_body()? {
            return Ok(());
        }
        let mark = self.mark();
        if self.at.peek().is_some_and(|byte| !is_metacharacter(byte)) {
            let name = self.word(WordPlace::Plain)?;
            self.blanks()?;
            if self.coprocess_body()? {
                let range = name.range.clone();
                self.found.set_variables.extend(name.literal().map(|text| (text.into_owned(), range)));
                return Ok(());
            }
        }
        self.return_to(&mark);
        let function_count = self.found.functions.len();
        self.simple_command()?;
        // A definition cannot be here.
        if self.found.functions.len() > function_count { Err(self.at.syntax()) } else { Ok(()) }
    }

    /// Reads a compound command after `coproc` or the name after it, where all reserved words are recognized.
    fn coprocess_body(&mut self) -> Result<bool, Stop> {
        let reserved = self.reserved_ahead().unwrap_or_default();
        if CLOSING_WORDS.contains(&reserved.as_str())
            || matches!(reserved.as_str(), "coproc" | "function" | "!")
        {
            return Err(self.at.syntax());
        }
        self.compound(&reserved)
    }
}
