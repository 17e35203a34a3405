//! One member of a JSON file. Comments and trailing commas are allowed, as editors allow them.

mod layout;
mod plain;
#[cfg(test)]
mod tests;

use haft_tool::Value;
use serde_json::Map;

use super::{Edit, applied};
use layout::{insertion, removal, replacement};
use plain::{Object, Plain};

/// What the text says; nothing if it only has spaces and comments.
pub(crate) fn read(text: &str) -> Result<Option<Value>, String> {
    Ok(Plain::of(text)?.value)
}

/// The text with the member at `path` set to `value`; tables on the way are made.
pub(crate) fn put(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    let plain = Plain::of(text)?;
    let mut meant = plain.value.clone().unwrap_or_else(|| Value::Object(Map::new()));
    set(&mut meant, path, value)?;
    if plain.value.as_ref() == Some(&meant) {
        return Ok(text.to_owned());
    }
    checked(applied(text, &put_edits(text, &plain, path, value)?), Some(&meant))
}

/// The text without the member at `path`; nothing if there is no such member.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<Option<String>, String> {
    let plain = Plain::of(text)?;
    let Some(edits) = remove_edits(text, &plain, path)? else { return Ok(None) };
    let mut meant = plain.value.clone();
    let (last, above) = path.split_last().ok_or("no member is named")?;
    let mut table = meant.as_mut();
    for name in above {
        table = table.and_then(|table| table.get_mut(*name));
    }
    if let Some(Value::Object(table)) = table {
        table.shift_remove(*last);
    }
    checked(applied(text, &edits), meant.as_ref()).map(Some)
}

/// The text, if it says what was meant.
fn checked(text: String, meant: Option<&Value>) -> Result<String, String> {
    match Plain::of(&text) {
        Ok(plain) if plain.value.as_ref() == meant => Ok(text),
        _ => Err("its layout is not understood well enough to change it".to_owned()),
    }
}

fn set(table: &mut Value, path: &[&str], value: &Value) -> Result<(), String> {
    let Value::Object(members) = table else { return Err("it does not hold an object".to_owned()) };
    match path {
        [] => Err("no member is named".to_owned()),
        [last] => {
            members.insert((*last).to_owned(), value.clone());
            Ok(())
        }
        [first, rest @ ..] => {
            let inside = members.entry(*first).or_insert_with(|| Value::Object(Map::new()));
            if !inside.is_object() {
                return Err(format!("{first:?} is not an object"));
            }
            set(inside, rest, value)
        }
    }
}

fn put_edits(text: &str, plain: &Plain, path: &[&str], value: &Value) -> Result<Vec<Edit>, String> {
    let Some(root) = plain.root() else {
        // Nothing but spaces and comments: they stay above.
        let whole = serde_json::to_string_pretty(&nested(path, value)).map_err(|error| error.to_string())?;
        let gap = if text.is_empty() || text.ends_with(['\n', '\u{feff}']) { "" } else { "\n" };
        return Ok(vec![Edit::insert(text.len(), format!("{gap}{whole}\n"))]);
    };
    let mut object = plain.object(root);
    for (depth, name) in path.iter().enumerate() {
        let last = depth + 1 == path.len();
        match only(&object, name)? {
            Some(at) if last => return Ok(replacement(text, plain, &object, at, value)),
            Some(at) => object = plain.object(object.members[at].value.start),
            None => return Ok(insertion(text, plain, &object, name, &nested(&path[depth + 1..], value))),
        }
    }
    Err("no member is named".to_owned())
}

fn remove_edits(text: &str, plain: &Plain, path: &[&str]) -> Result<Option<Vec<Edit>>, String> {
    let Some(mut start) = plain.root() else { return Ok(None) };
    for (depth, name) in path.iter().enumerate() {
        if !plain.is_object(start) {
            return Ok(None);
        }
        let object = plain.object(start);
        let Some(at) = only(&object, name)? else { return Ok(None) };
        if depth + 1 == path.len() {
            return Ok(Some(removal(text, &object, at)));
        }
        start = object.members[at].value.start;
    }
    Ok(None)
}

/// The one member of that name. Of two, nobody knows which one counts.
fn only(object: &Object, name: &str) -> Result<Option<usize>, String> {
    let mut found = object.members.iter().enumerate().filter(|(_, member)| member.name == name);
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(format!("{name:?} is there twice; take one out first")),
        (first, None) => Ok(first.map(|(at, _)| at)),
    }
}

/// The value inside the tables that lead to it.
fn nested(path: &[&str], value: &Value) -> Value {
    path.iter().rev().fold(value.clone(), |inside, name| {
        Value::Object(std::iter::once(((*name).to_owned(), inside)).collect())
    })
}
