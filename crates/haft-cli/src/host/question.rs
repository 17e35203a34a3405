//! What a question to the user shows: all that the call would do, without anything that could hide a part of it.

use std::fmt::Write;

use haft_runtime::{ProposedChange, Question};
use haft_tool::{Effect, Value};
use similar::TextDiff;

use crate::cli::screen::escape;

/// The longest argument or diff that is shown whole, in lines; of a longer one the first and the last lines are shown.
const MAX_BLOCK_LINES: usize = 80;
const TAIL_LINES: usize = 20;
/// The longest line that is shown whole, in characters.
const MAX_LINE_CHARS: usize = 2_000;
const TAIL_CHARS: usize = 400;
/// Lines around a change in a diff.
const CONTEXT_LINES: usize = 3;

/// The whole question, several lines, without the last words that ask for a yes.
pub(crate) fn question_text(question: &Question) -> String {
    let Question { tool, input, effects, reason, changes, agent, .. } = question;
    let mut text = String::new();
    match changes {
        Ok(changes) if !changes.is_empty() => changes.iter().for_each(|change| add_change(&mut text, change)),
        Ok(_) => add_arguments(&mut text, input),
        Err(error) => {
            add_arguments(&mut text, input);
            let _ = writeln!(text, "  (its changes cannot be shown: {})", bounded_line(&error.message));
        }
    }
    for effect in effects {
        if let Effect::Unsandboxed = effect {
            text.push_str("  It would run outside the sandbox; what it changes cannot be undone.\n");
        }
    }
    let agent = agent.as_ref().map(|name| format!("agent {}: ", bounded_line(name))).unwrap_or_default();
    let _ = write!(text, "{agent}{}: {}.", escape(tool), bounded_line(reason));
    text
}

fn add_arguments(text: &mut String, input: &Value) {
    let Value::Object(arguments) = input else {
        let _ = writeln!(text, "  {}", bounded_line(&input.to_string()));
        return;
    };
    for (name, value) in arguments {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match value.trim_end_matches('\n') {
            line if !line.contains('\n') => {
                let _ = writeln!(text, "  {}: {}", escape(name), bounded_line(line));
            }
            lines => {
                let _ = writeln!(text, "  {}:", escape(name));
                add_block(text, lines);
            }
        }
    }
}

fn add_change(text: &mut String, change: &ProposedChange) {
    match change {
        ProposedChange::File { path, before, after } => {
            let word = if before.is_some() { "change" } else { "create" };
            let _ = writeln!(text, "  {word} {}", escape(&path.display().to_string()));
            let old = before.as_deref().unwrap_or_default();
            match (std::str::from_utf8(old), std::str::from_utf8(after)) {
                (Ok(old), Ok(new)) => {
                    let diff = TextDiff::from_lines(old, new);
                    let diff = diff.unified_diff().context_radius(CONTEXT_LINES).to_string();
                    add_block(text, diff.trim_end_matches('\n'));
                }
                _ => {
                    let _ = writeln!(text, "    {} bytes become {} bytes, not text", old.len(), after.len());
                }
            }
        }
        ProposedChange::Setting { name, before, after } => {
            let (before, after) = (before.to_string(), after.to_string());
            let _ = writeln!(
                text,
                "  setting {}: {} becomes {}",
                escape(name),
                bounded_line(&before),
                bounded_line(&after)
            );
        }
        _ => {}
    }
}

/// Adds lines, indented; the middle of a long text is left out, and a note says how much that is.
fn add_block(text: &mut String, block: &str) {
    let lines: Vec<&str> = block.split('\n').collect();
    let hidden = lines.len().saturating_sub(MAX_BLOCK_LINES);
    let head = if hidden > 0 { MAX_BLOCK_LINES - TAIL_LINES } else { lines.len() };
    let add = |text: &mut String, lines: &[&str]| {
        for line in lines {
            let _ = writeln!(text, "    {}", bounded_line(line));
        }
    };
    add(text, &lines[..head]);
    if hidden > 0 {
        let _ = writeln!(text, "  [... {hidden} lines in the middle are not shown]");
        add(text, &lines[head + hidden..]);
    }
}

/// One line without control characters; the middle of a long one is left out.
fn bounded_line(line: &str) -> String {
    let count = line.chars().count();
    if count <= MAX_LINE_CHARS {
        return escape(line);
    }
    let head: String = line.chars().take(MAX_LINE_CHARS - TAIL_CHARS).collect();
    let tail: String = line.chars().skip(count - TAIL_CHARS).collect();
    let hidden = count - MAX_LINE_CHARS;
    format!("{} [... {hidden} characters are not shown ...] {}", escape(&head), escape(&tail))
}
