//! Background tasks as text.

use haft_tool::{TaskInfo, TaskRead};

use super::shell::{MAX_LISTED_DENIALS, append_line, exit_message};

/// The output of a task and its state. `reader` is the tool that returns the rest; `waiting` is shown while it runs.
pub(crate) fn task_text(read: &TaskRead, reader: &str, waiting: Option<&str>) -> String {
    let mut text = String::new();
    if read.skipped > 0 {
        text.push_str(&format!("[... {} bytes were not kept ...]\n", read.skipped));
    }
    text.push_str(&String::from_utf8_lossy(&read.output));
    if read.more > 0 {
        append_line(&mut text, &format!("({} bytes more: call {reader} again)", read.more));
        return text;
    }
    let error = read.error.as_ref().map(|error| error.message.as_str());
    for line in waiting.into_iter().chain(error) {
        append_line(&mut text, line);
    }
    if let Some(finished) = &read.finished {
        append_line(&mut text, &exit_message(finished.exit).unwrap_or_else(|| "(completed)".to_owned()));
        for fact in finished.facts(MAX_LISTED_DENIALS) {
            append_line(&mut text, &fact);
        }
    }
    text
}

/// The message to a model that a task has ended.
pub fn notice(task: &TaskInfo) -> String {
    let TaskInfo { id, description, state, exit, .. } = task;
    let ending = exit.and_then(exit_message).map(|ending| format!(": {ending}")).unwrap_or_default();
    let state = state.word();
    // A description must not be able to close the notice.
    let description = description.replace('<', "&lt;");
    format!(
        "<task-notification>\n<task-id>{id}</task-id>\n<status>{state}</status>\n\
         <summary>Background command \"{description}\" has ended ({state}){ending}. Read it with TaskOutput.</summary>\n\
         </task-notification>"
    )
}
