//! One entry of a block in a YAML file, by lines. Only what programs write is understood: a document of plain keys, one
//! value on one line, nested blocks. Anything else is refused with its line.

use std::fmt::Write;
use std::ops::Range;

use haft_tool::Value;

use super::{Edit, applied, newline};

/// The text with the entry `name` of the top-level block `block` being `value`.
pub(crate) fn put(text: &str, block: &str, name: &str, value: &Value) -> Result<String, String> {
    let line = newline(text);
    let found = understood(text, block)?;
    let indent = " ".repeat(found.as_ref().and_then(|found| found.indent).unwrap_or(2));
    let mut new = String::new();
    entry(&mut new, &indent, name, value, line);
    let edits = match found {
        None => {
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { line };
            vec![Edit::insert(text.len(), format!("{gap}{block}:{line}{new}"))]
        }
        Some(found) => {
            if let Some(child) = found.children.iter().find(|child| child.name == name) {
                child.is_alone(text)?;
                vec![Edit { at: child.lines.clone(), with: fitting(&text[child.lines.clone()], new) }]
            } else {
                let at = found.children.last().map_or(found.heading.end, |last| last.lines.end);
                let gap = if text[..at].ends_with('\n') { "" } else { line };
                let empty = found.empty.map(Edit::cut);
                empty.into_iter().chain([Edit::insert(at, format!("{gap}{new}"))]).collect()
            }
        }
    };
    let new = applied(text, &edits);
    match understood(&new, block)? {
        Some(block) if block.children.iter().filter(|child| child.name == name).count() == 1 => Ok(new),
        _ => Err("its layout is not understood well enough to change it".to_owned()),
    }
}

/// The text without the entry; nothing if there is no such entry.
pub(crate) fn remove(text: &str, block: &str, name: &str) -> Result<Option<String>, String> {
    let Some(found) = understood(text, block)? else { return Ok(None) };
    let Some(child) = found.children.iter().find(|child| child.name == name) else { return Ok(None) };
    child.is_alone(text)?;
    let mut edits = vec![Edit::cut(child.lines.clone())];
    if found.children.len() == 1 {
        edits.insert(0, Edit::insert(found.colon, " {}"));
    }
    Ok(Some(applied(text, &edits)))
}

/// The last line of a file may have no end; what takes its place has none either.
fn fitting(old: &str, mut new: String) -> String {
    if !old.ends_with('\n') {
        new.truncate(new.trim_end_matches(['\r', '\n']).len());
    }
    new
}

/// The block, as far as it has to be known.
#[derive(Debug)]
struct Block {
    /// Its first line.
    heading: Range<usize>,
    /// Behind its colon.
    colon: usize,
    /// What says on its first line that it is empty.
    empty: Option<Range<usize>>,
    indent: Option<usize>,
    children: Vec<Child>,
}

#[derive(Debug)]
struct Child {
    name: String,
    /// Its lines, without the blank ones and the comments behind it.
    lines: Range<usize>,
}

impl Child {
    /// Whether nothing else in the file refers to it.
    fn is_alone(&self, text: &str) -> Result<(), String> {
        let anchored =
            text[self.lines.clone()].lines().any(|line| line.contains(" &") || line.contains(" *"));
        if anchored { Err(format!("{} shares values with other entries", self.name)) } else { Ok(()) }
    }
}

fn understood(text: &str, block: &str) -> Result<Option<Block>, String> {
    let mut found: Option<Block> = None;
    let mut inside = false;
    // A key of the top level that may be followed by a list; how deep a text over several lines must be.
    let (mut listed, mut words): (bool, Option<usize>) = (false, None);
    let (mut first, mut start) = (true, 0);
    for (number, whole) in text.split_inclusive('\n').enumerate() {
        let lines = start..start + whole.len();
        start = lines.end;
        let refuse = |why: &str| Err(format!("line {}: {why}", number + 1));
        let line = whole.trim_end();
        let line = if number == 0 { line.trim_start_matches('\u{feff}') } else { line };
        let rest = line.trim_start_matches(' ');
        let indent = line.len() - rest.len();
        if rest.is_empty() || words.is_some_and(|deep| indent > deep) {
            if !rest.is_empty() && inside {
                extend(&mut found, lines.end);
            }
            continue;
        }
        words = None;
        if rest.starts_with('#') {
            continue;
        }
        if rest.starts_with('\t') {
            return refuse("it is indented with a tab");
        }
        let (key, value) = match split(rest) {
            Ok(parts) => parts,
            Err(why) => return refuse(why),
        };
        if is_words(value) {
            words = Some(indent);
        }
        if indent > 0 {
            if inside {
                let Some(block) = &mut found else { continue };
                let level = *block.indent.get_or_insert(indent);
                match key {
                    _ if indent < level => return refuse("it is indented less than the entry above it"),
                    Some(key) if indent == level && !rest.starts_with("- ") => {
                        if block.children.iter().any(|child| child.name == key) {
                            return refuse("an entry of that name is there already");
                        }
                        block.children.push(Child { name: key, lines });
                    }
                    _ if indent == level => return refuse("a list is there where names are expected"),
                    _ => extend(&mut found, lines.end),
                }
            }
            continue;
        }
        let opens = rest == "---" && first;
        first = false;
        if opens {
            continue;
        }
        let list = rest == "-" || rest.starts_with("- ");
        if list && listed && !inside {
            continue;
        }
        let Some(key) = key.filter(|_| !list) else { return refuse("a plain key is expected there") };
        inside = key == block;
        listed = value.is_empty() && !inside;
        if inside {
            if found.is_some() {
                return refuse(&format!("{block} is there twice"));
            }
            let colon = lines.start + whole.find(':').map_or(0, |colon| colon + 1);
            let empty = match value {
                "" => None,
                "{}" | "null" | "~" => {
                    let at = colon + text[colon..lines.end].find(value).unwrap_or_default();
                    Some(colon..at + value.len())
                }
                _ => return refuse(&format!("{block} is written on one line")),
            };
            // An empty block that says so ends with its line.
            inside = empty.is_none();
            found = Some(Block { heading: lines, colon, empty, indent: None, children: Vec::new() });
        }
    }
    Ok(found)
}

