//! The list of todos, shown when a call changes it.

use haft_tool::{Value, clip_chars};
use serde_json::Map;

use super::super::screen::{self, BOLD, FAINT, styled};

/// The tool that replaces the list.
const TODO_TOOL: &str = "TodoWrite";
/// Todos that are shown.
const MAX_TODOS: usize = 50;
/// How much of a todo is shown.
const MAX_TODO_CHARS: usize = 200;

/// The list that a call wrote; `None` if it was another call.
pub(super) fn lines(tool: &str, arguments: &Map<String, Value>) -> Option<String> {
    let todos = arguments.get("todos").filter(|_| tool == TODO_TOOL)?.as_array()?;
    let mut text = String::new();
    for todo in todos.iter().take(MAX_TODOS) {
        let field = |name: &str| {
            let value = todo.get(name).and_then(Value::as_str).unwrap_or_default();
            screen::escape(&clip_chars(value, MAX_TODO_CHARS, 0))
        };
        let line = match field("status").as_str() {
            "completed" => styled(FAINT, &format!("[x] {}", field("content"))),
            "in_progress" => styled(BOLD, &format!("[>] {}", field("activeForm"))),
            _ => format!("[ ] {}", field("content")),
        };
        text.push_str(&format!("  {line}\n"));
    }
    if todos.len() > MAX_TODOS {
        text.push_str(&format!("  and {} more\n", todos.len() - MAX_TODOS));
    }
    Some(text)
}
