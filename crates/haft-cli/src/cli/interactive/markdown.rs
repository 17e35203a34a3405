//! Markdown as it arrives, in rows of the terminal's width. A row that was given out is final: nothing that arrives later changes it.

use super::super::screen::{BOLD, FAINT, ITALIC, NAME, styled};
use super::super::view::char_width;

/// A longer line is given out in parts.
const MAX_LINE_BYTES: usize = 4 << 10;
/// A narrower terminal is written to as if it had so many columns.
const MIN_COLUMNS: usize = 20;
const FENCES: [&str; 2] = ["```", "~~~"];

/// Text that arrives in pieces. It must not contain control characters other than newlines and tabs.
#[derive(Default)]
pub(super) struct MarkdownStream {
    /// The line that is not complete, without tabs.
    line: String,
    /// The columns when the line began, so that rows of one line are of one width.
    columns: usize,
    /// Rows of the line that were given out.
    rows_given: usize,
    /// The fence of the code block that is open.
    fence: Option<&'static str>,
}

/// A piece of a line in one style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InlineStyle {
    Plain,
    Bold,
    Italic,
    Code,
}

impl MarkdownStream {
    /// Takes the next piece; returns the rows that are complete, each with its newline.
    pub(super) fn push(&mut self, piece: &str, columns: usize) -> String {
        let mut rows = String::new();
        for (at, part) in piece.split('\n').enumerate() {
            if at > 0 {
                rows.push_str(&self.end_line(columns));
            }
            let part = part.replace('\t', "    ");
            let mut rest = part.as_str();
            while !rest.is_empty() {
                self.begin(columns);
                let (now, later) = rest.split_at(rest.floor_char_boundary(MAX_LINE_BYTES - self.line.len()));
                self.line.push_str(now);
                rest = later;
                if !later.is_empty() {
                    rows.push_str(&self.end_line(columns));
                }
            }
        }
        let stable = self.rendered(stable_part(&self.line));
        let complete = stable.len().saturating_sub(1);
        for row in stable.iter().take(complete).skip(self.rows_given) {
            rows.push_str(&format!("{row}\n"));
        }
        self.rows_given = self.rows_given.max(complete);
        rows
    }

    /// The rest: the text is at its end.
    pub(super) fn finish(&mut self) -> String {
        let rest = if self.line.is_empty() { String::new() } else { self.end_line(self.columns) };
        *self = Self::default();
        rest
    }

    /// The row that is not complete; empty if there is none.
    pub(super) fn partial_row(&self) -> String {
        self.rendered(&self.line).into_iter().skip(self.rows_given).last().unwrap_or_default()
    }

    /// Whether a line has begun and not ended.
    pub(super) fn is_in_line(&self) -> bool {
        !self.line.is_empty()
    }

    fn begin(&mut self, columns: usize) {
        if self.line.is_empty() {
            self.columns = columns.max(MIN_COLUMNS);
        }
    }

    fn end_line(&mut self, columns: usize) -> String {
        self.begin(columns);
        let line = std::mem::take(&mut self.line);
        let rows = self.rendered(&line);
        let given = std::mem::take(&mut self.rows_given);
        let marker = fence_of(&line);
        match (self.fence, marker) {
            (Some(open), Some(marker)) if open == marker => self.fence = None,
            (None, Some(marker)) => self.fence = Some(marker),
            _ => {}
        }
        rows.iter().skip(given).map(|row| format!("{row}\n")).collect()
    }

    /// The rows of a line; at least one.
    fn rendered(&self, line: &str) -> Vec<String> {
        let trimmed = line.trim_start();
        if fence_of(line).is_some() {
            return vec![styled_text(FAINT, line)];
        }
        if self.fence.is_some() {
            // Code is not wrapped, so that it can be copied.
            return vec![styled_text(NAME, line)];
        }
        if trimmed.starts_with('|') {
            return vec![line.to_owned()];
        }
        if let Some(heading) = heading(trimmed) {
            let rows = wrap(&[(InlineStyle::Plain, heading.to_owned())], self.columns, 0);
            return rows.iter().map(|row| styled_text(BOLD, row)).collect();
        }
        let indent = hanging_indent(line).min(self.columns / 2);
        wrap(&inline_pieces(line), self.columns, indent)
    }
}

fn styled_text(style: anstyle::Style, text: &str) -> String {
    if text.is_empty() { String::new() } else { styled(style, text) }
}

fn fence_of(line: &str) -> Option<&'static str> {
    FENCES.into_iter().find(|fence| line.trim_start().starts_with(fence))
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    ((1..=6).contains(&level) && text.starts_with(' ')).then(|| text.trim())
}

