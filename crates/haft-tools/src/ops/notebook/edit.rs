//! Changing one cell of a notebook. The rest of the file stays byte for byte.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use haft_tool::{JsonSchema, ToolError, Value, json};
use serde::Deserialize;

use super::layout::{CellLayout, escape_non_ascii};
use super::raw_json::{items, members, span};
use super::{Cell, cells, no_such_cell};

/// The type of a cell that can be made.
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

/// A change of one cell.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CellChange<'a> {
    Replace { cell: &'a str, source: &'a str, to: Option<CellType> },
    Insert { after: Option<&'a str>, source: &'a str, kind: CellType },
    Delete { cell: &'a str },
}

/// The result of a change.
#[derive(Debug)]
pub(crate) struct EditedNotebook {
    /// The id of the cell that was changed, made or removed.
    pub(crate) cell: String,
    pub(crate) kind: String,
    /// The language of the code cells.
    pub(crate) language: String,
}

/// Makes one change and returns the new file. `name` is the notebook's name in messages.
pub(crate) fn edit(
    bytes: &[u8],
    name: &str,
    change: CellChange<'_>,
) -> Result<(Vec<u8>, EditedNotebook), ToolError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        ToolError::failed(format!("{name} is not a notebook: byte {} is not UTF-8", error.valid_up_to()))
    })?;
    let root = text.strip_prefix('\u{feff}').unwrap_or(text);
    let notebook: Value = serde_json::from_str(root).map_err(|error| {
        ToolError::failed(format!("{name} is not a notebook, because it is not JSON: {error}"))
    })?;
    let version = |key: &str| notebook.get(key).and_then(Value::as_u64);
    let Some((cells, 4)) = cells(&notebook).zip(version("nbformat")) else {
        let old =
            version("nbformat").map_or_else(String::new, |major| format!(" (it says nbformat {major})"));
        return Err(ToolError::failed(format!("{name} is not a notebook of nbformat 4{old}")));
    };
    // Of two members with the same key the last one counts.
    let is_cells = |key: &str| serde_json::from_str::<String>(key).is_ok_and(|key| key == "cells");
    let list = members(root).into_iter().rev().find(|(key, _)| is_cells(key));
    let (_, list) = list.ok_or_else(|| ToolError::internal("a parsed member is missing in the text"))?;
    let file = NotebookFile {
        text,
        root,
        list,
        cells: items(list),
        has_ids: version("nbformat_minor").unwrap_or(0) >= 5,
        ascii: text.is_ascii() && text.contains("\\u"),
    };
    let (new_text, cell, kind) = match change {
        CellChange::Replace { cell, source, to } => {
            let at = find(cell, &cells)?;
            let kind = to.map_or_else(|| cells[at].kind.to_owned(), |to| to.name().to_owned());
            (file.replace(at, cells[at].kind, &kind, source), cells[at].id.clone(), kind)
        }
        CellChange::Insert { after, source, kind } => {
            let after = after.map(|after| find(after, &cells)).transpose()?;
            let id = new_id(source, &cells);
            let new_text = file.insert(after, &id, kind, source);
            let id = if file.has_ids { id } else { format!("cell-{}", after.map_or(0, |at| at + 1)) };
            (new_text, id, kind.name().to_owned())
        }
        CellChange::Delete { cell } => {
            let at = find(cell, &cells)?;
            (file.delete(at), cells[at].id.clone(), cells[at].kind.to_owned())
        }
    };
    let languages = ["/metadata/language_info/name", "/metadata/kernelspec/language"];
    let language = languages.iter().find_map(|at| notebook.pointer(at)?.as_str()).unwrap_or("python");
    Ok((new_text.into_bytes(), EditedNotebook { cell, kind, language: language.to_owned() }))
}

