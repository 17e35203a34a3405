//! Results over MCP: structured content is a whole result or is not there, because some clients show a model nothing else.

use crate::fixture::cli::CliFixture;
use serde_json::{Value, json};

/// A server with one tool, whose result is a failure if it is asked for one.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    ask = json.loads(line)
    if "id" not in ask:
        continue
    answer = {"jsonrpc": "2.0", "id": ask["id"]}
    if ask["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "sky", "version": "1"}}
    elif ask["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": "weather", "description": "Tells the weather.", "inputSchema": {
            "type": "object", "properties": {"plain": {"type": "boolean"}}}}]}
    elif ask["method"] == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "sunny"}]}
        if not ask["params"].get("arguments", {}).get("plain"):
            answer["result"]["structuredContent"] = {"sky": "blue"}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"#;

/// What `haft mcp` with these flags answers to `tools/list` and then to each call.
fn served(cli: &CliFixture, flags: &[&str], calls: &[(&str, Value)]) -> Vec<Value> {
    let request = |id: usize, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    let mut lines = vec![
        request(0, "initialize", hello),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        request(1, "tools/list", json!({})),
    ];
    lines.extend((2..).zip(calls).map(|(id, (tool, arguments))| {
        request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
    }));
    let ran = cli.pipe(&[&["mcp"], flags].concat(), (lines.join("\n") + "\n").as_bytes());
    let answers: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (1..calls.len() + 2)
        .map(|id| {
            let answer = answers.iter().find(|answer| answer["id"] == id);
            answer.unwrap_or_else(|| unreachable!("no answer to {id}: {} {}", ran.stdout, ran.stderr))["result"]
                .clone()
        })
        .collect()
}

fn tool<'a>(list: &'a Value, name: &str) -> &'a Value {
    list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()
}

/// Checks that the text and the structured content are one value, which fits the declared schema.
fn agrees(list: &Value, name: &str, result: &Value) {
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, result["structuredContent"].to_string(), "{name}");
    let misfit =
        jsonschema::draft202012::validate(&tool(list, name)["outputSchema"], &result["structuredContent"]);
    assert!(misfit.is_ok(), "{name}: {result}");
    assert!(result["_meta"].get("haft/facts").is_none(), "{result}");
}

#[test]
fn facts_beside_the_text_are_no_structured_content() {
    let cli = CliFixture::new();
    cli.write("a.txt", "one\n");
    let path = cli.path("a.txt");
    let read = |path: &std::path::Path| ("Read", json!({"file_path": path}));
    let answers = served(&cli, &["--dialect", "claude"], &[read(&path), read(&cli.path("none"))]);
    let [list, done, failed] = answers.as_slice() else { unreachable!("{answers:?}") };
    assert!(tool(list, "Read").get("outputSchema").is_none());
    assert!(done.get("structuredContent").is_none(), "{done}");
    assert_eq!(done["_meta"]["haft/facts"]["file"]["filePath"], json!(path));
    assert!(done["_meta"]["haft/call"].is_i64(), "{done}");
    assert!(done["content"][0]["text"].as_str().unwrap().contains("one"));
    assert_eq!((&failed["isError"], failed.get("structuredContent")), (&json!(true), None));
}

#[test]
fn a_result_that_is_one_value_is_text_and_structured_content_alike() {
    let cli = CliFixture::new();
    cli.write("a.txt", "one\n");
    cli.write("long.txt", &"long ".repeat(40_000));
    let read = |path: &str| ("read_file", json!({"path": path}));
    let slow = ("exec_shell", json!({"command": "echo begun; sleep 60", "timeout": 1}));
    let calls = [read("a.txt"), read("long.txt"), read("none"), slow];
    let answers = served(&cli, &["--dialect", "clawft", "--permission-mode", "bypassPermissions"], &calls);
    let [list, done, cut, failed, ended] = answers.as_slice() else { unreachable!("{answers:?}") };
    assert_eq!(done["structuredContent"], json!({"content": "one\n"}));
    agrees(list, "read_file", done);
    assert!(cut.to_string().contains("truncated, original size: 200000 bytes"));
    agrees(list, "read_file", cut);
    for failed in [failed, ended] {
        assert_eq!((&failed["isError"], failed.get("structuredContent")), (&json!(true), None), "{failed}");
    }
    assert_eq!(ended["_meta"]["haft/facts"]["stdout"], "begun\n", "{ended}");
}

#[test]
fn a_cut_list_and_the_log_fit_their_schemas() {
    let cli = CliFixture::new();
    for number in 0..700 {
        cli.write(&format!("{number}-{}", "x".repeat(100)), "");
    }
    let calls = [("list_directory", json!({"path": "."}))];
    let answers = served(&cli, &["--dialect", "clawft"], &calls);
    assert_eq!(
        answers[1]["structuredContent"]["entries"].as_array().unwrap().last().unwrap()["original_count"],
        700
    );
    agrees(&answers[0], "list_directory", &answers[1]);

    let answers = served(&cli, &["--dialect", "clawft", "--ledger-tools"], &[("haft_log", json!({}))]);
    assert_eq!(answers[1]["structuredContent"]["calls"][0]["tool"], "list_directory");
    agrees(&answers[0], "haft_log", &answers[1]);
}

#[test]
fn a_servers_own_structured_content_goes_through() {
    let cli = CliFixture::new();
    cli.write("sky.py", SERVER);
    let sky = json!({"command": "python3", "args": [cli.path("sky.py")]});
    let servers = json!({"mcpServers": {"sky": sky}}).to_string();
    let asked = |arguments: &str| -> Value {
        let args = ["call", "mcp__sky__weather", arguments, "--mcp-config", &servers, "--format", "mcp"];
        let ran = cli.haft(&args);
        assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let sunny = json!([{"type": "text", "text": "sunny"}]);
    let both = json!({"content": sunny, "isError": false, "structuredContent": {"sky": "blue"}});
    assert_eq!(asked("{}"), both);
    assert_eq!(asked(r#"{"plain": true}"#), json!({"content": sunny, "isError": false}));
}

#[test]
fn a_printed_result_is_in_the_same_form() {
    let cli = CliFixture::new();
    cli.write("a.txt", "one\n");
    let printed = |dialect: &str, tool: &str, arguments: Value| -> Value {
        let ran = cli.haft(&["call", "--dialect", dialect, tool, &arguments.to_string(), "--format", "mcp"]);
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let facts = printed("claude", "Read", json!({"file_path": cli.path("a.txt")}));
    assert!(facts.get("structuredContent").is_none() && facts["_meta"]["haft/facts"].is_object(), "{facts}");
    let value = printed("clawft", "read_file", json!({"path": "a.txt"}));
    assert_eq!(value["structuredContent"], json!({"content": "one\n"}));
    assert!(value.get("_meta").is_none(), "{value}");
    let failed = printed("clawft", "read_file", json!({"path": "none"}));
    assert_eq!((&failed["isError"], failed.get("structuredContent")), (&json!(true), None));
}

#[test]
fn whatever_was_asked_before_the_clients_last_word_is_answered() {
    let cli = CliFixture::new();
    cli.write("a.txt", &"line\n".repeat(20));
    let read = ("Read", json!({"file_path": cli.path("a.txt")}));
    // Two threads may answer side by side, and the last to have something to say is not always the one that reads on.
    for round in 0..60 {
        served(&cli, &[], &vec![read.clone(); 20 + round]);
    }
}
