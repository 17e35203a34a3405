//! How servers come and go: when they are needed and not before, again when they were lost, and never longer than Haft.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::fixture::mcp_servers::{ServerFixture, and, hostile, kill, processes};
use crate::fixture::peer_client::{PYTHON, STATELESS, TYPESCRIPT_1, text};
use crate::fixture::wait_until;

fn echo() -> Value {
    json!({"text": "hi"})
}

#[test]
fn a_server_that_fails_is_a_warning_with_its_last_words_and_the_others_work() {
    let fixture = ServerFixture::with(&[
        ("bad", hostile("die-at-start", "-")),
        ("good", hostile("good", "-")),
        ("nowhere", json!({"command": "/nowhere/program"})),
    ]);
    let tools = fixture.haft(&["tools"]);
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
    assert_eq!(fixture.call("mcp__good__echo", &echo())["content"], "hi");
    let failed = fixture.call("mcp__bad__echo", &echo());
    assert_eq!(failed["error_kind"], "execution_failed", "{failed}");
    assert!(failed["content"].as_str().unwrap().contains("the licence has expired"), "{failed}");
    let listed = fixture.call("ListMcpResources", &json!({}));
    assert!(listed["content"].as_str().unwrap().contains("memo://hello"), "{listed}");

    let steps = json!([{"list": "tools"}, {"call": "mcp__good__echo", "arguments": echo()}, {"call": "mcp__bad__echo"}]);
    let ran = PYTHON.over_stdio(&fixture.mcp, &[], None, &steps).output().unwrap();
    let run = PYTHON.read(&ran);
    let notes = String::from_utf8_lossy(&ran.stderr);
    assert!(notes.contains("the licence has expired"), "{notes}");
    assert_eq!(notes.matches("the licence has expired").count(), 1, "once is enough: {notes}");
    assert_eq!(text(&run.steps[1]), "hi");
    assert!(text(&run.steps[2]).contains("the licence has expired"), "{}", run.steps[2]);
}

#[test]
fn a_server_with_neither_command_nor_address_is_left_out_with_a_warning() {
    let fixture = ServerFixture::with(&[("empty", json!({"args": ["x"]})), ("good", hostile("good", "-"))]);
    let tools = fixture.haft(&["tools"]);
    assert!(tools.code == 0 && tools.stdout.contains("mcp__good__echo"), "{}", tools.stderr);
    assert!(
        tools.stderr.contains("\"empty\"") && tools.stderr.contains("neither a command nor a url"),
        "{}",
        tools.stderr
    );
}

#[test]
fn silent_server_does_not_delay_another() {
    let fixture =
        ServerFixture::with(&[("silent", hostile("silent-always", "-")), ("good", hostile("good", "-"))]);
    assert_eq!(fixture.call("mcp__good__echo", &echo())["content"], "hi");
    let starts = fixture.mcp.receipts();
    let started: Vec<&Value> = starts.iter().filter(|receipt| receipt["tool"] == "server").collect();
    assert_eq!(started.len(), 1, "only the one that is needed: {started:?}");
    assert_eq!(started[0]["input"]["server"], "good");
}

#[test]
fn none_of_fifty_servers_is_started_before_it_is_needed() {
    let fixture = ServerFixture::with(&[]);
    let mark = fixture.mark();
    let names: Vec<String> = (0..50).map(|at| format!("s{at}")).collect();
    let entries: Vec<(&str, Value)> =
        names.iter().map(|name| (name.as_str(), hostile("good", &mark))).collect();
    fixture.own(&entries);
    fixture.mcp.cli.write("letter.txt", "Dear Ann,\n");
    let letter = fixture.mcp.path("letter.txt");
    let read = fixture.call("Read", &json!({"file_path": letter}));
    assert!(read["content"].as_str().unwrap().contains("Dear Ann,"), "{read}");
    let receipts = fixture.mcp.receipts();
    let started: Vec<&Value> = receipts.iter().filter(|receipt| receipt["tool"] == "server").collect();
    assert!(started.is_empty() && processes(&mark).is_empty(), "who is started has a receipt: {started:?}");
    assert_eq!(fixture.call("mcp__s7__echo", &echo())["content"], "hi");
    let receipts = fixture.mcp.receipts();
    let started: Vec<&Value> = receipts.iter().filter(|receipt| receipt["tool"] == "server").collect();
    assert_eq!(started.len(), 1, "only the one that is needed: {started:?}");
    assert_eq!(started[0]["input"]["server"], "s7");
    assert!(processes(&mark).is_empty(), "and it ends with its call");
}

