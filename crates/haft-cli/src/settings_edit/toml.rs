//! One table or value of a TOML file.

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use super::{NOT_UNDERSTOOD, like_old};

/// Returns the text with the entry at `path` set to `value`, creating the tables on the way. An object becomes a table.
pub(crate) fn put(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    let (last, parents) = path.split_last().ok_or("no table is named")?;
    let mut document = parse(text)?;
    let expected = without_nulls(value);
    let before = read(text)?;
    if path.iter().try_fold(&before, |value, name| value.get(*name)) == Some(&expected) {
        return Ok(text.to_owned());
    }
    if document.is_empty() && !text.trim().is_empty() {
        // Comments of a file without entries belong above the new table; toml_edit would write them below it.
        let gap = if text.ends_with('\n') { "\n" } else { "\n\n" };
        return Ok(like_old(text, format!("{text}{gap}{}", put("", path, value)?)));
    }
    let mut holder: &mut dyn TableLike = document.as_table_mut();
    for name in parents {
        let implicit = || {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        };
        let item = holder.entry(name).or_insert_with(implicit);
        holder = item.as_table_like_mut().ok_or_else(|| format!("{name} is not a table"))?;
    }
    let Value::Object(table) = value else {
        let mut new = toml_value(value).ok_or("TOML has no null")?;
        match holder.get_mut(last) {
            Some(Item::Value(old)) => {
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            Some(_) => return Err(format!("{last} is a table")),
            None => drop(holder.insert(last, Item::Value(new))),
        }
        return finish(text, &document, path, Some(&expected));
    };
    match holder.get_mut(last) {
        Some(Item::Value(toml_edit::Value::InlineTable(old))) => {
            let decor = old.decor().clone();
            *old = inline(table);
            *old.decor_mut() = decor;
        }
        Some(Item::Table(old)) if !old.is_dotted() => {
            old.clear();
            old.extend(entries(table));
        }
        Some(Item::Table(_)) | None => {
            holder.remove(last);
            holder.insert(last, Item::Table(entries(table).collect()));
        }
        Some(_) => return Err(format!("{last} is not a table")),
    }
    finish(text, &document, path, Some(&expected))
}

/// Returns the text without the table at `path`, or `None` if there is no such table.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<Option<String>, String> {
    let (last, parents) = path.split_last().ok_or("no table is named")?;
    let mut document = parse(text)?;
    let mut holder: &mut dyn TableLike = document.as_table_mut();
    for name in parents {
        let Some(item) = holder.get_mut(name) else { return Ok(None) };
        let Some(table) = item.as_table_like_mut() else { return Ok(None) };
        holder = table;
    }
    if holder.remove(last).is_none() {
        return Ok(None);
    }
    finish(text, &document, path, None).map(Some)
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let line =
            error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        format!("line {line}: {}", error.message().trim().replace('\n', ", "))
    })
}

/// Returns the text of the edited document after checking that the table at `path` has the expected value.
fn finish(
    old: &str,
    document: &DocumentMut,
    path: &[&str],
    expected: Option<&Value>,
) -> Result<String, String> {
    let new = like_old(old, document.to_string());
    let now = read(&new)?;
    let found = path.iter().try_fold(&now, |value, name| value.get(*name));
    if found == expected { Ok(new) } else { Err(NOT_UNDERSTOOD.to_owned()) }
}

/// Returns the values of the text.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    // Its errors name the line.
    parse(text)?;
    toml_edit::de::from_str(text).map_err(|error| error.message().to_owned())
}

/// The value without the nulls that TOML cannot hold.
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

fn entries(table: &Map<String, Value>) -> impl Iterator<Item = (String, toml_edit::Value)> {
    table.iter().filter_map(|(name, value)| Some((name.clone(), toml_value(value)?)))
}

fn inline(table: &Map<String, Value>) -> InlineTable {
    entries(table).collect()
}

