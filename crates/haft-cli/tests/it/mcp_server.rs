//! `haft mcp` as a server: which tools it offers and where they work, whatever directory a client starts it in.

use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::cli::CliFixture;
use crate::fixture::stdio_client::ServedClient;

/// Elicitation lets a client ask its user.
fn asking() -> Value {
    json!({"elicitation": {}})
}

fn client(cli: &CliFixture, flags: &[&str], capabilities: &Value) -> ServedClient {
    let mut client = ServedClient::start(cli.command(&[&["mcp"], flags].concat()));
    client.initialize(capabilities);
    client
}

fn names(client: &mut ServedClient) -> Vec<String> {
    let listed = client.result("tools/list", &json!({}));
    listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn tools_are_offered_where_they_can_work() {
    let cli = CliFixture::new();
    let plain = [
        "Read",
        "Write",
        "Edit",
        "NotebookEdit",
        "Glob",
        "Grep",
        "Bash",
        "TaskOutput",
        "TaskStop",
        "WebFetch",
    ];
    assert_eq!(names(&mut client(&cli, &[], &json!({}))), plain);
    let with_questions = names(&mut client(&cli, &[], &asking()));
    assert!(with_questions.contains(&"AskUserQuestion".to_owned()), "{with_questions:?}");
    assert_eq!(names(&mut client(&cli, &["--tools", "Agent,TodoWrite"], &json!({}))), ["Agent", "TodoWrite"]);
    let mut command = cli.command(&["mcp"]);
    command.env("SEARXNG_URL", "http://127.0.0.1:9");
    let mut searching = ServedClient::start(command);
    searching.initialize(&json!({}));
    assert!(names(&mut searching).contains(&"WebSearch".to_owned()));
    let server = json!({"mcpServers": {"s": {"command": "/nonexistent/server"}}}).to_string();
    let with_server = names(&mut client(&cli, &["--mcp-config", &server], &json!({})));
    assert!(with_server.contains(&"ReadMcpResource".to_owned()), "{with_server:?}");
}

#[test]
fn tools_say_what_is_true_of_them() {
    let cli = CliFixture::new();
    let listed = client(&cli, &[], &json!({})).result("tools/list", &json!({}));
    let hints = |name: &str, listed: &Value| {
        let tool =
            listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap().clone();
        assert_eq!(tool["_meta"]["anthropic/alwaysLoad"], true, "{tool}");
        ["readOnlyHint", "destructiveHint", "openWorldHint"].map(|hint| tool["annotations"][hint] == true)
    };
    assert_eq!(hints("Read", &listed), [true, false, false]);
    assert_eq!(hints("Edit", &listed), [false, false, false], "an edit can be undone");
    assert_eq!(hints("Bash", &listed), [false, false, false], "so can a command");
    assert_eq!(hints("WebFetch", &listed), [true, false, true]);
    let open = client(&cli, &["--network", "all"], &json!({})).result("tools/list", &json!({}));
    assert_eq!(hints("Bash", &open), [false, true, true], "with network access it cannot");
}

#[test]
fn relative_paths_start_in_the_workspace_that_the_instructions_name() {
    let cli = CliFixture::new();
    let mut client = ServedClient::start(cli.command(&["mcp"]));
    let instructions = client.initialize(&json!({}))["instructions"].as_str().unwrap().to_owned();
    let workspace = std::fs::canonicalize(cli.root()).unwrap();
    assert!(instructions.contains(workspace.to_str().unwrap()), "{instructions}");
    let (failed, said) = client.call("Write", &json!({"file_path": "sub/a.txt", "content": "a\n"}));
    assert!(!failed, "{said}");
    assert_eq!(cli.read("sub/a.txt"), "a\n");
    let (failed, said) = client.call("Read", &json!({"file_path": "sub/a.txt"}));
    assert!(!failed && said.contains('a'), "{said}");
    let (failed, _) = client.call("Write", &json!({"file_path": "../b.txt", "content": ""}));
    assert!(failed, "a relative path leads no further than an absolute one");
}

/// A home with a project in it, in which the server is started.
struct HomeFixture {
    cli: CliFixture,
    user: TempDir,
}

impl HomeFixture {
    fn new() -> Self {
        let user = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(user.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(user.path().join(".dots/.git")).unwrap();
        Self { cli: CliFixture::new(), user }
    }

    fn command(&self) -> Command {
        let mut command = self.cli.command(&["mcp"]);
        command.current_dir(self.user.path()).env("HOME", self.user.path());
        command
    }

    fn path(&self, name: &str) -> String {
        std::fs::canonicalize(self.user.path()).unwrap().join(name).to_str().unwrap().to_owned()
    }
}

#[test]
fn server_started_at_home_works_in_the_project_of_the_first_absolute_path() {
    let fixture = HomeFixture::new();
    let mut client = ServedClient::start(fixture.command());
    let instructions = client.initialize(&json!({}))["instructions"].to_string();
    assert!(instructions.contains("first absolute path"), "{instructions}");
    assert!(names(&mut client).contains(&"Bash".to_owned()));
    let write = |path: &str| json!({"file_path": path, "content": "x"});
    for (tool, arguments) in [
        ("Bash", json!({"command": "touch here"})),
        ("Write", write("relative.txt")),
        ("Write", write(&fixture.path("loose.txt"))),
        ("Write", write(&fixture.path(".dots/rc"))),
        ("Write", write("/etc/passwd")),
    ] {
        let (failed, said) = client.call(tool, &arguments);
        assert!(failed && said.contains("no workspace yet"), "{arguments}: {said}");
    }
    let (failed, said) = client.call("Write", &write(&fixture.path("project/src/a.txt")));
    assert!(!failed, "{said}");
    let (failed, said) = client.call("Bash", &json!({"command": "pwd"}));
    assert!(!failed && said.trim() == fixture.path("project"), "{said}");
    let (failed, _) = client.call("Write", &write(&fixture.path("loose.txt")));
    assert!(failed, "the home is outside");
}

#[test]
fn roots_of_the_client_are_the_workspace() {
    let fixture = HomeFixture::new();
    let more = tempfile::tempdir().unwrap();
    let mut client = ServedClient::start(fixture.command());
    let instructions = client.initialize(&json!({"roots": {}}))["instructions"].to_string();
    assert!(instructions.contains("first root"), "{instructions}");
    let call = json!({"name": "Bash", "arguments": {"command": "pwd"}});
    let id = client.request("tools/call", &call);
    let asked = client.next();
    assert_eq!(asked["method"], "roots/list");
    let roots = json!([
        {"uri": format!("file://{}", fixture.path(""))},
        {"uri": format!("file://{}", fixture.path("project"))},
        {"uri": format!("file://{}", more.path().display()), "name": "more"},
    ]);
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots}}));
    let said = client.response(id)["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(said.trim(), fixture.path("project"), "the home is no workspace");
    let beside = more.path().join("b.txt").to_str().unwrap().to_owned();
    let (failed, said) = client.call("Write", &json!({"file_path": beside, "content": "b"}));
    assert!(!failed, "{said}");
}

