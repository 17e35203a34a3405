//! `TaskStop`: ends a background task.

use haft_tool::{Effect, JsonSchema, Output, Planning, SideEffect, TaskState, Tool, ToolError, World, json};
use serde::Deserialize;

/// Stop a background task with everything it has started.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The task's ID.
    task_id: Option<String>,
    /// Deprecated: use `task_id`.
    shell_id: Option<String>,
}

impl Input {
    fn id(&self) -> Result<&str, ToolError> {
        let id = self.task_id.as_deref().or(self.shell_id.as_deref());
        id.ok_or_else(|| ToolError::invalid_arguments("task_id: required but missing (string)"))
    }
}

pub(super) struct TaskStop;

impl Tool for TaskStop {
    type Input = Input;

    fn name(&self) -> &'static str {
        "TaskStop"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }

    fn plan(&self, input: &Input, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        input.id().map(|_| Vec::new())
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let task = world.tasks().stop(input.id()?)?;
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
