//! The section `[sandbox]`: what commands may write, see, use and serve. `sandbox = "read-only"` is short for its preset.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use haft_policy::Preset;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::sections::by_name;

/// The settings of commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SandboxSection {
    /// What may be written.
    #[serde(with = "by_name", skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Whether commands get namespaces of their own where the kernel grants them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<bool>,
    /// Variables that commands get, as `NAME` or `NAME=VALUE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Entries of the home directory, relative to it, that commands see besides toolchains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub home: Vec<PathBuf>,
    /// TCP ports of commands that can be reached from outside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub serve: Vec<u16>,
    /// What commands and tools may read.
    #[serde(with = "by_name", skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadScope>,
    /// The memory of a command.
    #[serde(with = "by_name", skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteSize>,
    /// The processes and threads of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<usize>,
    /// The size of a file that a command writes.
    #[serde(with = "by_name", skip_serializing_if = "Option::is_none")]
    pub file_size: Option<ByteSize>,
}

impl SandboxSection {
    pub(super) fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.preset {
            None if *self == Self::default() => to.serialize_none(),
            Some(preset) if *self == (Self { preset: Some(preset), ..Self::default() }) => {
                to.collect_str(&preset)
            }
            _ => Serialize::serialize(self, to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct PresetOrTable;

        impl<'de> Visitor<'de> for PresetOrTable {
            type Value = SandboxSection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a preset, or a table")
            }

            fn visit_str<E: Error>(self, preset: &str) -> Result<SandboxSection, E> {
                let preset = preset.parse().map_err(E::custom)?;
                Ok(SandboxSection { preset: Some(preset), ..SandboxSection::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<SandboxSection, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(table))
            }
        }

        from.deserialize_any(PresetOrTable)
    }
}

/// What commands and tools may read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ReadScope {
    /// Everything but secrets.
    #[default]
    All,
    /// The workspace; commands also system directories and toolchains.
    Workspace,
}

impl fmt::Display for ReadScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "all",
            Self::Workspace => "workspace",
        })
    }
}

impl FromStr for ReadScope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "workspace" => Ok(Self::Workspace),
            other => Err(format!("{other:?} cannot be read; one of all, workspace")),
        }
    }
}

/// A number of bytes, written as `512M` or `4G`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct ByteSize(pub u64);

impl TryFrom<String> for ByteSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ByteSize> for String {
    fn from(size: ByteSize) -> Self {
        size.to_string()
    }
}

/// Units with the power of two that each stands for, the largest first.
const UNITS: &[(char, u32)] = &[('T', 40), ('G', 30), ('M', 20), ('K', 10)];

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().find(|(_, shift)| self.0 > 0 && self.0.trailing_zeros() >= *shift);
        match unit {
            Some((name, shift)) => write!(f, "{}{name}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let upper = text.trim().to_ascii_uppercase();
        let upper = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
        let unit = UNITS.iter().find_map(|(name, shift)| Some((upper.strip_suffix(*name)?, *shift)));
        let (number, shift) = unit.unwrap_or((upper, 0));
        let bytes = number.trim().parse::<u64>().ok().filter(|bytes| *bytes > 0);
        let bytes = bytes.and_then(|bytes| bytes.checked_mul(1 << shift));
        bytes.map(Self).ok_or_else(|| format!("{text:?} is not a size such as 512M or 4G"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        let size = |text: &str| text.parse::<ByteSize>().map(|size| (size.0, size.to_string()));
        assert_eq!(size("512M"), Ok((512 << 20, "512M".to_owned())));
        assert_eq!(size("4GiB"), Ok((4 << 30, "4G".to_owned())));
        assert_eq!(size(" 1500 kb"), Ok((1500 << 10, "1500K".to_owned())));
        assert_eq!(size("77"), Ok((77, "77".to_owned())));
        for text in ["", "0", "G", "-1M", "1.5G", "99999999999T", "4 apples"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
