//! The versions of the protocol, in two families: legacy (with a handshake) and stateless.

use std::fmt;

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolVersion {
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26, the only version with batches.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25, the last version with a handshake.
    V2025_11_25,
    /// 2026-07-28, the first stateless version.
    V2026_07_28,
}

impl ProtocolVersion {
    /// All versions, the newest first.
    pub const ALL: [Self; 5] =
        [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];
    /// The newest version.
    pub const NEWEST: Self = Self::V2026_07_28;
    /// The newest version with a handshake.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The version with that date.
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == date)
    }

    /// The date, which is the version's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether there is no handshake: every request carries its version and its client's capabilities.
    pub const fn is_stateless(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }

    /// The names of all versions.
    pub fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|version| version.as_str()).collect()
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
