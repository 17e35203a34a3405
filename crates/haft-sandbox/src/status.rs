//! What this system offers to sandbox commands: for `haft doctor` and for errors.

use std::fmt;

/// How much of a layer is available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerLevel {
    /// Everything; it was tried and works.
    Full,
    /// It works, except for some parts.
    Partial {
        /// Those parts.
        missing: Vec<String>,
    },
    /// It is unavailable.
    None {
        /// The reason.
        reason: String,
    },
}

impl LayerLevel {
    /// `full`, `partial` or `none`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial { .. } => "partial",
            Self::None { .. } => "none",
        }
    }

    /// Full if nothing is missing.
    pub(crate) fn without(missing: Vec<String>) -> Self {
        if missing.is_empty() { Self::Full } else { Self::Partial { missing } }
    }
}

/// One layer of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Its name.
    pub name: &'static str,
    /// What it provides.
    pub provides: &'static str,
    /// How much of it is available.
    pub level: LayerLevel,
    /// How to get what is missing.
    pub remedy: Option<String>,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.level.word())?;
        match &self.level {
            LayerLevel::Full => write!(f, " ({})", self.provides)?,
            LayerLevel::Partial { missing } => write!(f, ", without {}", missing.join(", "))?,
            LayerLevel::None { reason } => write!(f, ": {reason}")?,
        }
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

/// What sandboxes commands on this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxStatus {
    /// Every layer, the most important first.
    pub layers: Vec<Layer>,
    /// The kernel's version.
    pub kernel: String,
    /// Whether Haft runs as root; commands have no capabilities all the same.
    pub is_root: bool,
    /// The container that Haft seems to run in.
    pub container: Option<String>,
}

impl SandboxStatus {
    /// The sandbox as a whole: full if every layer is, none if a layer is missing.
    pub fn level(&self) -> LayerLevel {
        let (mut missing, mut reasons) = (Vec::new(), Vec::new());
        for layer in &self.layers {
            match &layer.level {
                LayerLevel::Full => {}
                LayerLevel::Partial { missing: parts } => {
                    missing.extend(parts.iter().map(|part| format!("{}: {part}", layer.name)));
                }
                LayerLevel::None { reason } => reasons.push(format!("{}: {reason}", layer.name)),
            }
        }
        if reasons.is_empty() {
            LayerLevel::without(missing)
        } else {
            LayerLevel::None { reason: reasons.join("; ") }
        }
    }
}