#[test]
fn a_server_that_was_killed_is_there_again_for_the_next_call() {
    let fixture = ServerFixture::with(&[]);
    let mark = fixture.mark();
    fixture.own(&[("good", hostile("good", &mark))]);
    let steps = json!([
        {"call": "mcp__good__echo", "arguments": echo()},
        {"call": "Bash", "arguments": {"command": "touch ready; until [ -e go ]; do sleep 0.02; done"}},
        {"call": "mcp__good__echo", "arguments": {"text": "again"}},
    ]);
    let mut command = TYPESCRIPT_1.over_stdio(&fixture.mcp, &[], None, &steps);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until(|| fixture.mcp.has("ready"));
    let [server] = processes(&mark)[..] else { panic!("there is one server: {:?}", processes(&mark)) };
    kill(server);
    wait_until(|| {
        let receipts = fixture.mcp.receipts();
        receipts.iter().any(|receipt| receipt["tool"] == "server" && receipt["state"] == "failed")
    });
    fixture.mcp.cli.write("go", "");
    let run = TYPESCRIPT_1.read(&child.wait_with_output().unwrap());
    assert_eq!(text(&run.steps[2]), "again", "{}", run.steps[2]);
    assert!(processes(&mark).is_empty(), "and nothing is left when the client has gone");
}

#[test]
fn a_server_that_dies_in_a_call_fails_that_call_and_is_asked_nothing_twice() {
    let fixture = ServerFixture::with(&[]);
    std::fs::create_dir(fixture.mcp.path("state")).unwrap();
    let entry = and(hostile("die-mid-call", &fixture.mcp.path("state")), &[("writes", json!(true))]);
    fixture.own(&[("dying", entry)]);
    let failed = fixture.call("mcp__dying__echo", &echo());
    assert_eq!(failed["error_kind"], "execution_failed", "{failed}");
    assert!(failed["content"].as_str().unwrap().contains("exit status 3"), "{failed}");
    let starts = fixture.mcp.cli.read("state/starts");
    assert_eq!(starts.lines().count(), 1, "a server is connected once");
}

/// `haft mcp` as a process of ours, with one request on its way; the caller ends it.
fn holding(fixture: &ServerFixture) -> std::process::Child {
    let mut child = fixture.command(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
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
    let fixture = ServerFixture::with(&[]);
    let mark = fixture.mark();
    fixture.own(&[("good", hostile("grandchild-double-fork", &mark))]);
    let mut haft = holding(&fixture);
    assert!(!processes(&mark).is_empty());
    kill(haft.id());
    haft.wait().unwrap();
    wait_until(|| processes(&mark).is_empty());
    let receipts = fixture.mcp.receipts();
    let server = receipts.iter().find(|receipt| receipt["tool"] == "server").unwrap();
    assert_eq!(server["state"], "interrupted", "{server}");
}

#[test]
fn a_server_takes_its_leave_when_the_client_does() {
    let fixture = ServerFixture::with(&[]);
    let mark = fixture.mark();
    fixture.own(&[("good", hostile("good", &mark))]);
    let mut haft = holding(&fixture);
    drop(haft.stdin.take());
    assert!(haft.wait().unwrap().success());
    assert!(processes(&mark).is_empty());
    let receipts = fixture.mcp.receipts();
    let server = receipts.iter().find(|receipt| receipt["tool"] == "server").unwrap();
    assert_eq!(server["state"], "completed", "it was asked, not forced: {server}");
}
