//! `TaskStop`: ends a background task.

use haft_tool::TaskState;
use haft_tool::prelude::*;

/// Stop a background task with everything it has started.
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
        let task = world.tasks().stop(&id)?;
        let message = match task.state {
            TaskState::Stopped => format!("Stopped task {} ({})", task.id, task.description),
            state => format!("Task {} had already ended ({})", task.id, state.word()),
        };
        Ok(Output::text(message.clone()).with_structured(json!({
            "message": message,
            "task_id": task.id,
            "task_type": "local_bash",
            "command": task.command,
            "receipt": task.receipt,
        })))
    }
}
