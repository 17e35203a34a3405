//! Where a member goes and how it is indented: as its neighbours are.

use haft_tool::Value;
use serde::Serialize;

use super::super::{Edit, line_end, line_start, newline};
use super::plain::{Object, Plain};

/// What one step to the right is where nobody shows it.
const UNIT: &str = "  ";

/// A new member at the end of `object`.
pub(super) fn insertion(text: &str, plain: &Plain, object: &Object, name: &str, value: &Value) -> Vec<Edit> {
    let member = |indent: Option<&str>| {
        let space = if indent.is_none() && is_compact(plain) { "" } else { " " };
        format!("{}:{space}{}", Value::from(name), rendered(text, plain, value, indent))
    };
    let Some(last) = object.members.last() else {
        let inside = &text[object.open + 1..object.close];
        if is_compact(plain) {
            return vec![Edit::insert(object.open + 1, member(None))];
        }
        let outer = indent_at(text, object.open);
        let indent = format!("{outer}{}", unit(text, plain));
        let tail = inside.len() - inside.trim_end().len();
        // Behind a comment, if there is one; its line ends before the new member.
        let at = object.close - tail;
        let line = newline(text);
        let close =
            if text[at..object.close].contains('\n') { String::new() } else { format!("{line}{outer}") };
        return vec![Edit::insert(at, format!("{line}{indent}{}{close}", member(Some(&indent))))];
    };
    let end = last.comma.map_or(last.value.end, |comma| comma + 1);
    // A file that has commas behind its last members goes on having them.
    let (comma, trailing) = if last.comma.is_some() { ("", ",") } else { (",", "") };
    if !plain.breaks(object.open..object.close) {
        let space = if is_compact(plain) { "" } else { " " };
        return vec![Edit::insert(end, format!("{comma}{space}{}{trailing}", member(None)))];
    }
    let indent = match own_line(text, last.start) {
        Some(indent) => indent.to_owned(),
        None => format!("{}{}", indent_at(text, object.open), unit(text, plain)),
    };
    let new = format!("{}{indent}{}{trailing}", newline(text), member(Some(&indent)));
    let behind = behind_remarks(text, end);
    if comma.is_empty() || behind == end {
        return vec![Edit::insert(behind, format!("{comma}{new}"))];
    }
    vec![Edit::insert(end, comma), Edit::insert(behind, new)]
}

/// A new value for a member that is there.
pub(super) fn replacement(text: &str, plain: &Plain, object: &Object, at: usize, value: &Value) -> Vec<Edit> {
    let member = &object.members[at];
    let lines = plain.breaks(object.open..object.close);
    let indent = lines.then(|| own_line(text, member.start).unwrap_or_else(|| indent_at(text, member.start)));
    vec![Edit { at: member.value.clone(), with: rendered(text, plain, value, indent) }]
}

/// Takes a member out, with one comma. Comments stay.
pub(super) fn removal(text: &str, object: &Object, at: usize) -> Vec<Edit> {
    let member = &object.members[at];
    let previous = at.checked_sub(1).and_then(|at| object.members[at].comma);
    let is_last = at + 1 == object.members.len();
    // The comma that goes: its own, or, behind the last one, that of its predecessor.
    let own = member.comma.filter(|comma| is_blank(&text[member.value.end..*comma]));
    let end = own.map_or(member.value.end, |comma| comma + 1);
    let whole = match own_line(text, member.start) {
        Some(_) if is_blank(text[end..line_end(text, end)].trim_end()) && text[end..].contains('\n') => {
            line_start(text, member.start)..line_end(text, end)
        }
        Some(_) => member.start..end,
        None => {
            let spaces = text[end..].len() - text[end..].trim_start_matches([' ', '\t']).len();
            let gone = own.is_some() && !is_last;
            member.start..if gone { end + spaces } else { end }
        }
    };
    let mut edits = vec![Edit::cut(whole)];
    match (member.comma, own, previous) {
        (Some(comma), None, _) => edits.push(Edit::cut(comma..comma + 1)),
        (None, _, Some(comma)) => {
            let near = is_blank(&text[comma + 1..member.start]) && own_line(text, member.start).is_none();
            if near {
                edits[0].at.start = comma;
            } else {
                edits.insert(0, Edit::cut(comma..comma + 1));
            }
        }
        _ => {}
    }
    edits
}

/// Whether all of the text stands on one line, as programs write it.
fn is_compact(plain: &Plain) -> bool {
    plain.root().is_some_and(|root| {
        let whole = plain.object(root);
        !whole.members.is_empty() && !plain.breaks(whole.open..whole.close)
    })
}

/// The value as text; over several lines where there is an indent.
fn rendered(text: &str, plain: &Plain, value: &Value, indent: Option<&str>) -> String {
    let Some(indent) = indent else { return value.to_string() };
    let unit = unit(text, plain);
    let mut bytes = Vec::new();
    let pretty = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, pretty);
    match value.serialize(&mut serializer).map(|()| String::from_utf8(bytes)) {
        // A string has no line end that is not escaped, so that each is one of the layout.
        Ok(Ok(pretty)) => pretty.replace('\n', &format!("{}{indent}", newline(text))),
        _ => value.to_string(),
    }
}

/// One step to the right, as the first member shows it.
fn unit(text: &str, plain: &Plain) -> String {
    let first = plain.root().filter(|root| plain.is_object(*root)).and_then(|root| {
        let first = plain.object(root).members.first()?.start;
        let indent = own_line(text, first)?.strip_prefix(indent_at(text, root))?;
        (!indent.is_empty()).then(|| indent.to_owned())
    });
    first.unwrap_or_else(|| UNIT.to_owned())
}

/// The spaces before `at`, if nothing else stands before it on its line.
fn own_line(text: &str, at: usize) -> Option<&str> {
    let before = &text[line_start(text, at)..at];
    is_blank(before).then_some(before)
}

/// The spaces that the line of `at` begins with.
fn indent_at(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_whitespace())
}

/// Behind what is remarked on the same line about what ends at `end`, if the line ends there.
fn behind_remarks(text: &str, end: usize) -> usize {
    let line = text[..line_end(text, end)].trim_end_matches(['\n', '\r']).len();
    let mut rest = text[end..line.max(end)].trim_start_matches([' ', '\t']);
    loop {
        if rest.is_empty() || rest.starts_with("//") {
            return line.max(end);
        }
        let Some(close) = rest.strip_prefix("/*").and_then(|inside| inside.find("*/")) else { return end };
        rest = rest[close + 4..].trim_start_matches([' ', '\t']);
    }
}
