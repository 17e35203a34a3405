//! How servers come and go: when they are needed and not before, again when they were lost, and never longer than Haft.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::peers::stage::until;
use crate::peers::visitor::{MODERN, PYTHON, TYPESCRIPT_1, text};
use crate::rack::{Rack, and, hostile, kill, processes};

fn echo() -> Value {
    json!({"text": "hi"})
}

#[test]
fn a_server_that_fails_is_a_warning_with_its_last_words_and_the_others_work() {
    let rack = Rack::with(&[
        ("bad", hostile("die-at-start", "-")),
        ("good", hostile("good", "-")),
        ("nowhere", json!({"command": "/nowhere/program"})),
    ]);
    let tools = rack.haft(&["tools"]);
    assert_eq!(tools.code, 0, "{}", tools.stderr);
    assert!(
        tools.stdout.contains("mcp__good__echo") && !tools.stdout.contains("mcp__bad"),
        "{}",
        tools.stdout
    );
    for words in [
        "the server bad",
        "exit status 3",
        "the licence has expired",
        "the server nowhere",
        "/nowhere/program",
    ] {
        assert!(tools.stderr.contains(words), "{words}: {}", tools.stderr);
    }
    assert_eq!(rack.call("mcp__good__echo", &echo())["content"], "hi");
    let failed = rack.call("mcp__bad__echo", &echo());
    assert_eq!(failed["error_kind"], "execution_failed", "{failed}");
    assert!(failed["content"].as_str().unwrap().contains("the licence has expired"), "{failed}");
    let listed = rack.call("ListMcpResources", &json!({}));
    assert!(listed["content"].as_str().unwrap().contains("memo://hello"), "{listed}");

    let steps = json!([{"list": "tools"}, {"call": "mcp__good__echo", "arguments": echo()}, {"call": "mcp__bad__echo"}]);
    let ran = PYTHON.over_stdio(&rack.stage, &[], None, &steps).output().unwrap();
    let visit = PYTHON.read(&ran);
    let notes = String::from_utf8_lossy(&ran.stderr);
    assert!(notes.contains("the licence has expired"), "{notes}");
    assert_eq!(notes.matches("the licence has expired").count(), 1, "once is enough: {notes}");
    assert_eq!(text(&visit.steps[1]), "hi");
    assert!(text(&visit.steps[2]).contains("the licence has expired"), "{}", visit.steps[2]);
}

#[test]
fn a_server_with_neither_command_nor_address_is_left_out_with_a_warning() {
    let rack = Rack::with(&[("empty", json!({"args": ["x"]})), ("good", hostile("good", "-"))]);
    let tools = rack.haft(&["tools"]);
    assert!(tools.code == 0 && tools.stdout.contains("mcp__good__echo"), "{}", tools.stderr);
    assert!(
        tools.stderr.contains("\"empty\"") && tools.stderr.contains("neither a command nor a url"),
        "{}",
        tools.stderr
    );
}

#[test]
fn a_server_that_says_nothing_keeps_nobody_waiting_who_wants_another() {
    let rack = Rack::with(&[("silent", hostile("silent-always", "-")), ("good", hostile("good", "-"))]);
    assert_eq!(rack.call("mcp__good__echo", &echo())["content"], "hi");
    let starts = rack.stage.receipts();
    let started: Vec<&Value> = starts.iter().filter(|receipt| receipt["tool"] == "server").collect();
    assert_eq!(started.len(), 1, "only the one that is needed: {started:?}");
    assert_eq!(started[0]["input"]["server"], "good");
}

#[test]
fn none_of_fifty_servers_is_started_before_it_is_needed() {
    let rack = Rack::with(&[]);
    let mark = rack.mark();
    let names: Vec<String> = (0..50).map(|at| format!("s{at}")).collect();
    let entries: Vec<(&str, Value)> =
        names.iter().map(|name| (name.as_str(), hostile("good", &mark))).collect();
    rack.own(&entries);
    rack.stage.house.write("letter.txt", "Dear Ann,\n");
    let letter = rack.stage.path("letter.txt");
    let read = rack.call("Read", &json!({"file_path": letter}));
    assert!(read["content"].as_str().unwrap().contains("Dear Ann,"), "{read}");
    let receipts = rack.stage.receipts();
    let started: Vec<&Value> = receipts.iter().filter(|receipt| receipt["tool"] == "server").collect();
    assert!(started.is_empty() && processes(&mark).is_empty(), "who is started has a receipt: {started:?}");
    assert_eq!(rack.call("mcp__s7__echo", &echo())["content"], "hi");
    let receipts = rack.stage.receipts();
    let started: Vec<&Value> = receipts.iter().filter(|receipt| receipt["tool"] == "server").collect();
    assert_eq!(started.len(), 1, "only the one that is needed: {started:?}");
    assert_eq!(started[0]["input"]["server"], "s7");
    assert!(processes(&mark).is_empty(), "and it ends with its call");
}