fn extend(found: &mut Option<Block>, end: usize) {
    if let Some(child) = found.as_mut().and_then(|block| block.children.last_mut()) {
        child.lines.end = end;
    }
}

/// The key of a line, if it has one, and the value behind it without a remark. A value that goes on in the next line by
/// itself is not understood.
fn split(rest: &str) -> Result<(Option<String>, &str), &'static str> {
    let mut rest = rest;
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item.trim_start();
    }
    if rest == "-" || rest == "---" {
        return Ok((None, ""));
    }
    let plain = |c: char| c.is_alphanumeric() || "_-./@ ".contains(c);
    let key = match rest.strip_prefix(['"', '\'']) {
        Some(inside) => {
            let quote = &rest[..1];
            inside
                .find(quote)
                .map(|end| (&inside[..end], &inside[end + 1..]))
                .filter(|(_, behind)| behind.starts_with(':'))
        }
        None => rest.find(':').map(|colon| rest.split_at(colon)).filter(|(key, _)| key.chars().all(plain)),
    };
    let key = key.filter(|(_, behind)| behind.len() == 1 || behind.starts_with(": "));
    let (key, value) = match key {
        Some((key, behind)) => (Some(key.trim_end().to_owned()), behind[1..].trim_start()),
        None => (None, rest),
    };
    Ok((key, whole(value)?))
}

/// The value without a remark behind it, if it ends on its line.
fn whole(value: &str) -> Result<&str, &'static str> {
    const LONG: &str = "a value goes over several lines there";
    let (mut depth, mut quote, mut end) = (0_usize, None, value.len());
    let flow = value.starts_with(['[', '{', '"', '\'']);
    if value.starts_with(['&', '!', '%', '@', '`', '?']) {
        return Err("a sign is there that is not understood");
    }
    let bytes = value.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (Some(b'"'), b'\\') => at += 1,
            (Some(open), byte) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'#') if at == 0 || bytes[at - 1] == b' ' => {
                end = at;
                break;
            }
            (None, byte @ (b'"' | b'\'')) if flow => quote = Some(byte),
            (None, b'[' | b'{') if flow => depth += 1,
            (None, b']' | b'}') if flow => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    if depth > 0 || quote.is_some() { Err(LONG) } else { Ok(value[..end].trim_end()) }
}

/// Whether the lines below are a text of their own.
fn is_words(value: &str) -> bool {
    value.starts_with(['|', '>']) && value[1..].chars().all(|c| c.is_ascii_digit() || "+-".contains(c))
}

fn entry(text: &mut String, indent: &str, name: &str, value: &Value, line: &str) {
    let name = scalar(name);
    match value {
        Value::Object(members) if !members.is_empty() => {
            let _ = write!(text, "{indent}{name}:{line}");
            let deeper = format!("{indent}  ");
            for (name, value) in members {
                entry(text, &deeper, name, value, line);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let _ = write!(text, "{indent}{name}:{line}");
            for item in items {
                let _ = write!(text, "{indent}  - {}{line}", leaf(item));
            }
        }
        value => {
            let _ = write!(text, "{indent}{name}: {}{line}", leaf(value));
        }
    }
}

fn leaf(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        // What JSON writes, YAML reads.
        value => value.to_string(),
    }
}

