//! How the JSON of a notebook is formatted: indentation, and the white space around commas and colons.

use super::raw_json::{members, span};

/// The formatting of a cell.
pub(super) struct CellLayout {
    /// The white space after the opening brace; it has a line break unless the cell is on one line.
    open: String,
    /// The text between two members.
    comma: String,
    /// The text between a key and its value.
    colon: String,
    /// The white space before the closing brace.
    close: String,
    /// The white space before the bracket that closes the list of cells.
    list_close: String,
}

impl CellLayout {
    /// The formatting of an existing cell.
    pub(super) fn of_cell(cell: &str) -> Self {
        let spans: Vec<_> =
            members(cell).iter().map(|(key, value)| (span(cell, key), span(cell, value))).collect();
        let (Some((key, value)), Some((_, last))) = (spans.first(), spans.last()) else {
            return Self::on_one_line(": ");
        };
        let open = cell[1..key.start].to_owned();
        let comma = spans.get(1).map(|(next, _)| cell[value.end..next.start].to_owned());
        Self {
            comma: comma.unwrap_or_else(|| format!(",{open}")),
            colon: cell[key.end..value.start].to_owned(),
            close: cell[last.end..cell.len() - 1].to_owned(),
            list_close: String::new(),
            open,
        }
    }

    /// The formatting of a new cell in a notebook, by that of its outermost object.
    pub(super) fn of_new_cell(root: &str) -> Self {
        let root = root.trim_ascii();
        let outer = Self::of_cell(root);
        let Some((newline, indent)) = outer.open.rsplit_once('\n') else {
            return Self::on_one_line(&outer.colon);
        };
        let at_depth = |depth: usize| format!("{newline}\n{}", indent.repeat(depth));
        Self {
            open: at_depth(3),
            comma: format!(",{}", at_depth(3)),
            close: at_depth(2),
            list_close: at_depth(1),
            colon: outer.colon,
        }
    }

    fn on_one_line(colon: &str) -> Self {
        let space = if colon.ends_with(' ') { " " } else { "" };
        let empty = String::new;
        Self {
            open: empty(),
            comma: format!(",{space}"),
            colon: colon.to_owned(),
            close: empty(),
            list_close: empty(),
        }
    }

    /// A cell of these members.
    pub(super) fn object(&self, members: &[(String, &str)]) -> String {
        let Self { open, comma, colon, close, .. } = self;
        let members: Vec<String> =
            members.iter().map(|(key, value)| format!("{key}{colon}{value}")).collect();
        format!("{{{open}{}{close}}}", members.join(comma))
    }

    /// A list with one cell.
    pub(super) fn list_of(&self, cell: &str) -> String {
        format!("[{}{cell}{}]", self.close, self.list_close)
    }

    /// A list of strings as the value of a member.
    pub(super) fn list_of_lines(&self, lines: &[String]) -> String {
        if lines.is_empty() {
            return "[]".to_owned();
        }
        if !self.open.contains('\n') {
            return format!("[{}]", lines.join(&self.comma));
        }
        let indent = self.open.strip_prefix(&self.close).unwrap_or_default();
        let line = format!("{}{indent}", self.open);
        format!("[{line}{}{}]", lines.join(&format!(",{line}")), self.open)
    }
}

/// JSON with all other characters than ASCII escaped.
pub(super) fn escape_non_ascii(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            escaped.push(c);
        } else {
            escaped.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    escaped
}
