//! `TaskStop`: ends a background task.

use haft_tool::prelude::*;
use haft_tool::{AgentTask, TaskState};

/// Stop a background task or agent with everything it has started.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The task's ID.
    task_id: Option<String>,
    /// Deprecated: use `task_id`.
    shell_id: Option<String>,
}

pub(super) struct TaskStop;

impl Tool for TaskStop {
    const NAME: &'static str = "TaskStop";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::StopTask];
    type Input = Input;
    type Plan = String;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<String>, ToolError> {
        let id = input.task_id.or(input.shell_id);
        let id = id.ok_or_else(|| ToolError::invalid_arguments("task_id: required but missing (string)"))?;
        Ok(Planned::new([Effect::StopTask { task: id.clone() }], id))
    }

    fn perform(&self, id: String, world: &dyn World) -> Result<Output, ToolError> {
        if let Some(AgentTask { id, description, state, .. }) =
            world.host().stop_agent(&id, world.cancelled())
        {
            let message = message(&id, &description, state);
            return Ok(Output::text(message.clone()).with_structured(json!({
                "message": message, "task_id": id, "task_type": "local_agent",
            })));
        }
        let task = world.tasks().stop(&id)?;
        let message = message(&task.id, &task.description, task.state);
        Ok(Output::text(message.clone()).with_structured(json!({
            "message": message,
            "task_id": task.id,
            "task_type": "local_bash",
            "command": task.command,
            "receipt": task.receipt,
        })))
    }
}

fn message(id: &str, description: &str, state: TaskState) -> String {
    match state {
        TaskState::Stopped => format!("Stopped task {id} ({description})"),
        state => format!("Task {id} had already ended ({})", state.word()),
    }
}
