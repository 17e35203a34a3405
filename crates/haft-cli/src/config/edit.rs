//! Changing one setting in the text of a file, everything else left as it was.

use std::path::Path;

use haft_tool::Value;
use toml_edit::{Array, DocumentMut, Item, TableLike};

use super::file::parse;
use super::sections::words;

/// Why a setting cannot be changed so.
pub(super) enum Problem {
    /// There is no such setting.
    Unknown,
    /// The file or the value is wrong.
    Bad(String),
}

/// The file's new bytes, with `name` set to `value`. A text that does not fit is tried as TOML, and as a list with commas.
pub(super) fn changed(
    path: &Path,
    old: Option<&[u8]>,
    name: &str,
    value: &Value,
) -> Result<Vec<u8>, Problem> {
    let old = std::str::from_utf8(old.unwrap_or_default())
        .map_err(|_| Problem::Bad(format!("{} is not UTF-8", path.display())))?;
    let document: DocumentMut = old.parse().map_err(|error: toml_edit::TomlError| {
        Problem::Bad(format!("{} has to be put right first: {}", path.display(), error.message()))
    })?;
    let mut first = None;
    for candidate in candidates(value) {
        let mut document = document.clone();
        put(&mut document, name, candidate)?;
        let text = document.to_string();
        match parse(&text) {
            Ok((_, ignored)) if ignored.iter().any(|ignored| touches(ignored, name)) => {
                return Err(Problem::Unknown);
            }
            Ok(_) => return Ok(text.into_bytes()),
            Err(fault) => drop(first.get_or_insert(fault.why)),
        }
    }
    Err(Problem::Bad(first.unwrap_or_else(|| format!("{value} is no value for a setting"))))
}

fn touches(ignored: &str, name: &str) -> bool {
    ignored == name || name.strip_prefix(ignored).is_some_and(|rest| rest.starts_with('.'))
}

/// What the value could mean, the most likely first.
fn candidates(value: &Value) -> Vec<toml_edit::Value> {
    match value {
        Value::Bool(truth) => vec![(*truth).into()],
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => vec![whole.into()],
            (None, Some(part)) => vec![part.into()],
            (None, None) => Vec::new(),
        },
        Value::String(text) => {
            let list = || toml_edit::Value::Array(words(text).into_iter().collect::<Array>());
            let read = text.trim().parse::<toml_edit::Value>().ok();
            std::iter::once(text.as_str().into()).chain(read).chain([list()]).collect()
        }
        _ => Vec::new(),
    }
}

/// Puts a value at a dotted name, making tables on the way; a comment behind the old value stays.
fn put(document: &mut DocumentMut, name: &str, mut value: toml_edit::Value) -> Result<(), Problem> {
    let mut names: Vec<&str> = name.split('.').collect();
    let Some(last) = names.pop().filter(|last| !last.is_empty()) else { return Err(Problem::Unknown) };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in names {
        let fresh = || {
            let mut fresh = toml_edit::Table::new();
            // A table that only holds tables needs no heading of its own.
            fresh.set_implicit(true);
            Item::Table(fresh)
        };
        let entry = table.entry(part).or_insert_with(fresh);
        table = entry.as_table_like_mut().ok_or(Problem::Unknown)?;
    }
    match table.get_mut(last) {
        Some(Item::Value(old)) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        Some(item) if !item.is_none() => {
            return Err(Problem::Bad("it is a table; name one of the settings in it".to_owned()));
        }
        _ => drop(table.insert(last, Item::Value(value))),
    }
    Ok(())
}
