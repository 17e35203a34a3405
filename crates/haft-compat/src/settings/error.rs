//! What is wrong with a settings file: as a whole, or at single values.

use std::fmt;

/// Spellings that a deny rule cannot do without, as long as no escape hides it.
const DENY_WORDS: [&[u8]; 2] = [b"deny", b"denied"];

/// The file cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingsError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub why: String,
    /// Whether the file's text has anything that could be a deny rule. Skipping such a file would lose the rule.
    pub may_hold_deny_rules: bool,
}

impl SettingsError {
    pub(super) fn new(bytes: &[u8], line: usize, column: usize, why: String) -> Self {
        Self { line, column, why, may_hold_deny_rules: may_hold_deny_rules(bytes) }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.why)
    }
}

impl std::error::Error for SettingsError {}

/// Whether the text has the word `deny`, also in UTF-16, or an escape that could spell it.
fn may_hold_deny_rules(bytes: &[u8]) -> bool {
    let text: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    DENY_WORDS.into_iter().any(has) || has(b"\\u")
}

/// One value that is not what its key requires. The rest of the file is read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingsProblem {
    /// The key with those above it: `permissions.deny`.
    pub key: String,
    /// The value's line, from 1.
    pub line: usize,
    /// The value's column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub why: String,
    /// Whether ignoring the value loses a restriction that the file asks for, such as a deny rule or a hook that can
    /// block. Haft must not run with the file as if it were complete.
    pub loses_restriction: bool,
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.line, self.column, self.key, self.why)
    }
}
