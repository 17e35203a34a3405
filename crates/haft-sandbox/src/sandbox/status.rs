//! What this machine has to hold commands with, as a value: for `haft doctor` and for errors.

use std::fmt;

/// How much of a layer there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// All of it; it was tried and works.
    Full,
    /// It works, but for some parts.
    Partial {
        /// Those parts.
        missing: Vec<String>,
    },
    /// It cannot be had.
    None {
        /// The reason.
        why: String,
    },
}

impl Level {
    /// `full`, `partial` or `none`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial { .. } => "partial",
            Self::None { .. } => "none",
        }
    }

    /// All of it if nothing is missing.
    pub(super) fn without(missing: Vec<String>) -> Self {
        if missing.is_empty() { Self::Full } else { Self::Partial { missing } }
    }
}

/// One layer of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// What it is called.
    pub name: &'static str,
    /// What it is good for.
    pub holds: &'static str,
    /// How much of it there is.
    pub level: Level,
    /// What to do about what is missing.
    pub remedy: Option<String>,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.level.word())?;
        match &self.level {
            Level::Full => write!(f, " ({})", self.holds)?,
            Level::Partial { missing } => write!(f, ", without {}", missing.join(", "))?,
            Level::None { why } => write!(f, ": {why}")?,
        }
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

/// What holds commands here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The boundary: files, ports, signals, sockets.
    pub landlock: Layer,
    /// Which version of it; 0 if there is none.
    pub landlock_abi: u32,
    /// The witness: calls are reported to Haft, which makes them on the command's behalf.
    pub notification: Layer,
    /// Nothing that is started gets more rights than what started it.
    pub no_new_privs: Layer,
    /// Processes are named by handles that are never used again for others.
    pub pidfd: Layer,
    /// The names in a reported call can be read.
    pub memory: Layer,
    /// The kernel's own name for its version.
    pub kernel: String,
    /// Whether Haft runs as root; commands have no capabilities all the same.
    pub root: bool,
    /// Which container Haft seems to run in.
    pub container: Option<String>,
    /// The namespaces that can be had; told only, none is needed.
    pub namespaces: Vec<&'static str>,
}

impl Status {
    /// Every layer.
    pub fn layers(&self) -> [&Layer; 5] {
        [&self.landlock, &self.notification, &self.no_new_privs, &self.pidfd, &self.memory]
    }

    /// The sandbox as a whole: full if every layer is, none if one that it cannot do without is missing.
    pub fn level(&self) -> Level {
        let (mut missing, mut why) = (Vec::new(), Vec::new());
        for layer in self.layers() {
            match &layer.level {
                Level::Full => {}
                Level::Partial { missing: parts } => {
                    missing.extend(parts.iter().map(|part| format!("{}: {part}", layer.name)));
                }
                Level::None { why: reason } => why.push(format!("{}: {reason}", layer.name)),
            }
        }
        if why.is_empty() { Level::without(missing) } else { Level::None { why: why.join("; ") } }
    }
}
