//! `[tools.memory]`: the file that holds the agent's memory.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The file that holds the agent's memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemorySettings {
    /// The file, absolute or below `~`. Default: clawft's, or nanobot's if only that one exists.
    pub path: Option<PathBuf>,
}