/// A text as YAML would not take for anything else.
fn scalar(text: &str) -> String {
    let words = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && !words.contains(&text.to_ascii_lowercase().as_str());
    match text {
        text if plain => text.to_owned(),
        text if text.chars().any(must_be_escaped) => {
            let escaped =
                |c: char| if must_be_escaped(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
            Value::from(text).to_string().chars().map(escaped).collect()
        }
        text => format!("'{}'", text.replace('\'', "''")),
    }
}

/// What YAML does not let stand as it is, or takes for the end of a line.
fn must_be_escaped(c: char) -> bool {
    c.is_control() || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn haft() -> Value {
        json!({"enabled": true, "name": "haft", "cmd": "/x y/haft", "args": ["mcp", "--network", "a.org,*.b.org"], "envs": {}})
    }

    fn added(text: &str) -> Result<String, String> {
        put(text, "extensions", "haft", &haft())
    }

    const WRITTEN: &str = "  haft:\n    enabled: true\n    name: haft\n    cmd: '/x y/haft'\n    args:\n      - mcp\n      - '--network'\n      \
                           - 'a.org,*.b.org'\n    envs: {}\n";

    #[test]
    fn an_entry_comes_behind_the_others_and_goes_without_a_trace() {
        let before = "GOOSE_PROVIDER: openai # \"mine\nnote: |\n  extensions:\n    \"odd\nlist:\n- a\n- b: 1\n  c: 2\nextensions:\n  dev:\n    \
                      enabled: true\n    args: []\n    text: >-\n      it's\n      \"so\n";
        for after in ["", "\n# the end\n", "GOOSE_MODE: auto\n"] {
            let text = format!("{before}{after}");
            let new = added(&text).unwrap();
            assert_eq!(new, format!("{before}{WRITTEN}{after}"));
            assert_eq!(added(&new).unwrap(), new, "twice is once");
            assert_eq!(remove(&new, "extensions", "haft").unwrap(), Some(text));
        }
        let crlf = format!("{before}GOOSE_MODE: auto\n").replace('\n', "\r\n");
        let new = added(&crlf).unwrap();
        assert_eq!(new.matches('\n').count(), new.matches("\r\n").count());
        assert_eq!(remove(&new, "extensions", "haft").unwrap(), Some(crlf));
    }

    #[test]
    fn a_block_that_is_not_there_is_made() {
        assert_eq!(added("").unwrap(), format!("extensions:\n{WRITTEN}"));
        assert_eq!(added("a: 1").unwrap(), format!("a: 1\nextensions:\n{WRITTEN}"));
        assert_eq!(
            added("extensions: {} # none\nb: 1\n").unwrap(),
            format!("extensions: # none\n{WRITTEN}b: 1\n")
        );
        assert_eq!(added("---\nextensions:").unwrap(), format!("---\nextensions:\n{WRITTEN}"));
        let only = format!("extensions:\n{WRITTEN}b: 1\n");
        assert_eq!(remove(&only, "extensions", "haft").unwrap().unwrap(), "extensions: {}\nb: 1\n");
        assert_eq!(remove("a: 1\n", "extensions", "haft").unwrap(), None);
    }

    #[test]
    fn an_entry_that_is_there_is_replaced_where_it_stands() {
        let text = "extensions:\n    haft:\n        cmd: old\n        # gone\n        args:\n        - x\n\n    # b\n    b:\n        cmd: b";
        let new = added(text).unwrap();
        assert!(new.starts_with("extensions:\n    haft:\n      enabled: true\n"), "{new}");
        assert!(new.ends_with("      envs: {}\n\n    # b\n    b:\n        cmd: b"), "{new}");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "extensions: {a: {}}\n",
            "extensions:\n- a\n",
            "extensions:\n  - a\n",
            "extensions:\n\ta: 1\n",
            "extensions:\n    a: 1\n  b: 2\n",
            "extensions:\n  a: \"x\n    y\"\n",
            "a: [1,\n2]\nextensions:\n",
            "a: 'x\nextensions: y'\n",
            "extensions:\n  a: 1\nextensions:\n  b: 1\n",
            "a: 1\n---\nextensions:\n",
            "extensions: &x\n  a: 1\n",
            "extensions:\n  haft: *x\n",
            "extensions:\n  haft:\n    <<: *x\n",
            "- a\n",
            "{extensions: {}}\n",
            "just words\n",
            "? a\n: b\n",
        ] {
            assert!(added(text).is_err(), "{text:?} became {:?}", added(text));
        }
        assert!(added("a: 1\nb: [\n").is_err_and(|why| why.starts_with("line 2: ")));
    }

    #[test]
    fn texts_are_never_taken_for_something_else() {
        for (text, meant) in [
            ("no", "'no'"),
            ("12", "'12'"),
            ("it's", "'it''s'"),
            ("", "''"),
            ("- x", "'- x'"),
            ("/usr/bin/haft", "/usr/bin/haft"),
            ("a\nb\u{85}", "\"a\\nb\\u0085\""),
        ] {
            assert_eq!(scalar(text), meant);
        }
    }
}
