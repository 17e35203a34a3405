//! Jupyter notebooks: their cells to look at, and edits that touch nothing else.

mod edit;
mod spans;

use std::fmt::Write;

use haft_tool::{Bound, Content, ToolError, Value};

pub(crate) use edit::{CellType, Change, Edited, edit};

/// The text of one output, and the pictures of all together, are shown up to here.
const MOST_OUTPUT_CHARS: usize = 8_000;
const MOST_PICTURES: usize = 10;
const MOST_PICTURE_CHARS: usize = 7 << 20;
/// How many cells an error names.
const MOST_NAMED: usize = 20;

/// A notebook as it is shown.
#[derive(Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) text: String,
    pub(crate) pictures: Vec<Content>,
    pub(crate) cells: Vec<Value>,
}

/// One cell, as far as everybody needs it.
#[derive(Debug)]
struct Cell<'a> {
    /// The id that the file gives it, or else `cell-` and its place, counted from 0.
    id: String,
    kind: &'a str,
    value: &'a Value,
}

fn cells<'a>(notebook: &'a Value) -> Option<Vec<Cell<'a>>> {
    let list = notebook.get("cells")?.as_array()?;
    let cell = |(place, value): (usize, &'a Value)| Cell {
        id: value.get("id").and_then(Value::as_str).map_or_else(|| format!("cell-{place}"), str::to_owned),
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

/// A text that nbformat stores as one string or as many.
fn joined(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// What the cells of a notebook say; `None` if the bytes are no notebook.
pub(crate) fn show(bytes: &[u8]) -> Option<Shown> {
    let notebook: Value =
        serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).ok()?;
    let mut shown = Shown { text: String::new(), pictures: Vec::new(), cells: Vec::new() };
    for cell in cells(&notebook)? {
        let run = cell.value.get("execution_count").and_then(Value::as_u64);
        let run = run.map(|count| format!(", run {count}")).unwrap_or_default();
        let _ = writeln!(shown.text, "=== {} ({}{run}) ===", cell.id, cell.kind);
        let source = cell.source();
        push_text(&source, &mut shown.text);
        let outputs =
            cell.value.get("outputs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for output in outputs {
            show_output(output, &mut shown);
        }
        shown.cells.push(haft_tool::json!({"id": cell.id, "cellType": cell.kind, "outputs": outputs.len()}));
    }
    Some(shown)
}

fn show_output(output: &Value, shown: &mut Shown) {
    let kind = output.get("output_type").and_then(Value::as_str).unwrap_or_default();
    let text = match kind {
        "stream" => joined(output.get("text")),
        "error" => {
            let trace =
                output.get("traceback").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let lines: Vec<&str> = trace.iter().filter_map(Value::as_str).collect();
            plain(&lines.join("\n"))
        }
        _ => {
            let data = output.get("data");
            let of = |kind: &str| data.and_then(|data| data.get(kind));
            for media_type in ["image/png", "image/jpeg", "image/gif", "image/webp"] {
                let Some(picture) = of(media_type) else { continue };
                show_picture(media_type, &joined(Some(picture)), shown);
                return;
            }
            let best = ["text/markdown", "text/plain", "text/latex", "text/html", "application/json"];
            match best.iter().find_map(|kind| of(kind)) {
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
    let _ = writeln!(shown.text, "--- {name} ---");
    let bound = Bound { max_chars: MOST_OUTPUT_CHARS, ..Bound::default() };
    push_text(&bound.apply(text.into(), None).0, &mut shown.text);
}

fn show_picture(media_type: &str, data: &str, shown: &mut Shown) {
    let data: String = data.split_ascii_whitespace().collect();
    let held: usize = shown.pictures.len();
    let note = if held >= MOST_PICTURES || data.len() > MOST_PICTURE_CHARS {
        format!("{media_type}, not shown: too large or too many")
    } else {
        shown.pictures.push(Content::Image { media_type: media_type.to_owned(), data });
        format!("{media_type}, shown as picture {}", held + 1)
    };
    let _ = writeln!(shown.text, "--- output ---\n({note})");
}

fn push_text(text: &str, to: &mut String) {
    to.push_str(text);
    if !text.is_empty() && !text.ends_with('\n') {
        to.push('\n');
    }
}

/// A text without the escape sequences that colour it.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let end = after.find(|char: char| ('@'..='~').contains(&char));
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    plain + rest
}

/// The error that no cell has the id, which names those that there are.
fn no_such_cell(id: &str, cells: &[Cell<'_>]) -> ToolError {
    let mut named: Vec<String> = cells
        .iter()
        .take(MOST_NAMED)
        .map(|cell| {
            let source = cell.source();
            let start: String = source.lines().next().unwrap_or_default().chars().take(40).collect();
            format!("{} ({}: {start})", cell.id, cell.kind)
        })
        .collect();
    if cells.len() > MOST_NAMED {
        named.push(format!("and {} more", cells.len() - MOST_NAMED));
    }
    let there =
        if named.is_empty() { "it has none".to_owned() } else { format!("it has {}", named.join(", ")) };
    ToolError::new(
        haft_tool::ErrorKind::TargetNotFound,
        format!("cell_id: the notebook has no cell {id}; {there}"),
    )
}
