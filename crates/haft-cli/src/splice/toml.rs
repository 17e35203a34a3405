//! One table of a TOML file.

use std::ops::Range;

use haft_tool::Value;
use serde_json::Map;
use toml_edit::{Array, Document, InlineTable, Item, Key, Table};

use super::{Edit, applied, json, line_end, line_start, newline};

/// The text with the table at `path` being `table`.
pub(crate) fn put(text: &str, path: &[&str], table: &Map<String, Value>) -> Result<String, String> {
    let document = parsed(text)?;
    let Value::Object(table) = &without_nulls(&Value::Object(table.clone())) else {
        return Err("it is no table".to_owned());
    };
    let meant = json::put(&said(text)?.to_string(), path, &Value::Object(table.clone()))?;
    let meant: Value = serde_json::from_str(&meant).map_err(|error| error.to_string())?;
    if said(text)? == meant {
        return Ok(text.to_owned());
    }
    let edits = match find(document.as_table(), path)? {
        Some(Item::Value(old)) => {
            let at = old.span().ok_or("it has no place")?;
            vec![Edit { at, with: inline(table).to_string().trim().to_owned() }]
        }
        Some(item) => {
            let (mut edits, headed) = lines(text, item)?;
            let new = section(text, path, table);
            match edits.first_mut() {
                Some(first) if headed => first.with = new,
                _ => edits.push(appended(text, &new)),
            }
            edits
        }
        None => vec![appended(text, &section(text, path, table))],
    };
    checked(applied(text, &edits), &meant)
}

/// The text without the table at `path`; nothing if there is no such table.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<Option<String>, String> {
    let document = parsed(text)?;
    let Some(item) = find(document.as_table(), path)? else { return Ok(None) };
    let mut edits = match item {
        Item::Value(old) => {
            let (_, above) = path.split_last().ok_or("no table is named")?;
            let key =
                find(document.as_table(), above)?.and_then(Item::as_table_like).or(Some(document.as_table()));
            let key = key.and_then(|table| table.key(path.last()?)).and_then(Key::span);
            let (Some(key), Some(value)) = (key, old.span()) else {
                return Err("it has no place".to_owned());
            };
            vec![Edit::cut(line_start(text, key.start)..line_end(text, value.end))]
        }
        item => lines(text, item)?.0,
    };
    if let Some(first) = edits.first_mut() {
        // The blank line that set it apart goes with it.
        let above = text[..first.at.start].strip_suffix('\n').map(|above| above.trim_end_matches('\r'));
        if let Some(above) = above.filter(|above| above.ends_with('\n')) {
            first.at.start = above.len();
        }
    }
    let mut meant = said(text)?;
    let (last, above) = path.split_last().ok_or("no table is named")?;
    let holder = above.iter().try_fold(&mut meant, |value, name| value.get_mut(*name));
    if let Some(Value::Object(holder)) = holder {
        holder.shift_remove(*last);
    }
    let new = applied(text, &edits);
    // A table that only held this one is not there any more without it.
    match said(&new) {
        Ok(now) if pruned(now.clone()) == pruned(meant) => Ok(Some(new)),
        _ => Err(NOT_UNDERSTOOD.to_owned()),
    }
}

const NOT_UNDERSTOOD: &str = "its layout is not understood well enough to change it";

fn checked(text: String, meant: &Value) -> Result<String, String> {
    match said(&text) {
        Ok(now) if now == *meant => Ok(text),
        _ => Err(NOT_UNDERSTOOD.to_owned()),
    }
}

/// Without tables that hold nothing.
fn pruned(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name, pruned(value)));
            let empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
            Value::Object(members.filter(|(_, value)| !empty(value)).collect())
        }
        value => value,
    }
}

fn parsed(text: &str) -> Result<Document<&str>, String> {
    Document::parse(text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        format!("line {line}: {}", error.message().trim().replace('\n', ", "))
    })
}