/// The position of a cell by its id, or by `cell-N` if no cell has that id.
fn find(id: &str, cells: &[Cell<'_>]) -> Result<usize, ToolError> {
    let by_position = || id.strip_prefix("cell-")?.parse().ok().filter(|at| *at < cells.len());
    let by_id = cells.iter().position(|cell| cell.id == id);
    by_id.or_else(by_position).ok_or_else(|| no_such_cell(id, cells))
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

/// The text of a notebook and its parts.
struct NotebookFile<'a> {
    text: &'a str,
    /// The text without a byte-order mark.
    root: &'a str,
    /// The array of cells.
    list: &'a str,
    cells: Vec<&'a str>,
    /// Whether cells have ids in this version of the format.
    has_ids: bool,
    /// Whether all other characters than ASCII are escaped.
    ascii: bool,
}

impl NotebookFile<'_> {
    fn replace(&self, at: usize, old_kind: &str, kind: &str, source: &str) -> String {
        let cell = self.cells[at];
        let layout = CellLayout::of_cell(cell);
        let source = |as_list: bool| self.source(source, as_list, &layout);
        let mut new: Vec<(String, Cow<'_, str>)> = Vec::new();
        for (key, value) in members(cell) {
            let key: String = serde_json::from_str(key).unwrap_or_default();
            let value = match key.as_str() {
                "source" => Cow::from(source(value.starts_with('['))),
                "cell_type" => Cow::from(json!(kind).to_string()),
                "outputs" if kind == "code" => "[]".into(),
                "execution_count" if kind == "code" => "null".into(),
                "outputs" | "execution_count" if old_kind == "code" => continue,
                "attachments" if kind == "code" => continue,
                _ => value.into(),
            };
            new.push((key, value));
        }
        let mut required = vec![("source", source(true))];
        if kind == "code" && old_kind != "code" {
            required.extend([("execution_count", "null".to_owned()), ("outputs", "[]".to_owned())]);
        }
        for (key, value) in required {
            if new.iter().all(|(name, _)| name != key) {
                new.push((key.to_owned(), value.into()));
            }
        }
        let new: Vec<_> = new.iter().map(|(key, value)| (self.json(key), &**value)).collect();
        self.splice(cell, &layout.object(&new))
    }

    fn insert(&self, after: Option<usize>, id: &str, kind: CellType, source: &str) -> String {
        let layout = CellLayout::of_new_cell(self.root);
        let source = self.source(source, true, &layout);
        let (kind_json, id) = (json!(kind.name()).to_string(), json!(id).to_string());
        let code = kind == CellType::Code;
        let new = [
            Some(("cell_type", &*kind_json)),
            code.then_some(("execution_count", "null")),
            self.has_ids.then_some(("id", &*id)),
            Some(("metadata", "{}")),
            code.then_some(("outputs", "[]")),
            Some(("source", &*source)),
        ];
        let new: Vec<_> = new.into_iter().flatten().map(|(key, value)| (self.json(key), value)).collect();
        let cell = layout.object(&new);
        let Some(first) = self.cells.first() else {
            return self.splice(self.list, &layout.list_of(&cell));
        };
        let first_start = span(self.list, first).start;
        let comma = match self.cells.get(1) {
            Some(second) => &self.list[span(self.list, first).end..span(self.list, second).start],
            None => &format!(",{}", &self.list[1..first_start]),
        };
        let (at, new) = match after {
            Some(at) => (span(self.text, self.cells[at]).end, format!("{comma}{cell}")),
            None => (span(self.text, first).start, format!("{cell}{comma}")),
        };
        self.splice(&self.text[at..at], &new)
    }

    fn delete(&self, at: usize) -> String {
        let spans: Vec<_> = self.cells.iter().map(|cell| span(self.text, cell)).collect();
        let list = span(self.text, self.list);
        // One comma goes with the cell.
        let removed = match (at.checked_sub(1), spans.get(at + 1)) {
            (Some(before), _) => spans[before].end..spans[at].end,
            (None, Some(next)) => spans[0].start..next.start,
            (None, None) => list.start + 1..list.end - 1,
        };
        self.splice(&self.text[removed], "")
    }

    /// A source as nbformat stores it: a list of lines, or one string.
    fn source(&self, source: &str, as_list: bool, layout: &CellLayout) -> String {
        if !as_list {
            return self.json(source);
        }
        let lines: Vec<String> = source.split_inclusive('\n').map(|line| self.json(line)).collect();
        layout.list_of_lines(&lines)
    }

    fn json(&self, text: &str) -> String {
        let json = json!(text).to_string();
        if self.ascii { escape_non_ascii(&json) } else { json }
    }

    /// The text with `part` replaced.
    fn splice(&self, part: &str, new: &str) -> String {
        let span = span(self.text, part);
        [&self.text[..span.start], new, &self.text[span.end..]].concat()
    }
}
