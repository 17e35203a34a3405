//! Results that the loop itself gives to calls, and what it adds to those of tools.

use std::path::PathBuf;

use haft_model::{ChatMessage, ContentPart, Conversation, ToolCall, ToolResult};

/// A call that failed so often in the same way is pointed out.
const MAX_EQUAL_FAILURES_COUNT: usize = 3;
/// Changed paths of an interrupted call that are named.
const MAX_NAMED_PATHS_COUNT: usize = 5;
/// What the model is told about a call that keeps failing.
const REPEATED: &str = "\n\nThis call has failed in the same way three times or more. Making it again will not help: find out why it fails, \
     or try another approach.";

/// The result of a call that was not made.
pub(crate) fn failed(call: &ToolCall, message: &str) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: vec![ContentPart::text(message)],
        is_error: true,
    }
}

/// The result of a call that the user stopped before it began.
pub(crate) fn not_started(call: &ToolCall) -> ToolResult {
    failed(call, "interrupted: the user stopped the turn before this call was made.")
}

/// The result of a call that was interrupted, with what it had changed by then.
pub(crate) fn interrupted(call: &ToolCall, changed: &[PathBuf]) -> ToolResult {
    let paths: Vec<String> = changed.iter().map(|path| path.display().to_string()).collect();
    let changed = match paths.as_slice() {
        [] => "No change by it is recorded".to_owned(),
        all if all.len() > MAX_NAMED_PATHS_COUNT => {
            let (first, rest) = all.split_at(MAX_NAMED_PATHS_COUNT);
            format!("It had changed {} and {} more", first.join(", "), rest.len())
        }
        all => format!("It had changed {}", all.join(", ")),
    };
    let advice = "look at the state before you repeat it.";
    failed(call, &format!("interrupted: Haft ended while this call ran. {changed}; {advice}"))
}

/// Adds a sentence to a failure if the same call failed in the same way before, again and again.
pub(crate) fn with_repetition(
    conversation: &Conversation,
    call: &ToolCall,
    mut result: ToolResult,
) -> ToolResult {
    let text = result.text();
    if result.is_error && equal_failures(conversation, call, &text) + 1 >= MAX_EQUAL_FAILURES_COUNT {
        result.content.push(ContentPart::text(REPEATED));
    }
    result
}

/// How often in a row, up to now, the same call has failed with the same text.
fn equal_failures(conversation: &Conversation, call: &ToolCall, text: &str) -> usize {
    let mut results = conversation.messages.iter().rev().flat_map(|message| match message {
        ChatMessage::ToolResults { results, .. } => results.as_slice(),
        _ => &[],
    });
    let is_same = |earlier: &ToolCall| earlier.name == call.name && earlier.arguments == call.arguments;
    let same: Vec<&str> =
        conversation.calls().filter(|earlier| is_same(earlier)).map(|call| call.id.as_str()).collect();
    let mut count = 0;
    while let Some(result) = results.find(|result| same.contains(&result.call_id.as_str())) {
        let earlier = result.text();
        if !result.is_error || earlier.strip_suffix(REPEATED).unwrap_or(&earlier) != text {
            break;
        }
        count += 1;
    }
    count
}
