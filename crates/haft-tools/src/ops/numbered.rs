//! Lines with their numbers, as `cat -n` prints them.

use std::fmt::Write;

use haft_tool::clip_chars;

use super::read::Lines;

/// How much of a line is shown.
const MAX_LINE_CHARS: usize = 2_000;

/// The lines, of which the first has the number `first`, and a note about those that follow.
pub(crate) fn numbered_lines(lines: &Lines, first: u64) -> String {
    let mut text = String::new();
    for (number, (line, dropped)) in (first..).zip(lines.iter()) {
        let _ = writeln!(text, "{number:>6}\t{}", clip_chars(line, MAX_LINE_CHARS, dropped));
    }
    let next = first + lines.len() as u64;
    let note = match lines.total {
        Some(0) => "the file is empty".to_owned(),
        Some(total) if lines.len() == 0 => format!("the file has only {}", counted_lines(total)),
        Some(total) if next <= total => {
            format!("lines {first} to {} of {total}; read on with offset {next}", next - 1)
        }
        Some(_) => return text,
        None => format!("lines {first} to {} of very many; read on with offset {next}", next - 1),
    };
    let _ = writeln!(text, "({note})");
    text
}

/// A number of lines, with the noun.
pub(crate) fn counted_lines(count: u64) -> String {
    if count == 1 { "1 line".to_owned() } else { format!("{count} lines") }
}
