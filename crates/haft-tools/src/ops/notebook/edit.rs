//! Changing one cell of a notebook by changing only its own part of the file.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use haft_tool::{JsonSchema, ToolError, Value, json};
use serde::Deserialize;

use super::spans::{items, members, space};
use super::{Cell, cells, no_such_cell};

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CellType {
    Code,
    Markdown,
}

impl CellType {
    fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
        }
    }
}

/// What to do with a notebook.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change<'a> {
    Replace { cell: &'a str, source: &'a str, to: Option<CellType> },
    Insert { after: Option<&'a str>, source: &'a str, kind: CellType },
    Delete { cell: &'a str },
}

/// A notebook after a change.
#[derive(Debug)]
pub(crate) struct Edited {
    pub(crate) bytes: Vec<u8>,
    /// The cell that was changed, made or removed.
    pub(crate) cell: String,
    pub(crate) kind: String,
    /// The language of its code cells.
    pub(crate) language: String,
}

/// Makes one change. `what` is what messages call the notebook.
pub(crate) fn edit(bytes: &[u8], what: &str, change: Change<'_>) -> Result<Edited, ToolError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        ToolError::failed(format!("{what} is not a notebook: byte {} is not UTF-8", error.valid_up_to()))
    })?;
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let notebook: Value = serde_json::from_str(&text[start..]).map_err(|error| {
        ToolError::failed(format!("{what} is not a notebook, because it is not JSON: {error}"))
    })?;
    let version = |key: &str| notebook.get(key).and_then(Value::as_u64);
    let Some((cells, 4)) = cells(&notebook).zip(version("nbformat")) else {
        let old =
            version("nbformat").map_or_else(String::new, |major| format!(" (it says nbformat {major})"));
        return Err(ToolError::failed(format!("{what} is not a notebook of nbformat 4{old}")));
    };
    let sheet = Sheet {
        text,
        list: list_span(text, space(text, start)),
        ids: version("nbformat_minor").unwrap_or(0) >= 5,
    };
    let (bytes, cell, kind) = match change {
        Change::Replace { cell, source, to } => {
            let place = find(cell, &cells)?;
            let kind = to.map_or_else(|| cells[place].kind.to_owned(), |to| to.name().to_owned());
            (sheet.replace(place, &cells[place], &kind, source), cells[place].id.clone(), kind)
        }
        Change::Insert { after, source, kind } => {
            let place = after.map(|after| find(after, &cells)).transpose()?;
            let id = new_id(source, &cells);
            let shown =
                if sheet.ids { id.clone() } else { format!("cell-{}", place.map_or(0, |place| place + 1)) };
            (sheet.insert(place, &id, kind, source), shown, kind.name().to_owned())
        }
        Change::Delete { cell } => {
            let place = find(cell, &cells)?;
            (sheet.delete(place), cells[place].id.clone(), cells[place].kind.to_owned())
        }
    };
    let names = ["/metadata/language_info/name", "/metadata/kernelspec/language"];
    let language =
        names.iter().find_map(|name| notebook.pointer(name)?.as_str()).unwrap_or("python").to_owned();
    Ok(Edited { bytes: bytes.into_bytes(), cell, kind, language })
}