#[test]
fn a_server_that_was_killed_is_there_again_for_the_next_call() {
    let rack = Rack::with(&[]);
    let mark = rack.mark();
    rack.own(&[("good", hostile("good", &mark))]);
    let steps = json!([
        {"call": "mcp__good__echo", "arguments": echo()},
        {"call": "Bash", "arguments": {"command": "touch ready; until [ -e go ]; do sleep 0.02; done"}},
        {"call": "mcp__good__echo", "arguments": {"text": "again"}},
    ]);
    let mut command = TYPESCRIPT_1.over_stdio(&rack.stage, &[], None, &steps);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the server has answered", || rack.stage.has("ready"));
    let [server] = processes(&mark)[..] else { panic!("there is one server: {:?}", processes(&mark)) };
    kill(server);
    until("its end is on its receipt", || {
        let receipts = rack.stage.receipts();
        receipts.iter().any(|receipt| receipt["tool"] == "server" && receipt["state"] == "failed")
    });
    rack.stage.house.write("go", "");
    let visit = TYPESCRIPT_1.read(&child.wait_with_output().unwrap());
    assert_eq!(text(&visit.steps[2]), "again", "{}", visit.steps[2]);
    assert!(processes(&mark).is_empty(), "and nothing is left when the client has gone");
}

#[test]
fn a_server_that_dies_in_a_call_fails_that_call_and_is_asked_nothing_twice() {
    let rack = Rack::with(&[]);
    std::fs::create_dir(rack.stage.path("state")).unwrap();
    let entry = and(hostile("die-mid-call", &rack.stage.path("state")), &[("writes", json!(true))]);
    rack.own(&[("dying", entry)]);
    let failed = rack.call("mcp__dying__echo", &echo());
    assert_eq!(failed["error_kind"], "execution_failed", "{failed}");
    assert!(failed["content"].as_str().unwrap().contains("exit status 3"), "{failed}");
    let starts = rack.stage.house.read("state/starts");
    assert_eq!(starts.lines().count(), 1, "whoever was asked once is not asked again");
}

/// `haft mcp` as a process of ours, with one request on its way; the caller ends it.
fn holding(rack: &Rack) -> std::process::Child {
    let mut child = rack.command(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "mcp__good__echo", "arguments": echo(), "_meta": meta,
    }});
    writeln!(child.stdin.as_mut().unwrap(), "{call}").unwrap();
    let mut answer = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut answer).unwrap();
    assert!(answer.contains("\"hi\""), "{answer}");
    child
}

#[test]
fn haft_killed_leaves_no_server_behind() {
    let rack = Rack::with(&[]);
    let mark = rack.mark();
    rack.own(&[("good", hostile("grandchild-double-fork", &mark))]);
    let mut haft = holding(&rack);
    assert!(!processes(&mark).is_empty());
    kill(haft.id());
    haft.wait().unwrap();
    until("the server has ended", || processes(&mark).is_empty());
    let receipts = rack.stage.receipts();
    let server = receipts.iter().find(|receipt| receipt["tool"] == "server").unwrap();
    assert_eq!(server["state"], "interrupted", "{server}");
}

#[test]
fn a_server_takes_its_leave_when_the_client_does() {
    let rack = Rack::with(&[]);
    let mark = rack.mark();
    rack.own(&[("good", hostile("good", &mark))]);
    let mut haft = holding(&rack);
    drop(haft.stdin.take());
    assert!(haft.wait().unwrap().success());
    assert!(processes(&mark).is_empty());
    let receipts = rack.stage.receipts();
    let server = receipts.iter().find(|receipt| receipt["tool"] == "server").unwrap();
    assert_eq!(server["state"], "completed", "it was asked, not forced: {server}");
}