#[test]
fn refusal_names_the_rule_when_the_client_declines_or_cannot_ask() {
    let cli = CliFixture::new();
    let mut client = client(&cli, &["--permission-mode", "default"], &asking());
    for answer in [
        json!({"result": {"action": "decline"}}),
        json!({"result": {"action": "cancel"}}),
        json!({"error": {"code": -32601, "message": "not here"}}),
    ] {
        let call = json!({"name": "Bash", "arguments": {"command": "touch a"}});
        let id = client.request("tools/call", &call);
        let mut message = client.next();
        assert_eq!(message["method"], "elicitation/create");
        let mut reply = answer.clone();
        (reply["jsonrpc"], reply["id"]) = (json!("2.0"), message["id"].take());
        client.send(&reply);
        let said = client.response(id)["result"]["content"][0]["text"].to_string();
        assert!(said.contains("To allow it: --allowedTools 'Bash(touch a)'"), "{said}");
    }
}

#[test]
fn reads_wait_for_neither_a_command_nor_an_approval() {
    let cli = CliFixture::new();
    cli.write("a.txt", "text\n");
    let mut client = client(&cli, &["--allowedTools", "Bash(until *)"], &asking());
    let waiting =
        json!({"name": "Bash", "arguments": {"command": "until [ -e go ]; do sleep 0.02; done; echo gone"}});
    let commands = [client.request("tools/call", &waiting), client.request("tools/call", &waiting)];
    let unanswered = json!({"name": "WebFetch", "arguments": {"url": "https://example.org/", "prompt": "x"}});
    let asked = client.request("tools/call", &unanswered);
    let reads: Vec<u64> = (0..20)
        .map(|_| client.request("tools/call", &json!({"name": "Read", "arguments": {"file_path": "a.txt"}})))
        .collect();
    let mut done = Vec::new();
    while !reads.iter().all(|id| done.contains(id)) {
        let message = client.next();
        if message.get("method").is_none() {
            done.push(message["id"].as_u64().unwrap());
        }
    }
    assert!(!commands.iter().any(|id| done.contains(id)) && !done.contains(&asked), "{done:?}");
    cli.write("go", "");
    let mut left = commands.to_vec();
    while !left.is_empty() {
        let message = client.next();
        left.retain(|id| message["id"] != *id || message.get("method").is_some());
    }
}