/// The place of a cell by its id, or by `cell-N` where no cell has that id.
fn find(id: &str, cells: &[Cell<'_>]) -> Result<usize, ToolError> {
    let by_place = || id.strip_prefix("cell-")?.parse().ok().filter(|place| *place < cells.len());
    let by_id = cells.iter().position(|cell| cell.id == id);
    by_id.or_else(by_place).ok_or_else(|| no_such_cell(id, cells))
}

/// Eight hexadecimal digits that no cell has, the same ones for the same edit of the same notebook.
fn new_id(source: &str, cells: &[Cell<'_>]) -> String {
    let mut hash = DefaultHasher::new();
    source.hash(&mut hash);
    for cell in cells {
        cell.id.hash(&mut hash);
    }
    loop {
        let id = format!("{:08x}", hash.finish() >> 32);
        if cells.iter().all(|cell| cell.id != id) {
            return id;
        }
        hash.write_u8(0);
    }
}

fn list_span(text: &str, root: usize) -> Range<usize> {
    // Of two members with one name the last counts, for every parser.
    let member = members(text, root).into_iter().rev().find(|(key, _)| &text[key.clone()] == "\"cells\"");
    member.map_or(root..root, |(_, value)| value)
}

/// A notebook's text and what is known of how it is written.
struct Sheet<'a> {
    text: &'a str,
    /// The list of cells.
    list: Range<usize>,
    /// Whether cells have ids in this version of the format.
    ids: bool,
}

impl Sheet<'_> {
    fn replace(&self, place: usize, cell: &Cell<'_>, kind: &str, source: &str) -> String {
        let span = items(self.text, self.list.start)[place].clone();
        let style = self.style(Some(span.start));
        let was = cell.kind;
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        let mut seen = Vec::new();
        let parts = members(self.text, span.start);
        let mut kept = false;
        for (at, (key, value)) in parts.iter().enumerate() {
            let name: String = serde_json::from_str(&self.text[key.clone()]).unwrap_or_default();
            let new = match name.as_str() {
                "source" => Some(style.source(source, self.text[value.clone()].starts_with('['))),
                "cell_type" if was != kind => Some(style.json(&Value::from(kind))),
                "outputs" if kind == "code" => Some("[]".to_owned()),
                "execution_count" if kind == "code" => Some("null".to_owned()),
                "outputs" | "execution_count" if was == "code" => None,
                "attachments" if kind == "code" => None,
                _ => {
                    kept = true;
                    seen.push(name);
                    continue;
                }
            };
            match new {
                Some(new) => {
                    kept = true;
                    edits.push((value.clone(), new));
                }
                // A member goes with the comma before it, or, if none before it stays, with the one behind it.
                None if kept => edits.push((parts[at - 1].1.end..value.end, String::new())),
                None => {
                    let end = parts.get(at + 1).map_or(value.end, |next| next.0.start);
                    edits.push((key.start..end, String::new()));
                }
            }
            seen.push(name);
        }
        let mut missing: Vec<(&str, String)> = Vec::new();
        if !seen.iter().any(|name| name == "source") {
            missing.push(("source", style.source(source, true)));
        }
        if kind == "code" && was != "code" {
            missing.extend([("execution_count", "null".to_owned()), ("outputs", "[]".to_owned())]);
            missing.retain(|(name, _)| !seen.iter().any(|seen| seen == name));
        }
        if let Some((_, last)) = parts.last() {
            let added =
                missing.iter().map(|(name, value)| format!(",{}\"{name}\"{}{value}", style.key, style.colon));
            edits.push((last.end..last.end, added.collect()));
        }
        spliced(self.text, edits)
    }

    fn insert(&self, after: Option<usize>, id: &str, kind: CellType, source: &str) -> String {
        let spans = items(self.text, self.list.start);
        let style = self.style(spans.first().map(|span| span.start));
        let mut parts = vec![("cell_type", style.json(&Value::from(kind.name())))];
        if kind == CellType::Code {
            parts.push(("execution_count", "null".to_owned()));
        }
        if self.ids {
            parts.push(("id", style.json(&Value::from(id))));
        }
        parts.push(("metadata", "{}".to_owned()));
        if kind == CellType::Code {
            parts.push(("outputs", "[]".to_owned()));
        }
        parts.push(("source", style.source(source, true)));
        let members: Vec<String> = parts
            .iter()
            .map(|(name, value)| format!("{}\"{name}\"{}{value}", style.key, style.colon))
            .collect();
        let comma = if style.is_compact() { style.comma } else { "," };
        let cell = format!("{{{}{}}}", members.join(comma), style.cell);
        let edit = match (after.map(|place| spans[place].clone()), spans.first()) {
            (Some(span), _) => (span.end..span.end, format!("{comma}{}{cell}", style.cell)),
            (None, Some(first)) => (first.start..first.start, format!("{cell}{comma}{}", style.cell)),
            (None, None) => (self.list.clone(), format!("[{}{cell}{}]", style.cell, style.list)),
        };
        spliced(self.text, vec![edit])
    }

    fn delete(&self, place: usize) -> String {
        let spans = items(self.text, self.list.start);
        let gone = match (place.checked_sub(1), spans.get(place + 1)) {
            (Some(before), _) => spans[before].end..spans[place].end,
            (None, Some(next)) => spans[0].start..next.start,
            (None, None) => self.list.start + 1..self.list.end - 1,
        };
        spliced(self.text, vec![(gone, String::new())])
    }

    /// How the file is written, seen at its list of cells and at one of them.
    fn style(&self, cell: Option<usize>) -> Style<'_> {
        let text = self.text;
        let blank = |from: usize| &text[from..space(text, from)];
        let list =
            &text[text[..self.list.end.saturating_sub(1)].trim_end_matches([' ', '\t', '\r', '\n']).len()..];
        let list = &list[..list.len() - list.trim_start_matches([' ', '\t', '\r', '\n']).len()];
        let spaced = text[..self.list.start].ends_with(char::is_whitespace);
        let (colon, comma) = if spaced { (": ", ", ") } else { (":", ",") };
        let ascii = text.is_ascii() && text.contains("\\u");
        let Some(at) = cell else {
            // There is no cell to look at; the indentation of the list's own line says how the next level looks.
            let line = &text[text[..self.list.start].rfind('\n').unwrap_or(0)..self.list.start];
            let outer = &line[..line.len() - line.trim_start_matches(['\n', ' ', '\t']).len()];
            if !outer.starts_with('\n') {
                return Style {
                    list: String::new(),
                    cell: String::new(),
                    key: String::new(),
                    line: String::new(),
                    colon,
                    comma,
                    ascii,
                };
            }
            let one = &outer[1..];
            return Style {
                list: outer.to_owned(),
                cell: format!("{outer}{one}"),
                key: format!("{outer}{one}{one}"),
                line: format!("{outer}{one}{one}{one}"),
                colon,
                comma,
                ascii,
            };
        };
        let (cell, key) = (blank(self.list.start + 1), blank(at + 1));
        let deeper = key.strip_prefix(cell).unwrap_or_default();
        let line = if key.contains('\n') { format!("{key}{deeper}") } else { String::new() };
        Style { list: list.to_owned(), cell: cell.to_owned(), key: key.to_owned(), line, colon, comma, ascii }
    }
}

