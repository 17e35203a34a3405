//! What users set about tools: one section per operation, read from `haft.toml` and the environment by the doors.

use serde::{Deserialize, Serialize};

/// What users set about tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {}
