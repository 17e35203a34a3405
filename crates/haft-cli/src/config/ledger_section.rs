//! The section `[ledger]`: what automatic housekeeping keeps.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::sandbox_section::ByteSize;

const DAY: Duration = Duration::from_hours(24);

/// The limits of the ledger, of the caches of commands, and of the output of detached commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LedgerSection {
    /// Whether old calls are removed automatically, at most once a day.
    pub housekeeping: bool,
    /// Older ones are removed.
    pub max_age: Age,
    /// The oldest ones are removed until the rest takes at most this much.
    pub max_size: ByteSize,
}

impl Default for LedgerSection {
    fn default() -> Self {
        Self { housekeeping: true, max_age: Age(DAY * 90), max_size: ByteSize(1 << 30) }
    }
}

/// A time span, written as `90d` or `12h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Age(pub Duration);

/// Units with their seconds, the largest first.
const UNITS: &[(char, u64)] = &[('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let unit = UNITS.iter().find(|(_, length)| seconds.is_multiple_of(*length)).unwrap_or(&('s', 1));
        write!(f, "{}{}", seconds / unit.1, unit.0)
    }
}

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        crate::cli::age(text).map(|milliseconds| Self(Duration::from_millis(milliseconds)))
    }
}

impl TryFrom<String> for Age {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Age> for String {
    fn from(age: Age) -> Self {
        age.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_and_written() {
        for (text, shown) in [("90d", "90d"), ("48h", "2d"), ("90m", "90m"), ("1w", "7d")] {
            assert_eq!(text.parse::<Age>().unwrap().to_string(), shown);
        }
        assert!("soon".parse::<Age>().is_err());
    }
}
