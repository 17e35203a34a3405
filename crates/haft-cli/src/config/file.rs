//! One `haft.toml`: its settings, and the lines they are on.

use std::path::{Path, PathBuf};

use haft_files::read_named;
use haft_tool::{ErrorKind, ToolError};
use serde::Deserialize;
use toml_edit::{Document, Item};

use super::{Sections, quoted_key};

/// Largest settings file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A parsed file.
#[derive(Debug, Clone)]
pub(super) struct SettingsFile {
    pub(super) path: PathBuf,
    pub(super) sections: Sections,
    /// Each key with a value, and its line.
    pub(super) lines: Vec<(String, usize)>,
    /// Each element of an array, by the key of the array, and its line.
    element_lines: Vec<(String, usize)>,
    /// Unknown keys with their lines.
    pub(super) unknown: Vec<(usize, String)>,
}

impl SettingsFile {
    /// Reads the file; `None` if it does not exist. A syntax error names line and column.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, ToolError> {
        let bytes = match read_named(path, MAX_FILE_BYTES) {
            Err(error) if error.kind == ErrorKind::FileNotFound => return Ok(None),
            other => other?,
        };
        let bad = |why: &str| ToolError::invalid_arguments(format!("{}: {why}", path.display()));
        let text = String::from_utf8(bytes).map_err(|_| bad("it is not UTF-8"))?;
        let (sections, ignored) = parse(&text).map_err(|SettingsSyntaxError { at, why }| {
            let (line, column) = line_and_column(&text, at);
            ToolError::invalid_arguments(format!("{}:{line}:{column}: {why}", path.display()))
        })?;
        let (mut lines, mut element_lines) = (Vec::new(), Vec::new());
        if let Ok(document) = Document::parse(text.as_str()) {
            keys(document.as_item(), "", &text, &mut lines, &mut element_lines);
        }
        let line_of = |name: &String| find(&lines, name).unwrap_or(1);
        let unknown = ignored.into_iter().map(|name| (line_of(&name), name)).collect();
        Ok(Some(Self { path: path.to_owned(), sections, lines, element_lines, unknown }))
    }

    /// The line that sets `name`, or the first below it.
    pub(super) fn line(&self, name: &str) -> Option<usize> {
        find(&self.lines, name)
    }

    /// The lines of the elements of the array `name`, in order.
    pub(super) fn element_lines(&self, name: &str) -> impl Iterator<Item = usize> {
        self.element_lines.iter().filter(move |(key, _)| key == name).map(|(_, line)| *line)
    }
}

fn find(lines: &[(String, usize)], name: &str) -> Option<usize> {
    let is = |key: &str| key == name || key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    lines.iter().find(|(key, _)| is(key)).map(|(_, line)| *line)
}

/// A syntax error at a byte offset.
pub(super) struct SettingsSyntaxError {
    at: usize,
    pub(super) why: String,
}

/// The settings of the text and its unknown keys.
pub(super) fn parse(text: &str) -> Result<(Sections, Vec<String>), SettingsSyntaxError> {
    let syntax_error = |error: &toml_edit::de::Error| SettingsSyntaxError {
        at: error.span().map_or(0, |span| span.start),
        why: error.message().trim().replace('\n', ", "),
    };
    let from = toml_edit::de::Deserializer::parse(text).map_err(|error| syntax_error(&error))?;
    let mut ignored = Vec::new();
    let mut on_ignored = |path: serde_ignored::Path<'_>| ignored.push(path.to_string().replace(".?", ""));
    let sections = Sections::deserialize(serde_ignored::Deserializer::new(from, &mut on_ignored));
    Ok((sections.map_err(|error| syntax_error(&error))?, ignored))
}

/// The line and column of a byte, both from 1.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

fn keys(
    item: &Item,
    above: &str,
    text: &str,
    lines: &mut Vec<(String, usize)>,
    element_lines: &mut Vec<(String, usize)>,
) {
    let Some(table) = item.as_table_like() else { return };
    for (name, item) in table.iter() {
        let name = quoted_key(name);
        let name = if above.is_empty() { name } else { format!("{above}.{name}") };
        if item.is_table_like() {
            keys(item, &name, text, lines, element_lines);
        } else if let Some(span) = item.span() {
            let spans = item.as_array().into_iter().flatten().filter_map(toml_edit::Value::span);
            element_lines.extend(spans.map(|span| (name.clone(), line_and_column(text, span.start).0)));
            lines.push((name, line_and_column(text, span.start).0));
        }
    }
}
