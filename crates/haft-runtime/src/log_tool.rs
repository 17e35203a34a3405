//! `haft_log`: the last calls in this workspace, for models.

use std::sync::Arc;

use haft_ledger::{ReceiptQuery, ReceiptSummary};
use haft_tool::ReceiptState;
use haft_tool::prelude::*;

use crate::history::History;

/// As much as other results may have; a log that is cut is still JSON.
const MAX_BYTES: usize = 30_000;
const DEFAULT_CALLS: usize = 20;
/// The most changed paths that are named for a call.
const MAX_PATHS: usize = 20;

/// List the last recorded calls in this workspace, newest first, with what each changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogInput {
    /// How many [default: 20].
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct CallLog {
    /// The newest first.
    calls: Vec<LoggedCall>,
}

#[derive(Serialize, JsonSchema)]
struct LoggedCall {
    /// Its number.
    call: i64,
    /// The tool's name.
    tool: String,
    /// How it ended, or that it has not.
    state: ReceiptState,
    /// When it started, in milliseconds since 1970.
    at: u64,
    /// How many paths it changed.
    changes: u64,
    /// The first of them.
    paths: Vec<String>,
    /// The call that undid it.
    undone_by: Option<i64>,
}

pub(crate) struct HaftLog {
    pub(crate) history: Arc<History>,
}

impl Tool for HaftLog {
    const NAME: &'static str = "haft_log";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Inspect];
    const BOUND: Bound = Bound::json(MAX_BYTES);
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<CallLog>);
    type Input = LogInput;
    type Plan = usize;

    fn plan(&self, input: LogInput, _at: &Planning) -> Result<Planned<usize>, ToolError> {
        let effect = Effect::Inspect { what: "the ledger".to_owned() };
        Ok(Planned::new([effect], input.limit.unwrap_or(DEFAULT_CALLS)))
    }

    fn perform(&self, limit: usize, _world: &dyn World) -> Result<Output, ToolError> {
        let workspace = Some(self.history.workspace().to_owned());
        let entries = self.history.ledger()?.summaries(&ReceiptQuery {
            workspace,
            limit,
            ..ReceiptQuery::default()
        })?;
        let call = |entry: ReceiptSummary| {
            let receipt = entry.receipt;
            let paths =
                receipt.changes.iter().take(MAX_PATHS).map(|change| change.path.display().to_string());
            LoggedCall {
                call: receipt.id,
                paths: paths.collect(),
                tool: receipt.tool,
                state: receipt.state,
                at: receipt.started_at,
                changes: entry.change_count,
                undone_by: entry.undone_by,
            }
        };
        Ok(Output::json(json!(CallLog { calls: entries.into_iter().map(call).collect() })))
    }
}
