//! OAuth scopes.

use std::fmt;

use serde::{Deserialize, Serialize};

const MAX_SCOPES: usize = 100;
const MAX_SCOPE_BYTES: usize = 256;
/// The scope for which some authorization servers issue refresh tokens.
pub(super) const OFFLINE_ACCESS: &str = "offline_access";

/// Scopes in their order, without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Scopes(Vec<String>);

impl Scopes {
    /// Parses a space-separated list; invalid scopes are left out.
    pub(super) fn parse(text: &str) -> Self {
        Self::new(text.split(' '))
    }

    pub(super) fn new<'a>(scopes: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        scopes.into_iter().for_each(|scope| all.add(scope));
        all
    }

    pub(super) fn add(&mut self, scope: &str) {
        let is_allowed = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        let is_valid = (1..=MAX_SCOPE_BYTES).contains(&scope.len()) && scope.bytes().all(is_allowed);
        if is_valid && self.0.len() < MAX_SCOPES && !self.contains(scope) {
            self.0.push(scope.to_owned());
        }
    }

    /// These, followed by the others.
    pub(super) fn union(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).map(String::as_str))
    }

    pub(super) fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|one| one == scope)
    }

    /// Whether these include all of `other`.
    pub(super) fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|scope| self.contains(scope))
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
    fn invalid_and_duplicate_scopes_are_left_out() {
        let scopes = Scopes::parse("a  b a c\"d e\\f g\u{7f} \u{e9} files:read https://x.example/y");
        assert_eq!(scopes.to_string(), "a b files:read https://x.example/y");
        assert_eq!(Scopes::new(["a b", "c"]).to_string(), "c");
        let many = (0..1000).map(|number| format!("s{number} ")).collect::<String>();
        assert_eq!(Scopes::parse(&many).0.len(), MAX_SCOPES);
        assert!(Scopes::parse(&"x".repeat(300)).is_empty());
    }

    #[test]
    fn union_keeps_order_and_all_scopes() {
        let (old, new) = (Scopes::parse("b a"), Scopes::parse("c a"));
        assert_eq!(old.union(&new).to_string(), "b a c");
        assert!(old.union(&new).covers(&new) && !old.covers(&new) && old.covers(&Scopes::default()));
    }
}