#[test]
fn silent_call_shows_that_it_is_alive() {
    let cli = CliFixture::new();
    let mut client = client(&cli, &[], &json!({}));
    let command = "until [ -e go ]; do sleep 0.02; done; echo gone";
    let id = client.request(
        "tools/call",
        &json!({
            "name": "Bash", "arguments": {"command": command}, "_meta": {"progressToken": "t"},
        }),
    );
    for step in [1, 2] {
        let message = client.next();
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(
            (&message["params"]["progressToken"], &message["params"]["progress"]),
            (&json!("t"), &json!(step))
        );
    }
    cli.write("go", "");
    assert_eq!(client.response(id)["result"]["content"][0]["text"], "gone\n");
}

/// Parameters of a request of the newest revision, from a client that understands tasks.
fn with_tasks(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    params
}

#[test]
fn long_call_becomes_a_task_for_clients_that_understand_tasks() {
    let cli = CliFixture::new();
    let mut client = ServedClient::start(cli.command(&["mcp"]));
    let discovered = client.result("server/discover", &with_tasks(json!({})));
    assert!(
        discovered["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object(),
        "{discovered}"
    );
    let call = |command: &str| with_tasks(json!({"name": "Bash", "arguments": {"command": command}}));
    let short = client.result("tools/call", &call("echo short"));
    assert_eq!((&short["resultType"], &short["content"][0]["text"]), (&json!("complete"), &json!("short\n")));
    let waiting = call("until [ -e go ]; do sleep 0.02; done; echo gone");
    let (first, second) =
        (client.request("tools/call", &waiting), client.request("tools/call", &call("sleep 1000")));
    let created = [client.response(first)["result"].clone(), client.response(second)["result"].clone()];
    let id = |at: usize| json!({"taskId": created[at]["taskId"]});
    assert_eq!((&created[0]["resultType"], &created[0]["status"]), (&json!("task"), &json!("working")));
    assert_eq!(client.result("tasks/get", &with_tasks(id(0)))["status"], "working");
    cli.write("go", "");
    let done = loop {
        let task = client.result("tasks/get", &with_tasks(id(0)));
        if task["status"] != "working" {
            break task;
        }
    };
    assert_eq!(
        (&done["status"], &done["result"]["content"][0]["text"]),
        (&json!("completed"), &json!("gone\n"))
    );
    client.result("tasks/cancel", &with_tasks(id(1)));
    assert_eq!(client.result("tasks/get", &with_tasks(id(1)))["status"], "cancelled");
}

#[test]
fn a_cancelled_call_takes_its_question_back() {
    let cli = CliFixture::new();
    let mut client = client(&cli, &["--permission-mode", "default"], &asking());
    let call = client.request("tools/call", &json!({"name": "Bash", "arguments": {"command": "touch made"}}));
    let question = client.next_of("elicitation/create");
    client.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call},
    }));
    let cancelled = client.next_of("notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"], "{cancelled}");
}
