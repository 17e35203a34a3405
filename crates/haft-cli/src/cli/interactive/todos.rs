//! The list of todos, shown when it changes.

use haft_agent::TodoEntry;
use haft_tool::clip_chars;

use super::super::screen::{self, BOLD, FAINT, styled};

/// Todos that are shown.
const MAX_TODOS: usize = 50;
/// How much of a todo is shown.
const MAX_TODO_CHARS: usize = 200;

pub(super) fn lines(todos: &[TodoEntry]) -> String {
    let shown = |text: &str| screen::escape(&clip_chars(text, MAX_TODO_CHARS, 0));
    let mut lines = String::new();
    for todo in todos.iter().take(MAX_TODOS) {
        let line = match todo.status.as_str() {
            "completed" => styled(FAINT, &format!("[x] {}", shown(&todo.content))),
            "in_progress" => styled(BOLD, &format!("[>] {}", shown(&todo.active_form))),
            _ => format!("[ ] {}", shown(&todo.content)),
        };
        lines.push_str(&format!("  {line}\n"));
    }
    if todos.len() > MAX_TODOS {
        lines.push_str(&format!("  and {} more\n", todos.len() - MAX_TODOS));
    }
    lines
}
