//! How much runs without a question.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How much runs without a question. All but `Scoped` mean what Claude's modes of that name mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Mode {
    /// What lies inside the scope and is reversible runs; anything else asks.
    #[default]
    Scoped,
    /// Reads run; changes and commands ask.
    Default,
    /// Like `Default`, but file edits inside the scope run too.
    AcceptEdits,
    /// Nothing may change.
    Plan,
    /// Like `Default`, but what would ask is denied.
    DontAsk,
    /// What the scope allows runs; anything else is denied without a question.
    BypassPermissions,
}

impl Mode {
    /// Every mode, in the order of the help text.
    pub const ALL: [Self; 6] =
        [Self::Scoped, Self::Default, Self::AcceptEdits, Self::Plan, Self::DontAsk, Self::BypassPermissions];

    /// Whether the user is asked at all.
    pub const fn asks(self) -> bool {
        !matches!(self, Self::DontAsk | Self::BypassPermissions)
    }

    /// Whether it allows nothing that `other` does not.
    pub fn is_within(self, other: Self) -> bool {
        let rank = |mode| match mode {
            Self::Plan => 0,
            Self::DontAsk => 1,
            Self::Default => 2,
            Self::AcceptEdits => 3,
            Self::Scoped => 4,
            Self::BypassPermissions => 5,
        };
        rank(self) <= rank(other)
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scoped => "scoped",
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "manual" => return Ok(Self::Default),
            // Claude Code's mode with a classifier, which Haft has not: the sandbox decides.
            "auto" => return Ok(Self::Scoped),
            _ => {}
        }
        let all = Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|mode| mode.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("{text:?} is no permission mode; there are {all}"))
    }
}
