//! What a server may do: read the workspace, and what its entry grants. It gets no keys.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::fixture::mcp_servers::{ServerFixture, and, everything, filesystem, hostile, memory};
use crate::fixture::stdio_client::ServedClient;

#[test]
fn a_server_changes_nothing_unless_it_may_and_then_it_can_be_undone() {
    let fixture = ServerFixture::with(&[]);
    fixture.mcp.cli.write("letter.txt", "Dear Ann,\n");
    let letter = fixture.mcp.path("letter.txt");
    let (read, write) = (json!({"path": letter}), json!({"path": letter, "content": "Dear Bob,\n"}));
    let entry = filesystem(fixture.mcp.cli.root());

    fixture.own(&[("files", entry.clone())]);
    assert_eq!(fixture.ask("files", "read_text_file", &read)["content"], "Dear Ann,\n");
    let refused = fixture.ask("files", "write_file", &write);
    assert!(refused["content"].as_str().unwrap().contains("EACCES"), "{refused}");
    assert_eq!(fixture.mcp.cli.read("letter.txt"), "Dear Ann,\n");

    fixture.own(&[("files", and(entry, &[("writes", json!(true))]))]);
    let wrote = fixture.ask("files", "write_file", &write);
    assert_eq!(wrote["is_error"], false, "{wrote}");
    assert_eq!(fixture.mcp.cli.read("letter.txt"), "Dear Bob,\n");
    let receipts = fixture.mcp.receipts();
    let changed: Vec<&Value> = receipts.iter().filter(|receipt| receipt["changes"] != json!([])).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!((&changed[0]["tool"], &changed[0]["state"]), (&json!("server"), &json!("completed")));
    assert_eq!(changed[0]["input"]["server"], "files");
    assert_eq!(changed[0]["changes"][0]["path"], letter);
    fixture.done(&["undo", "--yes"]);
    assert_eq!(fixture.mcp.cli.read("letter.txt"), "Dear Ann,\n");
}

#[test]
fn refusals_are_in_the_result_of_the_call_that_met_them_with_the_grant() {
    let fixture = ServerFixture::with(&[("snoop", hostile("snoop", "-"))]);
    let inside = fixture.mcp.path("new.txt");
    let write = |path: &str| json!({"write": [path], "read": ["/dev/null"]});
    let content = |said: &Value| said["content"].as_str().unwrap_or_default().to_owned();
    let config = fixture.mcp.cli.config();

    let said = content(&fixture.ask("snoop", "snoop", &write(&inside)));
    let remedy = format!("; to allow it: writes = true for the server snoop in {}", config.display());
    assert!(said.contains(&format!("Refused: write {inside}")) && said.contains(&remedy), "{said}");

    // One server for several calls: each has its own refusals, repeated ones too.
    let mut client = ServedClient::start(fixture.command(&["mcp"]));
    client.initialize(&json!({}));
    let mut call = |path: &str| {
        let id =
            client.request("tools/call", &json!({"name": "mcp__snoop__snoop", "arguments": write(path)}));
        client.response(id)["result"]["content"].to_string()
    };
    for path in [inside.as_str(), "/etc/hostile", inside.as_str()] {
        let said = call(path);
        assert_eq!(said.matches("Refused: ").count(), 1, "{said}");
        assert!(said.contains(&format!("Refused: write {path}: ")), "{said}");
    }

    fixture.own(&[]);
    fixture.project(&[("snoop", hostile("snoop", "-"))]);
    fixture.done(&["mcp", "trust", "snoop", "--yes"]);
    let connect = json!({"write": ["/dev/null"], "read": ["/dev/null"], "connect": ["192.0.2.1:443"]});
    let said = content(&fixture.ask("snoop", "snoop", &connect));
    let expected = "Refused: connect 192.0.2.1:443: the network is not part of the scope; to allow it: haft mcp trust \
                    snoop --network 192.0.2.1";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_servers_own_file_is_where_it_may_write() {
    let fixture = ServerFixture::with(&[]);
    let entity =
        json!({"entities": [{"name": "Ann", "entityType": "person", "observations": ["writes letters"]}]});
    let inside = fixture.mcp.path("graph.jsonl");
    fixture.own(&[("memory", and(memory(&inside), &[("writes", json!(true))]))]);
    assert_eq!(fixture.ask("memory", "create_entities", &entity)["is_error"], false);
    let graph = fixture.ask("memory", "read_graph", &json!({}));
    assert!(graph["content"].as_str().unwrap().contains("writes letters"), "{graph}");
    fixture.done(&["undo", "--yes"]);
    assert!(!fixture.mcp.has("graph.jsonl"));

    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("graph.jsonl");
    fixture.own(&[("memory", and(memory(file.to_str().unwrap()), &[("writes", json!(true))]))]);
    let refused = fixture.ask("memory", "create_entities", &entity);
    assert!(refused["is_error"] == true && !file.exists(), "{refused}");
}

#[test]
fn server_gets_only_the_keys_that_its_entry_names() {
    let fixture = ServerFixture::with(&[]);
    let variables = json!({"LEVEL": "${TEST_LEVEL}", "TOKEN": "${TEST_TOKEN:-none}"});
    fixture.own(&[("everything", and(everything(), &[("env", variables)]))]);
    let mut command = fixture.command(&["mcp", "call", "everything", "get-env", "{}"]);
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

fn looks_around(fixture: &ServerFixture, port: u16) -> Value {
    let ledger = fixture.mcp.cli.home().join("ledger.db");
    let config = fixture.mcp.cli.config();
    let looked = json!({
        "connect": [format!("127.0.0.1:{port}")],
        "write": [fixture.mcp.path("new.txt"), "/etc/hostile", "/var/hostile"],
        "read": [fixture.mcp.path("letter.txt"), ledger, config],
    });
    let said = fixture.ask("snoop", "snoop", &looked);
    let (seen, _refusals) = said["content"].as_str().unwrap_or_default().split_once('\n').unwrap_or_default();
    serde_json::from_str(seen).unwrap_or(said)
}

#[test]
fn a_server_reaches_nothing_and_reads_no_secrets_unless_it_may() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let fixture = ServerFixture::with(&[]);
    fixture.mcp.cli.write("letter.txt", "Dear Ann,\n");
    fixture.own(&[("snoop", hostile("snoop", "-"))]);
    let seen = looks_around(&fixture, port);
    assert_eq!(seen["connected"], seen["listened"], "it reaches only itself: {seen}");
    assert_eq!(seen["wrote"], json!([]), "{seen}");
    assert_eq!(seen["read"], json!([fixture.mcp.path("letter.txt")]), "{seen}");
    let own = seen["listened"].as_array().unwrap().len() + 1;
    let open = seen["descriptors"].as_array().unwrap().len();
    assert_eq!(open, own, "its listener and its look at the list, and nothing of Haft's: {seen}");

    let granted = [("writes", json!(true)), ("network", json!("all"))];
    fixture.own(&[("snoop", and(hostile("snoop", "-"), &granted))]);
    let seen = looks_around(&fixture, port);
    assert!(seen["connected"].as_array().unwrap().contains(&json!(format!("127.0.0.1:{port}"))), "{seen}");
    assert_eq!(seen["wrote"], json!([fixture.mcp.path("new.txt")]), "{seen}");
    assert_eq!(seen["read"], json!([fixture.mcp.path("letter.txt")]), "{seen}");
}
