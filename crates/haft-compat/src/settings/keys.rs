//! The keys of Claude Code's settings that Haft does not apply, and what ignoring each means.

use haft_tool::close_names;

use super::document::Tree;
use super::key_table::{COMMAND_KEYS, KEYS};

/// What it means that Haft does not apply a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyMeaning {
    /// Haft applies it.
    Applied,
    /// It has no effect on what calls may do: appearance, accounts, features of Claude Code.
    Ignored,
    /// It would allow more than Haft does.
    Widens,
    /// It restricts a feature that Haft does not have, so the restriction holds without Haft's doing.
    HoldsAnyway,
    /// It restricts what runs or which service is used, and Haft does not apply it. In managed settings this must stop
    /// the run.
    Restricts,
}

/// A key that is in the file and that Haft does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherKey {
    /// The key with those above it: `sandbox.ripgrep`.
    pub name: String,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
    /// What is known of it.
    pub status: KeyStatus,
}

/// What is known of an [`OtherKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStatus {
    /// Claude Code knows it.
    Known {
        /// What ignoring it means.
        meaning: KeyMeaning,
        /// Whether its value restricts something: `false` and empty text do not.
        is_set: bool,
    },
    /// Claude Code does not know it, as of the version that the table was made from.
    Unknown {
        /// The known key that is meant, perhaps.
        nearest: Option<&'static str>,
    },
}

impl OtherKey {
    /// Whether the key restricts something that Haft does not hold. A run with managed settings that have such a key must
    /// not begin.
    pub fn restricts(&self) -> bool {
        matches!(self.status, KeyStatus::Known { meaning: KeyMeaning::Restricts, is_set: true })
    }

    /// The known key that is meant by an unknown one.
    pub fn nearest(&self) -> Option<&'static str> {
        match self.status {
            KeyStatus::Unknown { nearest } => nearest,
            KeyStatus::Known { .. } => None,
        }
    }
}

/// What Claude Code's key `name` means to Haft; `None` if Claude Code has no such key. Keys below another one are
/// written with it: `permissions.deny`.
pub fn key_meaning(name: &str) -> Option<KeyMeaning> {
    KEYS.iter().find(|(key, _)| *key == name).map(|(_, meaning)| *meaning)
}

/// All known keys with their meaning.
pub fn known_keys() -> impl Iterator<Item = (&'static str, KeyMeaning)> {
    KEYS.iter().copied()
}

/// Whether the value of `name` names a program or command. One from a project's file must never run: the project would
/// run code on the machine of everyone who opens it. `hooks` may, once the user has trusted them.
pub fn is_command_key(name: &str) -> bool {
    COMMAND_KEYS.contains(&name)
}

/// What to report of a key that was not read.
pub(super) fn status_of(name: &str, value: &Tree) -> KeyStatus {
    if let Some(meaning) = key_meaning(name) {
        let is_set = !matches!(value, Tree::Null | Tree::Bool(false)) && *value != Tree::Text(String::new());
        return KeyStatus::Known { meaning, is_set };
    }
    let (parent, last) = name.rsplit_once('.').unwrap_or(("", name));
    let siblings = KEYS.iter().filter_map(|(key, _)| {
        let (above, last) = key.rsplit_once('.').unwrap_or(("", key));
        (above == parent).then_some((last, *key))
    });
    let siblings: Vec<_> = siblings.collect();
    let near = close_names(last, siblings.iter().map(|(last, _)| *last)).into_iter().next();
    let nearest = near.and_then(|near| siblings.iter().find(|(last, _)| *last == near)).map(|(_, key)| *key);
    KeyStatus::Unknown { nearest }
}
