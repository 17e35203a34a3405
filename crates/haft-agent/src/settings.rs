//! What the user can set about a run.

use std::time::Duration;

use haft_model::{PriceTable, TurnOptions};
use serde::{Deserialize, Serialize};

use crate::{AllowedTools, AnswerSchema};

/// Rounds of a turn in most dialects.
const DEFAULT_ROUNDS: u32 = 50;
/// `max_tool_iterations` of clawft.
const CLAWFT_ROUNDS: u32 = 20;
/// How full the context may be before it is compacted.
const DEFAULT_COMPACT_PERCENT: u8 = 80;

/// How many rounds a turn has in a dialect, unless the user says otherwise.
pub fn default_rounds(dialect: &str) -> u32 {
    if dialect == "clawft" { CLAWFT_ROUNDS } else { DEFAULT_ROUNDS }
}

/// Limits of one turn: from what the user says to the end of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLimits {
    /// How often the model is asked.
    pub rounds: u32,
    /// What it may cost in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { rounds: DEFAULT_ROUNDS, dollars: None, time: None }
    }
}

/// What the user can set about a run.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// The dialect of the tools, for the record.
    pub dialect: String,
    /// The limits of each turn.
    pub limits: RunLimits,
    /// The tools that the model may call.
    pub allowed: AllowedTools,
    /// Whether instructions below the workspace are added when calls work there.
    pub nested_instructions: bool,
    /// The options of each request. The model is chosen by the run.
    pub options: TurnOptions,
    /// What the final answer of a turn must fit, if it is to be a JSON value.
    pub output_schema: Option<AnswerSchema>,
    /// The model for summaries; the run's own if there is none.
    pub fast_model: Option<String>,
    /// The model to go on with when the provider stays overloaded.
    pub fallback_model: Option<String>,
    /// What tokens cost.
    pub prices: PriceTable,
    /// Tokens of the model's context; from a small table if it is not given.
    pub context_window: Option<u64>,
    /// How full the context may be, in percent, before it is compacted.
    pub compact_percent: u8,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            dialect: String::new(),
            limits: RunLimits::default(),
            allowed: AllowedTools::all(),
            nested_instructions: false,
            options: TurnOptions::default(),
            output_schema: None,
            fast_model: None,
            fallback_model: None,
            prices: PriceTable::list(),
            context_window: None,
            compact_percent: DEFAULT_COMPACT_PERCENT,
        }
    }
}
