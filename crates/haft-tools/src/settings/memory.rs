//! Where the memory is.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where the memory is: `[tools.memory]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryFile {
    /// The file, absolute or below `~`; clawft's own, or its forerunner's where only that exists, if nothing is said.
    pub path: Option<PathBuf>,
}
