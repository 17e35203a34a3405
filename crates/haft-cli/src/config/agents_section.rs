//! The section `[agents]`: limits of subagents, and the models that names stand for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The settings of subagents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AgentsSection {
    /// How many may run at once.
    pub max_running: Option<usize>,
    /// How deep they may be nested.
    pub max_depth: Option<usize>,
    /// The models that names such as `haiku` stand for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, String>,
}
