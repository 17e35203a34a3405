//! Changes one setting in the text of a file and keeps the rest.

use std::path::Path;

use haft_tool::Value;
use toml_edit::{Array, DocumentMut, Item, Key, TableLike};

use super::file::parse;
use super::sections::words;

/// Why a setting cannot be changed.
pub(super) enum EditError {
    /// There is no such setting.
    UnknownSetting,
    /// The file or the value is wrong.
    Invalid(String),
}

/// Returns the file with `name` set to `value`. A string that does not fit is tried as TOML, then as a comma-separated list.
pub(super) fn set(path: &Path, old: Option<&[u8]>, name: &str, value: &Value) -> Result<Vec<u8>, EditError> {
    let old = std::str::from_utf8(old.unwrap_or_default())
        .map_err(|_| EditError::Invalid(format!("{} is not UTF-8", path.display())))?;
    let document: DocumentMut = old.parse().map_err(|error: toml_edit::TomlError| {
        EditError::Invalid(format!("fix {} first: {}", path.display(), error.message()))
    })?;
    let mut first = None;
    for candidate in candidates(value) {
        let mut document = document.clone();
        put(&mut document, name, candidate)?;
        let text = document.to_string();
        match parse(&text) {
            Ok((_, ignored)) if ignored.iter().any(|ignored| touches(ignored, name)) => {
                return Err(EditError::UnknownSetting);
            }
            Ok(_) => return Ok(text.into_bytes()),
            Err(error) => drop(first.get_or_insert(error.why)),
        }
    }
    Err(EditError::Invalid(first.unwrap_or_else(|| format!("{value} is not a valid value"))))
}

fn touches(ignored: &str, name: &str) -> bool {
    ignored == name || name.strip_prefix(ignored).is_some_and(|rest| rest.starts_with('.'))
}

/// The interpretations of the value, the most likely first.
fn candidates(value: &Value) -> Vec<toml_edit::Value> {
    match value {
        Value::Bool(flag) => vec![(*flag).into()],
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => vec![whole.into()],
            (None, Some(part)) => vec![part.into()],
            (None, None) => Vec::new(),
        },
        Value::String(text) => {
            let list = || toml_edit::Value::Array(words(text).into_iter().collect::<Array>());
            let read = text.trim().parse::<toml_edit::Value>().ok();
            if let Some(array @ toml_edit::Value::Array(_)) = read {
                return vec![array, text.as_str().into()];
            }
            std::iter::once(text.as_str().into()).chain(read).chain([list()]).collect()
        }
        _ => Vec::new(),
    }
}

/// Sets the value of a dotted name and creates missing tables; a comment after the old value stays.
fn put(document: &mut DocumentMut, name: &str, mut value: toml_edit::Value) -> Result<(), EditError> {
    let mut names = Key::parse(name).map_err(|_| EditError::UnknownSetting)?;
    let Some(last) = names.pop() else { return Err(EditError::UnknownSetting) };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in &names {
        let implicit = || {
            let mut table = toml_edit::Table::new();
            // A table that only contains tables needs no header.
            table.set_implicit(true);
            Item::Table(table)
        };
        let entry = table.entry(part).or_insert_with(implicit);
        table = entry.as_table_like_mut().ok_or(EditError::UnknownSetting)?;
    }
    match table.get_mut(&last) {
        // What is added to a list goes to its end, and the comments between its elements stay, as they do where others go.
        Some(Item::Value(toml_edit::Value::Array(old))) if added(old, &value).is_some() => {
            old.extend(added(old, &value).unwrap_or_default());
        }
        Some(Item::Value(toml_edit::Value::Array(old))) if kept(old, &value).is_some() => {
            let mut kept = kept(old, &value).unwrap_or_default().into_iter();
            old.retain(|_| kept.next().unwrap_or(false));
        }
        Some(Item::Value(old)) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        Some(item) if !item.is_none() => {
            return Err(EditError::Invalid("it is a table. Name one of its settings".to_owned()));
        }
        _ => drop(table.insert(&last, Item::Value(value))),
    }
    Ok(())
}

/// The elements that `new` has after all those of `old`.
fn added(old: &Array, new: &toml_edit::Value) -> Option<Vec<toml_edit::Value>> {
    let text = |value: &toml_edit::Value| value.as_str().map(str::to_owned);
    let new = new.as_array()?;
    let begins = new.len() > old.len()
        && old.iter().zip(new.iter()).all(|(old, new)| text(old).is_some() && text(old) == text(new));
    begins.then(|| new.iter().skip(old.len()).map(|value| text(value).unwrap_or_default().into()).collect())
}

/// Which elements of `old` are in `new`, if that has no others and the same order.
fn kept(old: &Array, new: &toml_edit::Value) -> Option<Vec<bool>> {
    let mut left = new.as_array()?.iter().map(toml_edit::Value::as_str).peekable();
    let kept =
        old.iter().map(|value| left.next_if(|next| next.is_some() && *next == value.as_str()).is_some());
    let kept: Vec<bool> = kept.collect();
    left.peek().is_none().then_some(kept)
}