/// What the text says.
fn said(text: &str) -> Result<Value, String> {
    toml_edit::de::from_str(text).map_err(|error| error.message().to_owned())
}

/// What stands at `path`.
fn find<'d>(root: &'d Table, path: &[&str]) -> Result<Option<&'d Item>, String> {
    let Some((last, above)) = path.split_last() else { return Ok(None) };
    let mut table = root;
    for name in above {
        table = match table.get(name) {
            None => return Ok(None),
            Some(Item::Table(inside)) => inside,
            Some(_) => {
                return Err(format!("{name} is not written as [{name}.NAME] tables there; do that first"));
            }
        };
    }
    match table.get(last) {
        Some(Item::ArrayOfTables(_)) => Err(format!("{last} is a list of tables there")),
        Some(Item::Value(value)) if !value.is_inline_table() => Err(format!("{last} is not a table there")),
        found => Ok(found.filter(|item| !item.is_none())),
    }
}

/// The lines that make up a table with everything below it, to be cut; and whether it has a heading of its own.
fn lines(text: &str, item: &Item) -> Result<(Vec<Edit>, bool), String> {
    let mut all = Vec::new();
    collect(text, item, &mut all)?;
    all.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in all {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    let headed = item.as_table().is_some_and(|table| !table.is_dotted());
    Ok((merged.into_iter().map(Edit::cut).collect(), headed))
}

fn collect(text: &str, item: &Item, all: &mut Vec<Range<usize>>) -> Result<(), String> {
    let whole = |start: usize, end: usize| line_start(text, start)..line_end(text, end);
    match item {
        Item::Table(table) => {
            if !table.is_implicit() && !table.is_dotted() {
                let heading = table.span().ok_or(NOT_UNDERSTOOD)?;
                all.push(whole(heading.start, heading.end));
            }
            for (name, inside) in table {
                match inside {
                    Item::Value(value) => {
                        let key = table.key(name).and_then(Key::span).ok_or(NOT_UNDERSTOOD)?;
                        let value = value.span().ok_or(NOT_UNDERSTOOD)?;
                        all.push(whole(key.start, value.end));
                    }
                    inside => collect(text, inside, all)?,
                }
            }
            Ok(())
        }
        Item::ArrayOfTables(tables) => {
            for table in tables {
                collect(text, &Item::Table(table.clone()), all)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn appended(text: &str, section: &str) -> Edit {
    let line = newline(text);
    let gap = match text {
        text if text.trim_start_matches('\u{feff}').is_empty() => String::new(),
        text if text.ends_with('\n') => line.to_owned(),
        _ => line.repeat(2),
    };
    Edit::insert(text.len(), gap + section)
}

/// The table as its own part of the file.
fn section(text: &str, path: &[&str], table: &Map<String, Value>) -> String {
    let line = newline(text);
    let names: Vec<String> = path.iter().map(|name| Key::new(*name).to_string()).collect();
    let mut section = format!("[{}]{line}", names.join("."));
    for (name, value) in table {
        section.push_str(&format!("{} = {}{line}", Key::new(name), written(value).to_string().trim()));
    }
    section
}

fn inline(table: &Map<String, Value>) -> InlineTable {
    table.iter().map(|(name, value)| (name, written(value))).collect()
}

/// A value as TOML has it.
fn written(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => values.iter().map(written).collect::<Array>().into(),
        Value::Object(table) => inline(table).into(),
        Value::Null => "".into(),
    }
}

/// The same value without what TOML does not know.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(values) => values.iter().filter(|value| !value.is_null()).map(without_nulls).collect(),
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATH: &[&str] = &["mcp_servers", "haft"];

    fn table() -> Map<String, Value> {
        let table = json!({"command": "/x/haft", "args": ["mcp", "a\"b\\"], "env": {"A B": "1"}});
        table.as_object().unwrap().clone()
    }

    /// Files with everything but the table.
    const WITHOUT: &[&str] = &[
        "",
        "# mine\nmodel = \"x\" # why\n",
        "model = \"x\"",
        "a = 1\r\n\r\n[b]\r\nc = \"\"\"\r\n[mcp_servers.haft]\r\n\"\"\"\r\n",
        "[mcp_servers.other]\ncommand = \"o\"\n\n[mcp_servers.other.env]\nA = \"b\"\n\n# the end\n",
        "[mcp_servers]\nother = { command = \"o\" }\n",
        "[[list]]\na = 1\n[[list]]\na = 2\n",
        "\u{feff}model = 1\n",
    ];

    #[test]
    fn a_table_comes_to_the_end_and_goes_without_a_trace() {
        for text in WITHOUT {
            let new = put(text, PATH, &table()).unwrap();
            assert!(new.starts_with(text), "{new}");
            assert_eq!(said(&new).unwrap()["mcp_servers"]["haft"], json!(table()), "{new}");
            assert_eq!(put(&new, PATH, &table()).unwrap(), new);
            let gone = remove(&new, PATH).unwrap().unwrap();
            assert_eq!(gone.trim_end(), text.trim_end(), "{new}");
            assert_eq!(remove(text, PATH).unwrap(), None);
            assert_eq!(new.contains("\r\n"), text.contains("\r\n"));
        }
    }

    #[test]
    fn a_table_that_is_there_is_replaced_where_it_stands() {
        let text = "# top\n[mcp_servers.haft]\ncommand = \"old\" # gone\nargs = [\n  \"a\", # x\n]\n# kept\n\n\
                    [mcp_servers.haft.env]\nA = \"b\"\n\n# other\n[other]\nx = 1\n";
        let new = put(text, PATH, &table()).unwrap();
        assert!(new.starts_with("# top\n[mcp_servers.haft]\ncommand = \"/x/haft\"\n"), "{new}");
        assert!(new.contains("# kept\n") && new.ends_with("# other\n[other]\nx = 1\n"), "{new}");
        let gone = remove(text, PATH).unwrap().unwrap();
        assert_eq!(gone, "# top\n# kept\n\n\n# other\n[other]\nx = 1\n");

        let text = "[mcp_servers]\nhaft = { command = \"old\" } # mine\nb = { command = \"b\" }\n";
        let new = put(text, PATH, &table()).unwrap();
        assert!(
            new.starts_with("[mcp_servers]\nhaft = { command = \"/x/haft\"") && new.contains("} # mine\nb ="),
            "{new}"
        );
        assert_eq!(remove(text, PATH).unwrap().unwrap(), "[mcp_servers]\nb = { command = \"b\" }\n");

        let text = "[mcp_servers]\nhaft.command = \"old\"\nb.command = \"b\"\n";
        let new = put(text, PATH, &table()).unwrap();
        assert!(new.starts_with("[mcp_servers]\nb.command = \"b\"\n\n[mcp_servers.haft]\n"), "{new}");
    }

    #[test]
    fn names_and_values_are_quoted_as_they_must() {
        let odd = json!({"command": "a\nb\u{1b}\u{202e}", "n": 5, "off": null}).as_object().unwrap().clone();
        let new = put("", &["tools", "mcp_servers", "a.b c"], &odd).unwrap();
        assert!(new.starts_with("[tools.mcp_servers.\"a.b c\"]\n"), "{new}");
        assert_eq!(said(&new).unwrap()["tools"]["mcp_servers"]["a.b c"]["command"], odd["command"]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "a = ",
            "mcp_servers = { a = { command = \"x\" } }\n",
            "mcp_servers = 1\n",
            "[[mcp_servers.haft]]\n",
            "[mcp_servers]\nhaft = 1\n",
            "mcp_servers.other.command = \"x\"\n[mcp_servers]\n",
        ] {
            assert!(put(text, PATH, &table()).is_err(), "{text}");
        }
        assert!(put("a = 1\nb = \n", PATH, &table()).is_err_and(|why| why.starts_with("line 2: ")));
    }
}
