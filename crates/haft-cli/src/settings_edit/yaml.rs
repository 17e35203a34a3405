//! One entry of a top-level block of a YAML file.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use serde_json::{Map, Value};
use yaml_edit::{Document, Mapping, MappingBuilder, SequenceBuilder};

use super::{BYTE_ORDER_MARK, NOT_UNDERSTOOD, like_old};

/// Returns the text with the entry `name` of the top-level block `block` set to `entry`.
pub(crate) fn put(text: &str, block: &str, name: &str, entry: &Map<String, Value>) -> Result<String, String> {
    let document = parse(text, block)?;
    let root = document.as_mapping().ok_or(NOT_UNDERSTOOD)?;
    let (key, value) = match find_block(&root, block)? {
        Some(entries) if !entries.is_empty() => {
            entries.set(name, built(mapping(entry))?);
            return finish(text, &document, block, name, true);
        }
        _ => (block, MappingBuilder::new().insert_mapping(name, mapping(entry))),
    };
    root.set(key, built(value)?);
    finish(text, &document, block, name, true)
}

/// Returns the text with the entry as it is in `base`.
pub(crate) fn copy(text: &str, base: &str, block: &str, name: &str) -> Result<String, String> {
    let entry = |text: &str| {
        let root = parse(text, block)?.as_mapping().ok_or(NOT_UNDERSTOOD)?;
        let entries = find_block(&root, block)?.ok_or(NOT_UNDERSTOOD)?;
        entries.get_mapping(name).ok_or_else(|| NOT_UNDERSTOOD.to_owned())
    };
    let document = parse(text, block)?;
    let root = document.as_mapping().ok_or(NOT_UNDERSTOOD)?;
    find_block(&root, block)?.ok_or(NOT_UNDERSTOOD)?.set(name, entry(base)?);
    finish(text, &document, block, name, true)
}

/// Returns the text of the entry, or `None` if there is no such entry.
pub(crate) fn find(text: &str, block: &str, name: &str) -> Result<Option<String>, String> {
    let root = parse(text, block)?.as_mapping().ok_or(NOT_UNDERSTOOD)?;
    let entries = find_block(&root, block)?;
    Ok(entries.and_then(|entries| entries.get(name)).map(|entry| entry.to_string().trim().to_owned()))
}

/// Returns the text without the entry, or `None` if there is no such entry.
pub(crate) fn remove(text: &str, block: &str, name: &str) -> Result<Option<String>, String> {
    let document = parse(text, block)?;
    let root = document.as_mapping().ok_or(NOT_UNDERSTOOD)?;
    let Some(entries) = find_block(&root, block)? else { return Ok(None) };
    if entries.remove(name).is_none() {
        return Ok(None);
    }
    finish(text, &document, block, name, false).map(Some)
}

/// Parses the text; one without any key gets an empty block, so that there is a mapping to edit.
fn parse(text: &str, block: &str) -> Result<Document, String> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let is_content = |line: &str| !matches!(line.trim_start().chars().next(), None | Some('#'));
    if text.lines().any(is_content) {
        return Document::from_str(text).map_err(|error| error.to_string());
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Document::from_str(&format!("{text}{gap}{block}:\n")).map_err(|error| error.to_string())
}

/// Returns the block, or `None` if it is missing or empty.
fn find_block(root: &Mapping, block: &str) -> Result<Option<Mapping>, String> {
    let Some(value) = root.get(block) else { return Ok(None) };
    match root.get_mapping(block) {
        Some(entries) => Ok(Some(entries)),
        None if matches!(value.to_string().trim(), "" | "null" | "~") => Ok(None),
        None => Err(format!("{block} is not a mapping")),
    }
}

/// Returns the text of the edited document after checking that only the one entry differs.
fn finish(old: &str, document: &Document, block: &str, name: &str, present: bool) -> Result<String, String> {
    let new = like_old(old, document.to_string());
    let is_same = rest(old, block, name)? == rest(&new, block, name)?;
    let root = parse(&new, block)?.as_mapping().ok_or(NOT_UNDERSTOOD)?;
    let found = find_block(&root, block)?.is_some_and(|entries| entries.get(name).is_some());
    if is_same && found == present { Ok(new) } else { Err(NOT_UNDERSTOOD.to_owned()) }
}

/// The text of every value of the document but the one entry, by its path.
fn rest(text: &str, block: &str, name: &str) -> Result<BTreeMap<(String, String), String>, String> {
    let root = parse(text, block)?.as_mapping().ok_or(NOT_UNDERSTOOD)?;
    let mut all = BTreeMap::new();
    for (key, value) in root.iter() {
        let key = key.to_string().trim().to_owned();
        match find_block(&root, block)? {
            _ if key != block => drop(all.insert((key, String::new()), value.to_string().trim().to_owned())),
            Some(entries) => {
                let others =
                    entries.iter().map(|(inner, value)| (inner.to_string().trim().to_owned(), value));
                let others = others.filter(|(inner, _)| inner != name);
                all.extend(
                    others.map(|(inner, value)| ((key.clone(), inner), value.to_string().trim().to_owned())),
                );
            }
            None => {}
        }
    }
    Ok(all)
}

