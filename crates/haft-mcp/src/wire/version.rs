//! The revisions of the protocol, in two eras.

use std::fmt;

/// A revision of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26, the only one with batches.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25, the last one with a handshake.
    V2025_11_25,
    /// 2026-07-28, where every request speaks for itself.
    V2026_07_28,
}

impl Version {
    /// All of them, the newest first.
    pub const ALL: [Self; 5] =
        [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];
    /// The newest.
    pub const NEWEST: Self = Self::V2026_07_28;
    /// The newest that begins with a handshake.
    pub const NEWEST_HANDSHAKE: Self = Self::V2025_11_25;

    /// The revision of that date.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.word() == word)
    }

    /// Its date, which is its name on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether there is no handshake any more: every request carries its revision and what its client can do.
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }

    /// The names of all, for an answer to somebody who speaks none of them.
    pub fn words() -> Vec<&'static str> {
        Self::ALL.iter().map(|version| version.word()).collect()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
