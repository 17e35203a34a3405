//! `TaskOutput`: the output and state of a background task.

use std::time::Duration;

use haft_tool::prelude::*;
use haft_tool::{AgentTask, Exit};

use crate::ops::shell::exit_code;
use crate::ops::tasks::task_text;

const DEFAULT_TIMEOUT_MS: u64 = 30_000;
/// Less than the bound of the result, so that nothing is cut.
const MAX_BYTES: usize = 28_000;

/// Get what a background task or agent has written since you last asked, and its status; also after it has ended.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    task_id: String,
    /// Whether to wait for its end (default true).
    block: Option<bool>,
    /// The most milliseconds to wait (default 30000).
    #[schemars(range(max = 600_000), extend("format" = "milliseconds"))]
    timeout: Option<u64>,
}

pub(super) struct TaskOutput;

impl Tool for TaskOutput {
    const NAME: &'static str = "TaskOutput";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Inspect];
    type Input = Input;
    type Plan = Input;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Input>, ToolError> {
        Ok(Planned::new([Effect::Inspect { what: format!("the task {}", input.task_id) }], input))
    }

    fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let timeout = input.timeout.unwrap_or(DEFAULT_TIMEOUT_MS);
        let wait = input.block.unwrap_or(true).then(|| Duration::from_millis(timeout));
        if let Some(agent) = world.host().agent_task(&input.task_id, wait, world.cancelled()) {
            return Ok(agent_output(&agent, wait.is_some()));
        }
        let read = world.tasks().read(&input.task_id, wait, MAX_BYTES)?;
        let (retrieval, waiting) = match (read.info.state.is_over(), wait) {
            (true, _) => ("success", None),
            (false, Some(_)) => ("timeout", Some(format!("(still running after {timeout} ms)"))),
            (false, None) => ("not_ready", Some("(still running)".to_owned())),
        };
        let finished = read.finished.as_ref();
        let structured = json!({
            "retrieval_status": retrieval,
            "task": {
                "task_id": read.info.id,
                "task_type": "local_bash",
                "status": read.info.state,
                "description": read.info.description,
                "output": String::from_utf8_lossy(&read.output),
                "exitCode": read.info.exit.and_then(exit_code),
                "signal": match read.info.exit { Some(Exit::Signal(signal)) => Some(signal), _ => None },
                "error": read.error.as_ref().map(|error| &error.message),
            },
            "waitingBytes": read.more,
            "skippedBytes": read.skipped,
            "totalBytes": read.total,
            "droppedBytes": read.dropped,
            "denials": finished.map(|finished| &finished.denials),
            "exhausted": finished.and_then(|finished| finished.exhausted.as_ref()),
            "receipt": read.info.receipt,
        });
        Ok(Output::text(task_text(&read, Self::NAME, waiting.as_deref())).with_structured(structured))
    }
}

/// What an agent said at the end, or what it does now.
fn agent_output(agent: &AgentTask, waited: bool) -> Output {
    let AgentTask { id, description, state, text } = agent;
    let (retrieval, shown) = match (state.is_over(), waited) {
        (true, _) => ("success", text.clone()),
        (false, true) => ("timeout", format!("(agent {id} is still running: {text})")),
        (false, false) => ("not_ready", format!("(agent {id} is still running: {text})")),
    };
    Output::text(shown).with_structured(json!({
        "retrieval_status": retrieval,
        "task": {
            "task_id": id, "task_type": "local_agent", "status": state, "description": description, "output": text,
        },
    }))
}