/// The columns before the text of a list item or quotation, which its further rows get too.
fn hanging_indent(line: &str) -> usize {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let marker = if ["- ", "* ", "+ ", "> "].iter().any(|marker| text.starts_with(marker)) {
        2
    } else if digits > 0 && [". ", ") "].iter().any(|end| text[digits..].starts_with(end)) {
        digits + 2
    } else {
        0
    };
    indent + marker
}

/// Where a mark of `**`, `*` or `` ` `` opens a piece.
fn opens(line: &str, at: usize, mark: &str) -> bool {
    let before = line[..at].chars().next_back();
    let after = line[at + mark.len()..].chars().next();
    let is_start = before.is_none_or(|c| c.is_whitespace() || "([{\"'".contains(c));
    is_start && after.is_some_and(|c| !(c.is_whitespace() || mark == "*" && c == '*'))
}

/// Where the piece ends whose text begins at `inner`. A star after a space ends nothing, nor does one of two stars a piece in one.
fn end_of_piece(line: &str, inner: usize, mark: &str) -> Option<usize> {
    let is_end = |at: &usize| {
        let (before, after) = (&line[..*at], &line[at + mark.len()..]);
        match mark {
            "`" => true,
            "*" => !before.ends_with([' ', '*']) && !after.starts_with('*'),
            _ => !before.ends_with(' '),
        }
    };
    let mut ends = line[inner..].match_indices(mark).map(|(at, _)| inner + at);
    ends.find(is_end).filter(|end| *end > inner)
}

/// The next mark that opens a piece at or after `from`, with the end of the piece if it has one.
fn next_mark(line: &str, from: usize) -> Option<(usize, &'static str, Option<usize>)> {
    let found = |mark: &'static str| {
        let all = line[from..].match_indices(mark).map(|(at, _)| from + at);
        all.into_iter().find(|at| opens(line, *at, mark)).map(|at| (at, mark))
    };
    let (at, mark) = [found("**"), found("*"), found("`")].into_iter().flatten().min()?;
    Some((at, mark, end_of_piece(line, at + mark.len(), mark)))
}

/// The beginning of a line that means the same, whatever follows.
fn stable_part(line: &str) -> &str {
    let mut from = 0;
    while let Some((at, mark, end)) = next_mark(line, from) {
        match end {
            // Another star would make it a mark of two.
            Some(end) if mark == "*" && end + 1 == line.len() => return &line[..at],
            Some(end) => from = end + mark.len(),
            None => return &line[..at],
        }
    }
    // A mark at the end may open a piece.
    &line[..line.trim_end_matches(['*', '`']).len().max(from)]
}

/// The pieces of a line without the marks around them. A mark without its counterpart stays.
fn inline_pieces(line: &str) -> Vec<(InlineStyle, String)> {
    let mut pieces = Vec::new();
    let (mut from, mut plain_from) = (0, 0);
    while let Some((at, mark, end)) = next_mark(line, from) {
        let Some(end) = end else {
            from = at + mark.len();
            continue;
        };
        pieces.push((InlineStyle::Plain, line[plain_from..at].to_owned()));
        let style = match mark {
            "`" => InlineStyle::Code,
            "*" => InlineStyle::Italic,
            _ => InlineStyle::Bold,
        };
        pieces.push((style, line[at + mark.len()..end].to_owned()));
        (from, plain_from) = (end + mark.len(), end + mark.len());
    }
    pieces.push((InlineStyle::Plain, line[plain_from..].to_owned()));
    pieces
}

/// Plain text in rows.
pub(super) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    wrap(&[(InlineStyle::Plain, text.to_owned())], columns.max(MIN_COLUMNS), 0)
}

