//! `TodoWrite`: the session's list of todos.

use haft_tool::prelude::*;

/// The session's note that holds the list.
const TODOS: &str = "todos";

/// Keep a list of todos for work of several steps; each call replaces the whole list. Have one item in progress, and mark items completed as soon as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    todos: Vec<TodoItem>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub(super) struct TodoItem {
    /// For example "Run the tests".
    content: String,
    status: TodoStatus,
    /// For example "Running the tests".
    #[serde(rename = "activeForm")]
    active_form: String,
}

#[derive(Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

pub(super) struct TodoWrite;

impl Tool for TodoWrite {
    const NAME: &'static str = "TodoWrite";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Note];
    const NEEDS: Option<ToolNeed> = Some(ToolNeed::AgentLoop);
    type Input = Input;
    type Plan = Vec<TodoItem>;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Vec<TodoItem>>, ToolError> {
        for (at, todo) in input.todos.iter().enumerate() {
            for (field, text) in [("content", &todo.content), ("activeForm", &todo.active_form)] {
                if text.trim().is_empty() {
                    return Err(ToolError::invalid_arguments(format!("todos[{at}].{field}: it is empty")));
                }
            }
        }
        Ok(Planned::new([Effect::Note { name: TODOS.to_owned() }], input.todos))
    }

    fn perform(&self, todos: Vec<TodoItem>, world: &dyn World) -> Result<Output, ToolError> {
        let old = world.note(TODOS)?.unwrap_or_else(|| json!([]));
        let new = serde_json::to_value(&todos)?;
        world.set_note(TODOS, new.clone());
        let facts = json!({"oldTodos": old, "newTodos": new});
        world.host().notify(TODOS, &facts);
        let count = |status: TodoStatus| todos.iter().filter(|todo| todo.status == status).count();
        let text = format!(
            "The list has {} pending, {} in progress, {} completed",
            count(TodoStatus::Pending),
            count(TodoStatus::InProgress),
            count(TodoStatus::Completed)
        );
        Ok(Output::text(text).with_structured(facts))
    }
}