/// The blanks before things, by how deep they stand, and other habits of a file.
struct Style<'a> {
    list: String,
    cell: String,
    key: String,
    line: String,
    colon: &'a str,
    comma: &'a str,
    /// Whether everything beyond ASCII is escaped.
    ascii: bool,
}

impl Style<'_> {
    fn is_compact(&self) -> bool {
        !self.key.contains('\n')
    }

    /// A cell's source as nbformat stores it: a list of lines, or one string where the file does so.
    fn source(&self, source: &str, as_list: bool) -> String {
        if !as_list {
            return self.json(&json!(source));
        }
        let lines: Vec<String> = source.split_inclusive('\n').map(|line| self.json(&json!(line))).collect();
        if lines.is_empty() {
            return "[]".to_owned();
        }
        if self.is_compact() {
            return format!("[{}]", lines.join(self.comma));
        }
        format!("[{}{}{}]", self.line, lines.join(&format!(",{}", self.line)), self.key)
    }

    fn json(&self, value: &Value) -> String {
        let text = value.to_string();
        if !self.ascii {
            return text;
        }
        let mut escaped = String::with_capacity(text.len());
        for char in text.chars() {
            if char.is_ascii() {
                escaped.push(char);
            } else {
                escaped.extend(char.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
            }
        }
        escaped
    }
}

/// The text with some spans replaced.
fn spliced(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    let mut made = String::with_capacity(text.len() + edits.iter().map(|(_, new)| new.len()).sum::<usize>());
    let mut at = 0;
    for (span, new) in edits {
        // Two members that go stand side by side.
        made.push_str(&text[at..span.start.max(at)]);
        made.push_str(&new);
        at = span.end.max(at);
    }
    made.push_str(&text[at..]);
    made
}
