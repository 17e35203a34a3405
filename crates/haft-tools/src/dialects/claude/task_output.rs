//! `TaskOutput`: what a background task has written, and where it stands.

use std::time::Duration;

use haft_tool::{
    Effect, EffectKind, Exit, JsonSchema, Output, Planned, Planning, TaskInfo, TaskRead, Tool, ToolError,
    World, json,
};
use serde::Deserialize;

use crate::ops::shell;

const DEFAULT_TIMEOUT_MS: u64 = 30_000;
/// What one look gives; below what a caller sees at once, so that nothing has to be cut.
const MOST_BYTES: usize = 28_000;

/// Get what a background task has written since you last asked, and its status; also after it has ended.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    task_id: String,
    /// Whether to wait for its end (default true).
    block: Option<bool>,
    /// The most milliseconds to wait (default 30000).
    #[schemars(range(max = 600_000))]
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
        let read = world.tasks().read(&input.task_id, wait, MOST_BYTES)?;
        let (retrieval, still) = match (read.info.state.is_over(), wait) {
            (true, _) => ("success", None),
            (false, Some(_)) => ("timeout", Some(format!("(still running after {timeout} ms)"))),
            (false, None) => ("not_ready", Some("(still running)".to_owned())),
        };
        let output = String::from_utf8_lossy(&read.output);
        let exit = read.info.exit;
        let finished = read.finished.as_ref();
        let structured = json!({
            "retrieval_status": retrieval,
            "task": {
                "task_id": read.info.id,
                "task_type": "local_bash",
                "status": read.info.state,
                "description": read.info.description,
                "output": output,
                "exitCode": match exit { Some(Exit::Code(code)) => Some(code), _ => None },
                "signal": match exit { Some(Exit::Signal(signal)) => Some(signal), _ => None },
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
        Ok(Output::text(text(&read, &output, still)).with_structured(structured))
    }
}

/// The output, with a line for everything else there is to say.
fn text(read: &TaskRead, output: &str, still: Option<String>) -> String {
    let mut lines = Vec::new();
    if read.more > 0 {
        lines.push(format!("({} bytes more: call TaskOutput again)", read.more));
    } else {
        lines.extend(still);
        lines.extend(read.error.iter().map(|error| error.message.clone()));
        if let Some(finished) = &read.finished {
            lines.push(shell::ending(finished.exit).unwrap_or_else(|| "(completed)".to_owned()));
            lines.extend(finished.facts(shell::MOST_REFUSALS));
        }
    }
    let mut text = String::new();
    if read.skipped > 0 {
        text.push_str(&format!("[... {} bytes were not kept ...]\n", read.skipped));
    }
    text.push_str(output);
    for line in lines {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
    }
    text
}

/// The words that tell a model that a task has ended.
pub fn notice(task: &TaskInfo) -> String {
    let TaskInfo { id, description, state, exit, .. } = task;
    let ending = exit.and_then(shell::ending).map(|ending| format!(": {ending}")).unwrap_or_default();
    let state = state.word();
    // What a command is called must not look like the end of the notice.
    let description = description.replace('<', "&lt;");
    format!(
        "<task-notification>\n<task-id>{id}</task-id>\n<status>{state}</status>\n\
         <summary>Background command \"{description}\" has ended ({state}){ending}. Read it with TaskOutput.</summary>\n\
         </task-notification>"
    )
}
