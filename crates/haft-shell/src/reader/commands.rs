//! Lists, pipelines and simple commands.

use super::cursor::{Stop, is_metacharacter, is_name, is_name_byte};
use super::word_reader::WordPlace;
use super::{ReadCommand, Reader, Redirect};
use crate::script::{Assignment, UnclearReason};
use crate::word::{DynamicKind, Word, WordPart};

/// Words that end a list where a command could begin.
pub(super) const CLOSING_WORDS: [&str; 8] = ["then", "do", "done", "fi", "elif", "else", "esac", "}"];
/// The longest reserved word is `function`.
const MAX_RESERVED_BYTES: usize = 8;
/// Builtins whose arguments may be assignments, also of arrays.
const ASSIGNMENT_BUILTINS: [&str; 8] =
    ["alias", "declare", "eval", "export", "let", "local", "readonly", "typeset"];

impl Reader<'_> {
    /// Skips spaces, tabs and a comment.
    pub(super) fn blanks(&mut self) -> Result<(), Stop> {
        while let Some(b' ' | b'\t') = self.at.peek() {
            self.at.bump()?;
        }
        if self.at.peek() == Some(b'#') {
            while self.at.peek_raw().is_some_and(|byte| byte != b'\n') {
                self.at.bump_raw()?;
            }
        }
        Ok(())
    }

    /// Consumes a newline and the here-documents whose text begins there.
    pub(super) fn newline(&mut self) -> Result<(), Stop> {
        self.at.bump()?;
        self.read_heredocs()
    }

    pub(super) fn skip_newlines(&mut self) -> Result<(), Stop> {
        self.blanks()?;
        while self.at.peek() == Some(b'\n') {
            self.newline()?;
            self.blanks()?;
        }
        Ok(())
    }

    /// The word that is next, if it could be a reserved word.
    pub(super) fn reserved_ahead(&mut self) -> Option<String> {
        let run = self.at.run_ahead(MAX_RESERVED_BYTES, is_metacharacter)?;
        String::from_utf8(run).ok()
    }

    /// Consumes this reserved word if it is next.
    pub(super) fn eat_reserved(&mut self, word: &str) -> Result<bool, Stop> {
        self.blanks()?;
        if self.reserved_ahead().as_deref() != Some(word) {
            return Ok(false);
        }
        self.at.eat(word.as_bytes())
    }

    /// Consumes a reserved word that must be next.
    pub(super) fn expect(&mut self, word: &str) -> Result<(), Stop> {
        if self.eat_reserved(word)? { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The next token cannot be here: at the end of the text, something does not end.
    pub(super) fn unexpected(&mut self) -> Stop {
        match self.at.peek() {
            None => self.at.stop(UnclearReason::Unterminated),
            Some(_) => self.at.syntax(),
        }
    }

    /// Whether what is next ends a list.
    fn is_list_end(&mut self) -> bool {
        match self.at.peek() {
            None | Some(b')') => true,
            Some(b';') => matches!(self.at.peek_second(), Some(b';' | b'&')),
            Some(_) => self.reserved_ahead().is_some_and(|word| CLOSING_WORDS.contains(&word.as_str())),
        }
    }

    /// Reads commands up to a closing word or bracket; at least one is there.
    pub(super) fn list(&mut self) -> Result<(), Stop> {
        self.nested(|reader| {
            reader.skip_newlines()?;
            loop {
                reader.and_or()?;
                reader.blanks()?;
                match reader.at.peek() {
                    Some(b';') if reader.is_list_end() => return Ok(()),
                    Some(b';') => reader.at.bump()?,
                    Some(b'&') if reader.at.peek_second() != Some(b'&') => reader.at.bump()?,
                    Some(b'\n') => {}
                    _ => return Ok(()),
                }
                reader.skip_newlines()?;
                if reader.is_list_end() {
                    return Ok(());
                }
            }
        })
    }

    fn and_or(&mut self) -> Result<(), Stop> {
        loop {
            self.pipeline()?;
            self.blanks()?;
            if !(self.at.eat(b"&&")? || self.at.eat(b"||")?) {
                return Ok(());
            }
            self.skip_newlines()?;
        }
    }

    fn pipeline(&mut self) -> Result<(), Stop> {
        // Loops, because `! time ! a` is valid.
        while let Some(prefix @ ("!" | "time")) = self.reserved_ahead().as_deref() {
            self.at.eat(prefix.as_bytes())?;
            self.blanks()?;
            if prefix == "time" {
                self.eat_reserved("-p")?;
                self.blanks()?;
            }
            if matches!(self.at.peek(), None | Some(b'\n'))
                || self.at.peek() == Some(b';') && !self.is_list_end()
            {
                return Ok(());
            }
        }
        loop {
            self.command()?;
            self.blanks()?;
            if self.at.peek() != Some(b'|') || self.at.peek_second() == Some(b'|') {
                return Ok(());
            }
            self.at.bump()?;
            if self.at.peek() == Some(b'&') {
                self.at.bump()?;
            }
            self.skip_newlines()?;
            if self.reserved_ahead().as_deref() == Some("!") {
                return Err(self.at.syntax());
            }
        }
    }

    fn command(&mut self) -> Result<(), Stop> {
        let start = self.at.position();
        let reserved = self.reserved_ahead();
        let reserved = reserved.as_deref().unwrap_or_default();
        if CLOSING_WORDS.contains(&reserved) || reserved == "in" || reserved == "]]" {
            return Err(self.at.syntax());
        }
        let is_compound = self.compound(reserved)?;
        if is_compound { self.redirects_after_compound(start) } else { self.simple_command() }
    }

    /// Reads redirections of a compound command.
    pub(super) fn redirects_after_compound(&mut self, start: usize) -> Result<(), Stop> {
        let mut command = ReadCommand::default();
        self.blanks()?;
        while let Some(redirect) = self.redirect()? {
            command.redirects.push(redirect);
            self.blanks()?;
        }
        if command.redirects.is_empty() {
            return Ok(());
        }
        // After a redirection no reserved word is recognized, so that only an operator can follow.
        if self.at.peek().is_some_and(|byte| !is_metacharacter(byte)) {
            return Err(self.at.syntax());
        }
        command.range = self.source_map.map(start..self.at.position());
        let place = self.reserve_command()?;
        self.fill(place, command);
        Ok(())
    }

    /// Takes the next place in the list of commands.
    fn reserve_command(&mut self) -> Result<usize, Stop> {
        if self.found.commands.len() >= self.max_commands {
            return Err(self.at.stop(UnclearReason::TooManyCommands));
        }
        self.found.commands.push(None);
        Ok(self.found.commands.len() - 1)
    }

    fn fill(&mut self, place: usize, command: ReadCommand) {
        if let Some(reserved) = self.found.commands.get_mut(place) {
            *reserved = Some(command);
        }
    }

    /// Reads a simple command, or the definition of a function by its name.
    pub(super) fn simple_command(&mut self) -> Result<(), Stop> {
        let place = self.reserve_command()?;
        let mut command = ReadCommand::default();
        let result = self.read_simple_command(place, &mut command);
        // A command that is not read to its end is listed, too.
        if result.is_err() && !command.words.is_empty() {
            self.fill(place, command);
        }
        result
    }

    fn read_simple_command(&mut self, place: usize, command: &mut ReadCommand) -> Result<(), Stop> {
        let start = self.at.position();
        let mut takes_assignments = false;
        let end = loop {
            let end = self.at.position();
            self.blanks()?;
            if let Some(redirect) = self.redirect()? {
                command.redirects.push(redirect);
                continue;
            }
            match self.at.peek() {
                Some(b'(')
                    if command.words.len() == 1
                        && command.assignments.is_empty()
                        && command.redirects.is_empty() =>
                {
                    // The words of a definition are no command.
                    self.found.commands.remove(place);
                    return self.function_body(&std::mem::take(&mut command.words));
                }
                Some(b'(') => return Err(self.at.syntax()),
                None => break end,
                Some(byte) if is_metacharacter(byte) && !self.is_process_substitution_ahead() => break end,
                Some(_) => {}
            }
            let from = self.at.position();
            command.range = self.source_map.map(start..from);
            let is_first = command.words.is_empty();
            let assignable = is_first || takes_assignments;
            let word = self.word(if assignable { WordPlace::Assignable } else { WordPlace::Plain })?;
            if let Some(assignment) = assignment(&word).filter(|_| is_first) {
                command.assignments.push(assignment);
                continue;
            }
            if is_first {
                command.name_at = Some(from);
                let name = word.literal();
                takes_assignments = name.is_some_and(|name| ASSIGNMENT_BUILTINS.contains(&&*name));
            }
            command.words.push(word);
        };
        if command.words.is_empty() && command.assignments.is_empty() && command.redirects.is_empty() {
            return Err(self.unexpected());
        }
        command.range = self.source_map.map(start..end.max(start));
        self.fill(place, std::mem::take(command));
        Ok(())
    }

    /// Reads `( )` and the body of a function.
    fn function_body(&mut self, words: &[Word]) -> Result<(), Stop> {
        self.at.bump()?;
        self.blanks()?;
        if self.at.peek() != Some(b')') {
            return Err(self.unexpected());
        }
        self.at.bump()?;
        self.skip_newlines()?;
        let start = self.at.position();
        self.note_function(words.first());
        let reserved = self.reserved_ahead().unwrap_or_default();
        if matches!(reserved.as_str(), "function" | "coproc") || !self.compound(&reserved)? {
            return Err(self.unexpected());
        }
        self.redirects_after_compound(start)
    }

    pub(super) fn note_function(&mut self, name: Option<&Word>) {
        self.found.has_effects = true;
        match name.and_then(Word::literal) {
            Some(name) => self.found.functions.push(name.into_owned()),
            None => self.unclear(UnclearReason::DynamicName, self.at.position()),
        }
    }

    pub(super) fn is_process_substitution_ahead(&mut self) -> bool {
        self.at.is_ahead(b"<(") || self.at.is_ahead(b">(")
    }

    /// Reads a redirection if one is next.
    fn redirect(&mut self) -> Result<Option<Redirect>, Stop> {
        let before = self.at.position();
        if self.at.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            while self.at.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                self.at.bump()?;
            }
        } else if self.at.peek() == Some(b'{') && self.at.peek_second().is_some_and(is_name_byte) {
            self.at.bump()?;
            while self.at.peek().is_some_and(is_name_byte) {
                self.at.bump()?;
            }
            if !self.at.eat(b"}")? {
                self.at.return_to(before);
                return Ok(None);
            }
        }
        let has_descriptor = self.at.position() != before;
        let is_operator = match self.at.peek() {
            Some(b'<' | b'>') => has_descriptor || !self.is_process_substitution_ahead(),
            Some(b'&') => !has_descriptor && self.at.peek_second() == Some(b'>'),
            _ => false,
        };
        if !is_operator {
            self.at.return_to(before);
            return Ok(None);
        }
        let name = self.at.since(before).trim_start_matches('{').trim_end_matches('}');
        if is_name(name) {
            let range = self.source_map.map(before..self.at.position());
            self.found.set_variables.push((name.to_owned(), range));
            self.found.has_effects = true;
        }
        self.redirect_operator().map(Some)
    }

    fn redirect_operator(&mut self) -> Result<Redirect, Stop> {
        if self.at.eat(b"<<<")? {
            return Ok(Redirect::Text(self.target()?));
        }
        if self.at.eat(b"<<")? {
            let strips_tabs = self.at.eat(b"-")?;
            let delimiter = self.target()?;
            return self.begin_heredoc(&delimiter, strips_tabs);
        }
        if self.at.eat(b"<&")? || self.at.eat(b">&")? {
            let word = self.target()?;
            let is_descriptor =
                |text: &str| text == "-" || text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit());
            let is_digits = word.literal().is_some_and(|text| is_descriptor(&text));
            return Ok(if is_digits { Redirect::Descriptor } else { Redirect::Write(word) });
        }
        let append = [b"&>>".as_slice(), b">>"];
        let write = [b"&>".as_slice(), b">|", b"<>", b">"];
        for operator in append {
            if self.at.eat(operator)? {
                return Ok(Redirect::Append(self.target()?));
            }
        }
        for operator in write {
            if self.at.eat(operator)? {
                return Ok(Redirect::Write(self.target()?));
            }
        }
        self.at.bump()?;
        Ok(Redirect::Read(self.target()?))
    }

    /// Reads the word after a redirection operator.
    fn target(&mut self) -> Result<Word, Stop> {
        self.blanks()?;
        match self.at.peek() {
            None => Err(self.unexpected()),
            Some(byte) if is_metacharacter(byte) && !self.is_process_substitution_ahead() => {
                Err(self.at.syntax())
            }
            Some(_) => {
                let from = self.at.position();
                let word = self.word(WordPlace::Plain)?;
                // `> 2>x`: what looks like the file is the descriptor of the next redirection.
                let text = self.at.since(from);
                let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
                let is_descriptor =
                    text.bytes().all(|byte| byte.is_ascii_digit()) || name.is_some_and(is_name);
                let is_followed = matches!(self.at.peek(), Some(b'<' | b'>'));
                if is_descriptor && is_followed { Err(self.at.syntax()) } else { Ok(word) }
            }
        }
    }
}