fn built(builder: MappingBuilder) -> Result<Mapping, String> {
    builder.build_document().as_mapping().ok_or_else(|| NOT_UNDERSTOOD.to_owned())
}

fn mapping(members: &Map<String, Value>) -> MappingBuilder {
    members.iter().fold(MappingBuilder::new(), |builder, (name, value)| match value {
        Value::Null => builder,
        Value::Bool(flag) => builder.pair(name, *flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => builder.pair(name, integer),
            None => builder.pair(name, number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => builder.pair(name, text.as_str()),
        Value::Array(items) => builder.insert_sequence(name, sequence(items)),
        Value::Object(members) => builder.insert_mapping(name, mapping(members)),
    })
}

fn sequence(items: &[Value]) -> SequenceBuilder {
    items.iter().fold(SequenceBuilder::new(), |builder, item| match item {
        Value::String(text) => builder.item(text.as_str()),
        Value::Bool(flag) => builder.item(*flag),
        Value::Object(members) => builder.insert_mapping(mapping(members)),
        Value::Array(items) => builder.insert_sequence(sequence(items)),
        Value::Null => builder,
        Value::Number(number) => match number.as_i64() {
            Some(integer) => builder.item(integer),
            None => builder.item(number.as_f64().unwrap_or_default()),
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn add(text: &str) -> Result<String, String> {
        let entry = json!({
            "enabled": true, "name": "haft", "cmd": "/x y/haft", "args": ["mcp", "--network", "a.org,*.b.org", "yes"],
            "timeout": 300, "envs": {},
        });
        put(text, "extensions", "haft", entry.as_object().unwrap())
    }

    const ENTRY: &str = "  haft:\n    enabled: true\n    name: haft\n    cmd: /x y/haft\n    args:\n      - mcp\n      \
                         - '--network'\n      - 'a.org,*.b.org'\n      - 'yes'\n    timeout: 300\n    envs: {}\n";

    #[test]
    fn removing_a_new_entry_restores_the_text() {
        let before = "GOOSE_PROVIDER: openai # \"mine\nnote: |\n  extensions:\n    \"odd\nlist:\n- a\n- b: 1\n  c: 2\n\
                      extensions:\n  dev:\n    enabled: true\n    args: []\n    text: >-\n      it's\n      \"so\n";
        for after in ["", "GOOSE_MODE: auto\n"] {
            let text = format!("{before}{after}");
            let new = add(&text).unwrap();
            assert_eq!(new, format!("{before}{ENTRY}{after}"));
            assert_eq!(add(&new).unwrap(), new, "a second put changes nothing");
            assert_eq!(remove(&new, "extensions", "haft").unwrap(), Some(text));
        }
        let crlf = format!("{before}GOOSE_MODE: auto\n").replace('\n', "\r\n");
        let new = add(&crlf).unwrap();
        assert_eq!(new.matches('\n').count(), new.matches("\r\n").count());
        assert_eq!(remove(&new, "extensions", "haft").unwrap(), Some(crlf));
    }

    #[test]
    fn a_missing_or_empty_block_is_created() {
        assert_eq!(add("").unwrap(), format!("extensions:\n{ENTRY}"));
        assert_eq!(add("# mine\n").unwrap(), format!("# mine\nextensions:\n{ENTRY}"));
        assert_eq!(add("a: 1\n").unwrap(), format!("a: 1\nextensions:\n{ENTRY}"));
        assert_eq!(
            add("extensions: {} # none\nb: 1\n").unwrap(),
            format!("extensions: # none\n{ENTRY}b: 1\n")
        );
        assert_eq!(add("extensions: null\n").unwrap(), format!("extensions:\n{ENTRY}"));
        assert_eq!(remove("a: 1\n", "extensions", "haft").unwrap(), None);
        assert_eq!(remove("extensions:\n", "extensions", "haft").unwrap(), None);
    }

    #[test]
    fn an_existing_entry_is_replaced_in_place() {
        let text = "extensions:\n    haft:\n        cmd: old\n        args:\n        - x\n\n    # b\n    b:\n        cmd: b\n";
        let new = add(text).unwrap();
        assert!(new.starts_with("extensions:\n    haft:\n      enabled: true\n"), "{new}");
        assert!(new.ends_with("      envs: {}\n\n    # b\n    b:\n        cmd: b\n"), "{new}");
    }

    #[test]
    fn invalid_or_ambiguous_files_are_refused() {
        for text in [
            "extensions:\n- a\n",
            "extensions: x\n",
            "- a\n",
            "a: [1,\n",
            "a: 1\n---\nextensions:\n",
            &"[".repeat(100_000),
        ] {
            assert!(add(text).is_err(), "{text:.40}");
        }
    }
}
