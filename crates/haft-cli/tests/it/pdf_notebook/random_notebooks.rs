//! Any edit of any notebook, however it is written: it stays valid, and the rest of it stays the same byte for byte.

use haft::{Value, json};

use crate::fixture::random::TestRng;
use crate::fixture::runtime::RuntimeFixture;

const ROUNDS: usize = 300;
const SOURCES: [&str; 6] = ["", "x", "a\nb\n", "\"quotes\" \\ and ]}, {", "日本\n\u{1f600}\t", "\n\n"];

fn cell(rng: &mut TestRng, place: usize, minor: usize) -> Value {
    let kind = ["code", "markdown", "raw"][rng.below(3)];
    let source = SOURCES[rng.below(6)];
    let mut cell = json!({"cell_type": kind, "metadata": {"place": place, "x": SOURCES[rng.below(6)]}});
    if minor >= 5 {
        cell["id"] = json!(format!("id{place}"));
    }
    cell["source"] = if rng.below(3) == 0 {
        json!(source)
    } else {
        json!(source.split_inclusive('\n').collect::<Vec<_>>())
    };
    if kind == "code" {
        cell["execution_count"] = json!(place);
        cell["outputs"] =
            json!([{"name": "stdout", "output_type": "stream", "text": [SOURCES[rng.below(6)]]}]);
    }
    if rng.below(2) == 0 {
        // The other order of the keys.
        let members: Vec<(String, Value)> = cell.as_object().unwrap().clone().into_iter().rev().collect();
        cell = Value::Object(members.into_iter().collect());
    }
    cell
}

/// The notebook as text, in one of the ways that programs write JSON.
fn written(notebook: &Value, rng: &mut TestRng) -> String {
    let indent = [" ", "  ", "\t"][rng.below(3)];
    let text = if rng.below(4) == 0 {
        notebook.to_string()
    } else {
        let mut bytes = Vec::new();
        let style = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
        let mut writer = serde_json::Serializer::with_formatter(&mut bytes, style);
        serde::Serialize::serialize(notebook, &mut writer).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let text = if rng.below(4) == 0 { text.replace('\n', "\r\n") } else { text };
    if rng.below(2) == 0 { text + "\n" } else { text }
}

/// The bytes of each cell as they stand in the file.
fn pieces(text: &str) -> Vec<String> {
    let cells = text.find("\"cells\"").unwrap();
    let mut rest = text[cells..].split_once('[').unwrap().1;
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t', '\r', '\n']);
        if rest.starts_with(']') {
            return found;
        }
        let mut parser = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        parser.next().unwrap().unwrap();
        let (cell, behind) = rest.split_at(parser.byte_offset());
        found.push(cell.to_owned());
        rest = behind;
    }
}

fn is_valid(cell: &Value, minor: usize) -> bool {
    let has = |key: &str| cell.get(key).is_some();
    let code = cell["cell_type"] == "code";
    let text = cell["source"].is_string()
        || cell["source"].as_array().is_some_and(|lines| lines.iter().all(Value::is_string));
    let known = ["cell_type", "metadata", "source", "id", "execution_count", "outputs", "attachments"];
    cell.as_object().unwrap().keys().all(|key| known.contains(&key.as_str()))
        && text
        && cell["metadata"].is_object()
        && has("id") == (minor >= 5)
        && has("execution_count") == code
        && has("outputs") == code
}

#[tokio::test]
async fn edits_keep_a_notebook_valid_and_all_else_equal() {
    let fixture = RuntimeFixture::of(haft::claude());
    let mut rng = TestRng(4);
    for round in 0..ROUNDS {
        let minor = rng.below(6);
        let count = rng.below(5);
        let cells: Vec<Value> = (0..count).map(|place| cell(&mut rng, place, minor)).collect();
        let notebook = json!({"cells": cells, "metadata": {"k": SOURCES[rng.below(6)]}, "nbformat": 4, "nbformat_minor": minor});
        let before = written(&notebook, &mut rng);
        let path = fixture.file("n.ipynb", &before);
        let place = rng.below(count.max(1));
        let id = if minor >= 5 { format!("id{place}") } else { format!("cell-{place}") };
        let source = SOURCES[rng.below(6)];
        let mode = if count == 0 { "insert" } else { ["replace", "insert", "delete"][rng.below(3)] };
        let mut arguments = json!({"notebook_path": path, "new_source": source, "edit_mode": mode});
        let first = count == 0 || mode == "insert" && rng.below(3) == 0;
        if !first {
            arguments["cell_id"] = json!(id);
        }
        let to = ["code", "markdown"][rng.below(2)];
        if mode == "insert" || rng.below(2) == 0 {
            arguments["cell_type"] = json!(to);
        }
        let said = fixture.text("NotebookEdit", arguments.clone()).await;
        let after = fixture.read("n.ipynb");
        let told = format!("round {round}: {arguments}\n{said}\n{before}\n-----\n{after}");

        let value: Value = serde_json::from_str(&after).expect(&told);
        let now = value["cells"].as_array().unwrap();
        assert!(now.iter().all(|cell| is_valid(cell, minor)), "{told}");
        let ids: std::collections::HashSet<_> = now.iter().filter_map(|cell| cell["id"].as_str()).collect();
        assert!(minor < 5 || ids.len() == now.len(), "{told}");
        let mut expected = notebook.clone();
        expected["cells"] = value["cells"].clone();
        assert_eq!(value, expected, "{told}");

        let (mut old, mut new) = (pieces(&before), pieces(&after));
        let at = if first { 0 } else { place + usize::from(mode == "insert") };
        match mode {
            "replace" => drop((old.remove(at), new.remove(at))),
            "insert" => drop(new.remove(at)),
            _ => drop(old.remove(at)),
        }
        assert_eq!(old, new, "{told}");
        if mode != "delete" {
            let lines = &now[at]["source"];
            let joined = lines.as_str().map_or_else(
                || lines.as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect::<String>(),
                str::to_owned,
            );
            assert_eq!(joined, source, "{told}");
            assert!(now[at]["cell_type"] != "code" || now[at]["outputs"] == json!([]), "{told}");
            let end = |text: &str| text[text.rfind("\"metadata\"").unwrap()..].to_owned();
            assert_eq!(end(&after), end(&before), "{told}");
        }
    }
}
