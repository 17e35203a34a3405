//! What a server may do: look at the workspace, and what its entry grants beyond. Nobody's keys come along.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::rack::{Rack, and, everything, filesystem, hostile, memory};

#[test]
fn a_server_changes_nothing_unless_it_may_and_then_it_can_be_undone() {
    let rack = Rack::with(&[]);
    rack.stage.house.write("letter.txt", "Dear Ann,\n");
    let letter = rack.stage.path("letter.txt");
    let (read, write) = (json!({"path": letter}), json!({"path": letter, "content": "Dear Bob,\n"}));
    let entry = filesystem(rack.stage.house.root());

    rack.own(&[("files", entry.clone())]);
    assert_eq!(rack.ask("files", "read_text_file", &read)["content"], "Dear Ann,\n");
    let refused = rack.ask("files", "write_file", &write);
    assert!(refused["content"].as_str().unwrap().contains("EACCES"), "{refused}");
    assert_eq!(rack.stage.house.read("letter.txt"), "Dear Ann,\n");

    rack.own(&[("files", and(entry, &[("writes", json!(true))]))]);
    let wrote = rack.ask("files", "write_file", &write);
    assert_eq!(wrote["is_error"], false, "{wrote}");
    assert_eq!(rack.stage.house.read("letter.txt"), "Dear Bob,\n");
    let receipts = rack.stage.receipts();
    let changed: Vec<&Value> = receipts.iter().filter(|receipt| receipt["changes"] != json!([])).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!((&changed[0]["tool"], &changed[0]["state"]), (&json!("server"), &json!("completed")));
    assert_eq!(changed[0]["input"]["server"], "files");
    assert_eq!(changed[0]["changes"][0]["path"], letter);
    rack.done(&["undo", "--yes"]);
    assert_eq!(rack.stage.house.read("letter.txt"), "Dear Ann,\n");
}

#[test]
fn a_servers_own_file_is_where_it_may_write() {
    let rack = Rack::with(&[]);
    let entity =
        json!({"entities": [{"name": "Ann", "entityType": "person", "observations": ["writes letters"]}]});
    let inside = rack.stage.path("graph.jsonl");
    rack.own(&[("memory", and(memory(&inside), &[("writes", json!(true))]))]);
    assert_eq!(rack.ask("memory", "create_entities", &entity)["is_error"], false);
    let graph = rack.ask("memory", "read_graph", &json!({}));
    assert!(graph["content"].as_str().unwrap().contains("writes letters"), "{graph}");
    rack.done(&["undo", "--yes"]);
    assert!(!rack.stage.has("graph.jsonl"));

    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("graph.jsonl");
    rack.own(&[("memory", and(memory(file.to_str().unwrap()), &[("writes", json!(true))]))]);
    let refused = rack.ask("memory", "create_entities", &entity);
    assert!(refused["is_error"] == true && !file.exists(), "{refused}");
}

#[test]
fn nobodys_keys_come_along_but_what_the_entry_names() {
    let rack = Rack::with(&[]);
    let variables = json!({"LEVEL": "${TEST_LEVEL}", "TOKEN": "${TEST_TOKEN:-none}"});
    rack.own(&[("everything", and(everything(), &[("env", variables)]))]);
    let mut command = rack.command(&["mcp", "call", "everything", "get-env", "{}"]);
    for name in
        ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY"]
    {
        command.env(name, "s3cr3t");
    }
    let ran = command.env("TEST_LEVEL", "debug").output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    let seen: Value = serde_json::from_str(&said).unwrap_or_default();
    assert!(!said.contains("s3cr3t"), "{said}");
    assert_eq!((&seen["LEVEL"], &seen["TOKEN"]), (&json!("debug"), &json!("none")), "{said}");
    assert!(seen["PATH"].is_string() && seen.get("TEST_LEVEL").is_none(), "{said}");
    assert!(seen.get("HAFT_HOME").is_none() && seen.get("HAFT_CONFIG").is_none(), "{said}");
}

fn looks_around(rack: &Rack, port: u16) -> Value {
    let ledger = rack.stage.house.home().join("ledger.db");
    let config = rack.stage.house.config();
    let looked = json!({
        "connect": [format!("127.0.0.1:{port}")],
        "write": [rack.stage.path("new.txt"), "/etc/hostile", "/var/hostile"],
        "read": [rack.stage.path("letter.txt"), ledger, config],
    });
    let said = rack.ask("snoop", "snoop", &looked);
    serde_json::from_str(said["content"].as_str().unwrap_or_default()).unwrap_or(said)
}

#[test]
fn a_server_reaches_nothing_and_reads_no_secrets_unless_it_may() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let rack = Rack::with(&[]);
    rack.stage.house.write("letter.txt", "Dear Ann,\n");
    rack.own(&[("snoop", hostile("snoop", "-"))]);
    let seen = looks_around(&rack, port);
    assert_eq!(seen["connected"], seen["listened"], "it reaches itself and nobody else: {seen}");
    assert_eq!(seen["wrote"], json!([]), "{seen}");
    assert_eq!(seen["read"], json!([rack.stage.path("letter.txt")]), "{seen}");
    let own = seen["listened"].as_array().unwrap().len() + 1;
    let open = seen["descriptors"].as_array().unwrap().len();
    assert_eq!(open, own, "its listener and its look at the list, and nothing of Haft's: {seen}");

    let granted = [("writes", json!(true)), ("network", json!("all"))];
    rack.own(&[("snoop", and(hostile("snoop", "-"), &granted))]);
    let seen = looks_around(&rack, port);
    assert!(seen["connected"].as_array().unwrap().contains(&json!(format!("127.0.0.1:{port}"))), "{seen}");
    assert_eq!(seen["wrote"], json!([rack.stage.path("new.txt")]), "{seen}");
    assert_eq!(seen["read"], json!([rack.stage.path("letter.txt")]), "{seen}");
}
