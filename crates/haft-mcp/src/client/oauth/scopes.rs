//! What a token is asked for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// More than any server asks for.
const MOST: usize = 100;
const LONGEST: usize = 256;
/// The scope by which some authorization servers give out refresh tokens.
pub(super) const OFFLINE: &str = "offline_access";

/// Scopes in the order they were named, none twice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Scopes(Vec<String>);

impl Scopes {
    /// Reads a list with blanks between; what cannot be a scope is left out.
    pub(super) fn parse(text: &str) -> Self {
        Self::of(text.split(' '))
    }

    pub(super) fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut scopes = Self::default();
        for word in words {
            scopes.add(word);
        }
        scopes
    }

    pub(super) fn add(&mut self, word: &str) {
        let plain = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        let fits = (1..=LONGEST).contains(&word.len()) && word.bytes().all(plain);
        if fits && self.0.len() < MOST && !self.has(word) {
            self.0.push(word.to_owned());
        }
    }

    /// These, and those of `other` that are not among them.
    pub(super) fn with(&self, other: &Self) -> Self {
        Self::of(self.0.iter().chain(&other.0).map(String::as_str))
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.0.iter().any(|scope| scope == word)
    }

    /// Whether all of `other` are among these.
    pub(super) fn cover(&self, other: &Self) -> bool {
        other.0.iter().all(|scope| self.has(scope))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_words_without_blanks_quotes_or_control_characters_each_once() {
        let scopes = Scopes::parse("a  b a c\"d e\\f g\u{7f} \u{e9} files:read https://x.example/y");
        assert_eq!(scopes.to_string(), "a b files:read https://x.example/y");
        assert_eq!(Scopes::of(["a b", "c"]).to_string(), "c");
        let many = (0..1000).map(|number| format!("s{number} ")).collect::<String>();
        assert_eq!(Scopes::parse(&many).0.len(), MOST);
        assert!(Scopes::parse(&"x".repeat(300)).is_empty());
    }

    #[test]
    fn what_was_asked_before_comes_first_and_nothing_is_lost() {
        let (old, new) = (Scopes::parse("b a"), Scopes::parse("c a"));
        assert_eq!(old.with(&new).to_string(), "b a c");
        assert!(old.with(&new).cover(&new) && !old.cover(&new) && old.cover(&Scopes::default()));
    }
}
