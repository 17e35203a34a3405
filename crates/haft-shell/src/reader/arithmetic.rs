//! Arithmetic: only the substitutions in it matter, and whether it is arithmetic at all.

use super::Reader;
use super::cursor::{SourceCursor, Stop, is_name_byte};
use super::word_reader::WordBuilder;
use crate::script::UnclearReason;
use crate::word::DynamicKind;

impl Reader<'_> {
    /// Reads `((…))` after `$`: arithmetic, or a substitution whose first command is a subshell.
    pub(super) fn double_parentheses(&mut self, start: usize) -> Result<DynamicKind, Stop> {
        let mark = self.mark();
        if self.arithmetic_parentheses(start)? {
            return Ok(DynamicKind::Arithmetic);
        }
        self.return_to(&mark);
        // bash has only counted the parentheses when it accepts the script. What they mean it finds out when it runs them.
        self.unclear(UnclearReason::DynamicCode, start);
        self.command_substitution(start)?;
        Ok(DynamicKind::Substitution)
    }

    /// Reads `((…))` if the two closing parentheses are adjacent; otherwise the position is of no use.
    pub(super) fn arithmetic_parentheses(&mut self, start: usize) -> Result<bool, Stop> {
        self.at.bump()?;
        self.at.bump()?;
        self.arithmetic_until(b'(', b')', start)?;
        let is_closed = self.at.peek() == Some(b')');
        if is_closed {
            self.at.bump()?;
        }
        Ok(is_closed)
    }

    /// Reads arithmetic up to the closing bracket of a pair whose opening one was consumed
    /// Text that arithmetic does not have is unclear: then bash may read it in another way.
    pub(super) fn arithmetic_until(&mut self, open: u8, close: u8, start: usize) -> Result<(), Stop> {
        self.found.has_arithmetic = true;
        self.found.has_effects = true;
        let from = self.at.position();
        let mut ignored = WordBuilder::default();
        let (mut depth, mut is_arithmetic) = (1_usize, true);
        let mut identifier_from = from;
        loop {
            let Some(byte) = self.at.peek() else { return Err(SourceCursor::unterminated(start)) };
            if is_name_byte(byte) {
                self.at.bump()?;
                continue;
            }
            self.note_set_variable(identifier_from);
            match byte {
                b'"' => self.double_quoted(&mut ignored)?,
                b'$' => self.dollar(&mut ignored, true)?,
                b'`' => self.backtick(&mut ignored, true)?,
                b'\'' => {
                    // The key of an associative array; elsewhere arithmetic has no such quotes.
                    is_arithmetic &= open == b'[';
                    self.quoted_in_braces(start, true)?;
                }
                byte => {
                    if byte == open {
                        depth += 1;
                    } else if byte == close {
                        depth -= 1;
                    }
                    // A semicolon is part of `for ((…;…;…))`, and the key of an associative array can be any text.
                    is_arithmetic &= b" \t\n+-*/%<>=!&|^~?:,()[]#@.".contains(&byte)
                        || open == b'(' && byte == b';' && self.is_for_header
                        || open == b'[' && byte >= 0x80;
                    self.at.bump()?;
                }
            }
            if depth == 0 {
                break;
            }
            identifier_from = self.at.position();
        }
        if !is_arithmetic {
            self.unclear(UnclearReason::Ambiguous, start);
        }
        Ok(())
    }

    /// Notes a name in arithmetic, which may be assigned to.
    fn note_set_variable(&mut self, from: usize) {
        let name = self.at.since(from);
        if crate::variables::changes_programs(name) {
            let range = self.source_map.map(from..self.at.position());
            let name = name.to_owned();
            self.found.set_variables.push((name, range));
        }
    }
}