/// The value in TOML, which has no null.
fn toml_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => values.iter().filter_map(toml_value).collect::<Array>().into(),
        Value::Object(table) => inline(table).into(),
    })
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

    #[test]
    fn removing_a_new_table_restores_the_text() {
        for text in [
            "",
            "# mine\nmodel = \"x\" # why\n",
            "a = 1\r\n\r\n[b]\r\nc = \"\"\"\r\n[mcp_servers.haft]\r\n\"\"\"\r\n",
            "[mcp_servers.other]\ncommand = \"o\"\n\n[mcp_servers.other.env]\nA = \"b\"\n\n# the end\n",
            "[mcp_servers]\nother = { command = \"o\" }\n",
            "mcp_servers = { other = { command = \"x\" } }\n",
            "[[list]]\na = 1\n[[list]]\na = 2\n",
            "\u{feff}model = 1\n",
        ] {
            let new = put(text, PATH, &json!(table())).unwrap();
            assert_eq!(read(&new).unwrap()["mcp_servers"]["haft"], json!(table()), "{new}");
            assert_eq!(put(&new, PATH, &json!(table())).unwrap(), new, "a second put changes nothing");
            assert_eq!(remove(&new, PATH).unwrap().as_deref(), Some(text), "{new}");
            assert_eq!(remove(text, PATH).unwrap(), None);
            assert_eq!(new.contains("\r\n"), text.contains("\r\n"));
        }
    }

    #[test]
    fn existing_table_is_replaced_in_place() {
        let text = "# top\n[mcp_servers.haft]\ncommand = \"old\" # gone\n\n[mcp_servers.haft.env]\nA = \"b\"\n\n\
                    # other\n[other]\nx = 1\n";
        let new = put(text, PATH, &json!(table())).unwrap();
        assert!(new.starts_with("# top\n[mcp_servers.haft]\ncommand = \"/x/haft\"\n"), "{new}");
        assert!(new.ends_with("\n# other\n[other]\nx = 1\n"), "{new}");

        let text = "[mcp_servers]\nhaft = { command = \"old\" } # mine\nb = { command = \"b\" }\n";
        let new = put(text, PATH, &json!(table())).unwrap();
        assert!(new.starts_with("[mcp_servers]\nhaft = { command = \"/x/haft\""), "{new}");
        assert!(new.contains("} # mine\nb ="), "{new}");
        assert_eq!(remove(text, PATH).unwrap().unwrap(), "[mcp_servers]\nb = { command = \"b\" }\n");

        let text = "[mcp_servers]\nhaft.command = \"old\"\nb.command = \"b\"\n";
        let new = put(text, PATH, &json!(table())).unwrap();
        assert!(new.starts_with("[mcp_servers]\nb.command = \"b\"\n\n[mcp_servers.haft]\n"), "{new}");
    }

    #[test]
    fn names_and_values_are_quoted_and_nulls_left_out() {
        let odd = json!({"command": "a\nb\u{1b}\u{202e}", "n": 5, "off": null}).as_object().unwrap().clone();
        let new = put("", &["tools", "mcp_servers", "a.b c"], &json!(odd)).unwrap();
        assert!(new.starts_with("[tools.mcp_servers.\"a.b c\"]\n"), "{new}");
        assert_eq!(
            read(&new).unwrap()["tools"]["mcp_servers"]["a.b c"],
            json!({"command": odd["command"], "n": 5})
        );
    }

    #[test]
    fn invalid_or_ambiguous_files_are_refused() {
        for text in [
            "a = ",
            "mcp_servers = 1\n",
            "[[mcp_servers.haft]]\n",
            "[mcp_servers]\nhaft = 1\n",
            "mcp_servers.other.command = \"x\"\n[mcp_servers]\n",
        ] {
            assert!(put(text, PATH, &json!(table())).is_err(), "{text}");
        }
        assert!(put("a = 1\nb = \n", PATH, &json!(table())).is_err_and(|why| why.starts_with("line 2: ")));
    }
}