/// The pieces in rows, broken between words where that is possible. Rows after the first are indented.
fn wrap(pieces: &[(InlineStyle, String)], columns: usize, indent: usize) -> Vec<String> {
    let mut rows: Vec<Vec<(InlineStyle, char)>> = vec![Vec::new()];
    let mut used = 0;
    let mut word_start = 0;
    for (style, c) in pieces.iter().flat_map(|(style, text)| text.chars().map(move |c| (*style, c))) {
        let is_first = rows.len() == 1;
        let Some(row) = rows.last_mut() else { continue };
        let width = char_width(c);
        if used + width > columns {
            if c == ' ' {
                // The break takes the place of the space.
                rows.push(Vec::new());
                (used, word_start) = (0, 0);
                continue;
            }
            let rest = if word_start > indent { row.split_off(word_start) } else { Vec::new() };
            while row.last().is_some_and(|(_, c)| *c == ' ') {
                row.pop();
            }
            let mut next = vec![(InlineStyle::Plain, ' '); indent];
            next.extend(rest);
            used = next.iter().map(|(_, c)| char_width(*c)).sum();
            word_start = indent;
            rows.push(next);
        } else if !is_first && row.is_empty() {
            row.extend(vec![(InlineStyle::Plain, ' '); indent]);
            (used, word_start) = (indent, indent);
        }
        let Some(row) = rows.last_mut() else { continue };
        row.push((style, c));
        used += width;
        if c == ' ' {
            word_start = row.len();
        }
    }
    if rows.len() > 1 && rows.last().is_some_and(Vec::is_empty) {
        rows.pop();
    }
    rows.iter().map(|row| styled_row(row)).collect()
}

fn styled_row(row: &[(InlineStyle, char)]) -> String {
    let mut text = String::new();
    for run in row.chunk_by(|(a, _), (b, _)| a == b) {
        let words: String = run.iter().map(|(_, c)| c).collect();
        match run[0].0 {
            InlineStyle::Plain => text.push_str(&words),
            InlineStyle::Bold => text.push_str(&styled(BOLD, &words)),
            InlineStyle::Italic => text.push_str(&styled(ITALIC, &words)),
            InlineStyle::Code => text.push_str(&styled(NAME, &words)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::super::view::width;
    use super::*;

    fn rendered(text: &str, columns: usize, piece_chars: usize) -> String {
        let mut stream = MarkdownStream::default();
        let mut rows = String::new();
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(piece_chars) {
            rows.push_str(&stream.push(&piece.iter().collect::<String>(), columns));
        }
        rows + &stream.finish()
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    const TEXT: &str = "# The plan\nFirst **read the file** with `cat src/main.rs`, then compute 2**3 and f(**kw).\n*with **great** care*, 2 * 3 * 4.\n\n\
        - a list item that is longer than one row of the terminal, with 日本語 in it\n10. another\n\n```rust\nfn main() { \
        /* a line of code that is much longer than the terminal is wide */ }\n```\n| a | b |\nend";

    #[test]
    fn pieces_of_any_size_make_the_same_rows() {
        for columns in [20, 33, 80, 200] {
            let whole = rendered(TEXT, columns, usize::MAX);
            for size in [1, 2, 3, 7, 40] {
                assert_eq!(rendered(TEXT, columns, size), whole, "{columns} columns, pieces of {size}");
            }
        }
    }

    #[test]
    fn prose_fits_the_columns_and_code_is_not_wrapped() {
        let rows = plain(&rendered(TEXT, 40, 5));
        let mut in_code = false;
        for row in rows.lines() {
            in_code ^= row.starts_with("```");
            assert!(in_code || row.starts_with("```") || width(row) <= 40, "{row:?}");
        }
        assert!(rows.contains("/* a line of code that is much longer than the terminal is wide */ }\n"));
        assert!(rows.contains("\n  row of the terminal"), "{rows}");
    }

    #[test]
    fn marks_become_styles_and_others_stay() {
        let rows = rendered(TEXT, 200, 1);
        assert!(rows.starts_with(&format!("{}\n", styled(BOLD, "The plan"))), "{rows}");
        assert!(
            rows.contains(&styled(BOLD, "read the file")) && rows.contains(&styled(NAME, "cat src/main.rs"))
        );
        assert!(rows.contains("2**3 and f(**kw).\n"), "{rows}");
        assert!(
            rows.contains(&styled(ITALIC, "with **great** care")) && rows.contains("2 * 3 * 4."),
            "{rows}"
        );
        assert_eq!(plain(&rendered("f(*args) *a", 80, 1)), "f(*args) *a\n");
        assert_eq!(plain(&rendered("a ` b ** c", 80, 1)), "a ` b ** c\n");
        assert_eq!(plain(&rendered("`open", 80, 1)), "`open\n");
    }

    #[test]
    fn absurd_text_ends() {
        let long = "x".repeat(100_000);
        assert_eq!(plain(&rendered(&long, 80, 977)).replace('\n', ""), long);
        let marks = "**`a ".repeat(3_000);
        assert!(rendered(&marks, 20, 500) == rendered(&marks, 20, 7_777), "the size of the pieces matters");
        assert_eq!(rendered("", 80, 1), "");
        assert_eq!(rendered("\n\n", 80, 1), "\n\n");
    }
}
