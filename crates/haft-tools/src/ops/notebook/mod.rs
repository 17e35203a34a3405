//! Jupyter notebooks: the text of their cells, and edits of one cell.

mod edit;
mod layout;
mod raw_json;

use std::fmt::Write;

use haft_tool::{Bound, Content, ToolError, Value};

pub(crate) use edit::{CellChange, CellType, EditedNotebook, edit};

/// How much of the text of one output is shown.
const MAX_OUTPUT_CHARS: usize = 8_000;
const MAX_IMAGES: usize = 10;
/// The longest base64 text of an image.
const MAX_IMAGE_CHARS: usize = 7 << 20;
/// How many cells an error lists, and how much of each.
const MAX_LISTED_CELLS: usize = 20;
const MAX_LISTED_CHARS: usize = 40;

/// A notebook as text.
#[derive(Debug, PartialEq)]
pub(crate) struct NotebookText {
    pub(crate) text: String,
    pub(crate) images: Vec<Content>,
    /// Id, type and number of outputs of each cell.
    pub(crate) cells: Vec<Value>,
}

/// One cell.
#[derive(Debug)]
struct Cell<'a> {
    /// Its id in the file, else `cell-N` with its position from 0.
    id: String,
    kind: &'a str,
    value: &'a Value,
}

fn cells<'a>(notebook: &'a Value) -> Option<Vec<Cell<'a>>> {
    let list = notebook.get("cells")?.as_array()?;
    let cell = |(position, value): (usize, &'a Value)| Cell {
        id: value.get("id").and_then(Value::as_str).map_or_else(|| format!("cell-{position}"), str::to_owned),
        kind: value.get("cell_type").and_then(Value::as_str).unwrap_or("raw"),
        value,
    };
    Some(list.iter().enumerate().map(cell).collect())
}

impl Cell<'_> {
    fn source(&self) -> String {
        joined(self.value.get("source"))
    }
}

/// A text that is stored as one string or as a list of lines.
fn joined(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// The cells of a notebook as text; `None` if the bytes are not a notebook.
pub(crate) fn read(bytes: &[u8]) -> Option<NotebookText> {
    let notebook: Value =
        serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).ok()?;
    let mut read = NotebookText { text: String::new(), images: Vec::new(), cells: Vec::new() };
    for cell in cells(&notebook)? {
        let run = cell.value.get("execution_count").and_then(Value::as_u64);
        let run = run.map(|count| format!(", run {count}")).unwrap_or_default();
        let _ = writeln!(read.text, "=== {} ({}{run}) ===", cell.id, cell.kind);
        push_text(&cell.source(), &mut read.text);
        let outputs =
            cell.value.get("outputs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for output in outputs {
            read.add_output(output);
        }
        read.cells.push(haft_tool::json!({"id": cell.id, "cellType": cell.kind, "outputs": outputs.len()}));
    }
    Some(read)
}

impl NotebookText {
    fn add_output(&mut self, output: &Value) {
        let kind = output.get("output_type").and_then(Value::as_str).unwrap_or_default();
        let text = match kind {
            "stream" => joined(output.get("text")),
            "error" => {
                let trace = output.get("traceback").and_then(Value::as_array);
                let lines: Vec<&str> = trace.into_iter().flatten().filter_map(Value::as_str).collect();
                without_escapes(&lines.join("\n"))
            }
            _ => {
                let data = |kind: &str| output.get("data").and_then(|data| data.get(kind));
                for media_type in ["image/png", "image/jpeg", "image/gif", "image/webp"] {
                    if let Some(image) = data(media_type) {
                        self.add_image(media_type, &joined(Some(image)));
                        return;
                    }
                }
                let preferred =
                    ["text/markdown", "text/plain", "text/latex", "text/html", "application/json"];
                match preferred.iter().find_map(|kind| data(kind)) {
                    Some(value @ (Value::String(_) | Value::Array(_))) => joined(Some(value)),
                    Some(value) => value.to_string(),
                    None => String::new(),
                }
            }
        };
        if text.is_empty() {
            return;
        }
        let name = if kind == "error" { "error" } else { "output" };
        let _ = writeln!(self.text, "--- {name} ---");
        let bound = Bound { max_chars: MAX_OUTPUT_CHARS, ..Bound::default() };
        push_text(&bound.apply(text.into(), None).0, &mut self.text);
    }

    fn add_image(&mut self, media_type: &str, data: &str) {
        let data: String = data.split_ascii_whitespace().collect();
        let note = if self.images.len() >= MAX_IMAGES || data.len() > MAX_IMAGE_CHARS {
            format!("{media_type}, not shown: too large or too many")
        } else {
            self.images.push(Content::Image { media_type: media_type.to_owned(), data });
            format!("{media_type}, shown as image {}", self.images.len())
        };
        let _ = writeln!(self.text, "--- output ---\n({note})");
    }
}

fn push_text(text: &str, to: &mut String) {
    to.push_str(text);
    if !text.is_empty() && !text.ends_with('\n') {
        to.push('\n');
    }
}

/// Removes terminal escape sequences.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let end = after.find(|char: char| ('@'..='~').contains(&char));
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    plain + rest
}

/// The error for an unknown id, which lists the cells.
fn no_such_cell(id: &str, cells: &[Cell<'_>]) -> ToolError {
    let mut listed: Vec<String> = cells
        .iter()
        .take(MAX_LISTED_CELLS)
        .map(|cell| {
            let source = cell.source();
            let start: String =
                source.lines().next().unwrap_or_default().chars().take(MAX_LISTED_CHARS).collect();
            format!("{} ({}: {start})", cell.id, cell.kind)
        })
        .collect();
    if cells.len() > MAX_LISTED_CELLS {
        listed.push(format!("and {} more", cells.len() - MAX_LISTED_CELLS));
    }
    let listed = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
    ToolError::new(
        haft_tool::ErrorKind::TargetNotFound,
        format!("cell_id: the notebook has no cell {id}; it has {listed}"),
    )
}
