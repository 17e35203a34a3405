//! Scopes that have a name.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use haft_tool::{Sandbox, Scope};

use crate::tables::BLOCKLIST;

/// What commands and tools may write, in one word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// The workspace, the added directories and the session's own temporary files.
    #[default]
    Workspace,
    /// Only the session's own temporary files.
    ReadOnly,
    /// Omega's `Sandbox`: as the workspace, and never the blocklist.
    Sandbox,
    /// Omega's `Rx`: the same.
    Rx,
    /// Omega's `Rwx`: everything but the blocklist.
    Rwx,
    /// No sandbox: commands may do what the user may.
    Off,
}

impl Preset {
    /// Every preset, with its name.
    pub const ALL: &[(Self, &str)] = &[
        (Self::Workspace, "workspace"),
        (Self::ReadOnly, "read-only"),
        (Self::Sandbox, "sandbox"),
        (Self::Rx, "rx"),
        (Self::Rwx, "rwx"),
        (Self::Off, "off"),
    ];

    /// The scope, narrowed or widened to what the preset says.
    #[must_use]
    pub fn apply(self, mut scope: Scope) -> Scope {
        let blocklist = || BLOCKLIST.iter().map(PathBuf::from);
        match self {
            Self::Workspace => {}
            Self::ReadOnly => scope.blocked.push("/".into()),
            Self::Sandbox | Self::Rx => scope.blocked.extend(blocklist()),
            Self::Rwx => {
                scope.roots.push("/".into());
                scope.blocked.extend(blocklist());
            }
            Self::Off => scope.sandbox = Sandbox::Off,
        }
        scope
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
        found.map(|(preset, _)| *preset).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(_, name)| *name).collect();
            format!("there is no sandbox {name:?}; one of {}", names.join(", "))
        })
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(preset, _)| preset == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_preset_comes_back_from_its_name() {
        for (preset, name) in Preset::ALL {
            assert_eq!(name.parse(), Ok(*preset));
            assert_eq!(preset.to_string(), *name);
        }
        assert_eq!("RWX".parse(), Ok(Preset::Rwx));
        assert!("rw".parse::<Preset>().unwrap_err().contains("one of workspace, read-only"));
    }
}
