//! Lines that readers with a limit can read.

use haft_tool::clip_chars;
use serde_json::{Value, json};

/// The longest line, with its line feed. Readers break off at 1 MiB.
pub const MAX_LINE_BYTES: usize = (1 << 20) - 1;

/// How many characters of each text are kept, one after the other until the line fits.
const TEXT_LIMITS: [usize; 6] = [200_000, 50_000, 10_000, 2_000, 200, 20];
/// Elements of a list that are kept in the last resort.
const MAX_ELEMENTS: usize = 100;

/// The message as JSON on one line, with a line feed. Of one that is too long, the structured result goes first, then the longest
/// texts are cut.
pub fn fit_line(message: &Value) -> String {
    let line = format!("{message}\n");
    if line.len() <= MAX_LINE_BYTES {
        return line;
    }
    let mut cut = message.clone();
    if let Some(result) = cut.get_mut("tool_use_result") {
        *result = json!({"truncated": true});
    }
    for limit in TEXT_LIMITS {
        let line = format!("{cut}\n");
        if line.len() <= MAX_LINE_BYTES {
            return line;
        }
        clip_texts(&mut cut, limit);
    }
    let line = format!("{cut}\n");
    if line.len() <= MAX_LINE_BYTES {
        return line;
    }
    clip_lists(&mut cut);
    let line = format!("{cut}\n");
    if line.len() <= MAX_LINE_BYTES {
        return line;
    }
    // Only names and nesting are left, which no message of Haft has so many of.
    let kind = |name: &str| message.get(name).cloned().unwrap_or_default();
    format!(
        "{}\n",
        json!({"type": kind("type"), "subtype": kind("subtype"), "uuid": kind("uuid"), "truncated": true})
    )
}

fn clip_texts(value: &mut Value, limit: usize) {
    match value {
        Value::String(text) if text.len() > limit => {
            let clipped = clip_chars(text, limit, 0).into_owned();
            *text = clipped;
        }
        Value::Array(values) => values.iter_mut().for_each(|value| clip_texts(value, limit)),
        Value::Object(members) => members.values_mut().for_each(|value| clip_texts(value, limit)),
        _ => {}
    }
}

fn clip_lists(value: &mut Value) {
    match value {
        Value::Array(values) => {
            values.truncate(MAX_ELEMENTS);
            values.iter_mut().for_each(clip_lists);
        }
        Value::Object(members) => members.values_mut().for_each(clip_lists),
        _ => {}
    }
}
