//! The section `[model]`: which model `haft -p` asks, and within which limits.

use std::collections::BTreeMap;

use haft_model::{ModelPrice, ReasoningEffort, Wire};
use serde::{Deserialize, Serialize};

/// The settings of models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ModelSection {
    /// Who runs the model.
    pub provider: Option<String>,
    /// The model.
    pub name: Option<String>,
    /// The model for summaries.
    pub fast: Option<String>,
    /// Whether the fast model judges prompts, and answers those that are simple.
    pub route: Option<bool>,
    /// The model to go on with when the provider stays overloaded.
    pub fallback: Option<String>,
    /// The URL of the provider.
    pub base_url: Option<String>,
    /// The wire format.
    pub wire: Option<Wire>,
    /// How much the model thinks.
    pub effort: Option<ReasoningEffort>,
    /// How often the model is asked for one prompt.
    pub max_turns: Option<u32>,
    /// What one prompt may cost.
    pub max_budget_usd: Option<f64>,
    /// Tokens of the model's context.
    pub context_window: Option<u64>,
    /// How full the context may be, in percent, before it is compacted.
    pub compact_percent: Option<u8>,
    /// Prices in US dollars per million tokens, by model or by `provider/model`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, ModelPrice>,
}