/// The assignment that a word is, if it is one.
pub(crate) fn assignment(word: &Word) -> Option<Assignment> {
    let (first, rest) = word.parts.split_first()?;
    let WordPart::Text { text, quoted: false } = first else { return None };
    // `a[$i]=x`: the subscript is a part of its own.
    if let [
        WordPart::Dynamic { kind: DynamicKind::Arithmetic, .. },
        WordPart::Text { text: after, quoted: false },
        rest @ ..,
    ] = rest
        && is_name(text)
    {
        let value = after.strip_prefix("+=").or_else(|| after.strip_prefix('='))?;
        let first = WordPart::Text { text: value.to_owned(), quoted: false };
        let parts =
            std::iter::once(first).filter(|_| !value.is_empty()).chain(rest.iter().cloned()).collect();
        return Some(Assignment { name: text.clone(), value: Word { parts, range: word.range.clone() } });
    }
    let (target, _) = text.split_once('=')?;
    let name = target.strip_suffix('+').unwrap_or(target);
    is_name(name).then(|| Assignment { name: name.to_owned(), value: word.without_prefix(target.len() + 1) })
}

/// The assignment that an argument is, as `env` and `export` understand it: quotes make no difference.
pub(crate) fn assignment_in(word: &Word) -> Option<Assignment> {
    let prefix = word.prefix();
    let Some((target, _)) = prefix.split_once('=') else { return assignment(word) };
    let name = target.strip_suffix('+').unwrap_or(target);
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    is_name(name).then(|| Assignment { name: name.to_owned(), value: word.without_prefix(target.len() + 1) })
}
