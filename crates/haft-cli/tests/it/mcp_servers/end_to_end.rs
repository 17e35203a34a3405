//! A server's tools through Haft: offered to Haft's clients, scoped and recorded.

use serde_json::{Value, json};

use crate::fixture::mcp_servers::{ServerFixture, and, everything, filesystem, hostile, time};
use crate::fixture::peer_client::{
    PYTHON, PeerClient, STATELESS, TYPESCRIPT_1, TYPESCRIPT_2, Transport, text,
};

fn passes_through(client: PeerClient, transport: Transport) {
    let fixture = ServerFixture::with(&[]);
    let root = fixture.mcp.cli.root();
    fixture.own(&[
        ("everything", everything()),
        ("files", and(filesystem(root), &[("writes", json!(true))])),
        ("time", time()),
    ]);
    fixture.mcp.cli.write("letter.txt", "Dear Ann,\n");
    let letter = fixture.mcp.path("letter.txt");
    let steps = json!([
        {"call": "mcp__everything__echo", "arguments": {"message": "through"}},
        {"call": "mcp__everything__get-tiny-image"},
        {"call": "mcp__everything__get-structured-content", "arguments": {"location": "Chicago"}},
        {"call": "mcp__files__write_file", "arguments": {"path": letter, "content": "Dear Bob,\n"}},
        {"call": "mcp__time__get_current_time", "arguments": {"timezone": "UTC"}},
        {"call": "mcp__everything__trigger-long-running-operation", "arguments": {"duration": 0.3, "steps": 3}},
        {"call": "mcp__everything__get-sum", "arguments": {"a": 1}},
        {"call": "ListMcpResources"},
    ]);
    let run = client.run(&fixture.mcp, transport, &[], None, &steps);
    let at = |at: usize| &run.steps[at];
    assert_eq!(text(at(0)), "Echo: through");
    assert_eq!(at(1)["content"][1]["mimeType"], "image/png", "{}", at(1));
    assert!(at(2)["structuredContent"]["temperature"].is_number(), "{}", at(2));
    assert_eq!(fixture.mcp.cli.read("letter.txt"), "Dear Bob,\n");
    assert!(text(at(4)).contains("\"timezone\": \"UTC\""), "{}", at(4));
    assert!(text(at(5)).contains("completed"), "{}", at(5));
    assert!(!at(5)["told"].as_array().unwrap().is_empty(), "the steps of the server are told: {}", at(5));
    assert!(at(6)["isError"] == true && text(at(6)).contains('b'), "{}", at(6));
    assert!(text(at(7)).contains("demo://resource"), "{}", at(7));

    let receipts = fixture.mcp.receipts();
    let session = &receipts[0]["session"];
    assert!(receipts.iter().all(|receipt| receipt["session"] == *session));
    let servers: Vec<&Value> = receipts.iter().filter(|receipt| receipt["tool"] == "server").collect();
    assert_eq!(servers.len(), 3, "each was started once: {servers:?}");
    fixture.done(&["undo", "--session", session.as_str().unwrap(), "--yes"]);
    assert_eq!(fixture.mcp.cli.read("letter.txt"), "Dear Ann,\n");
}

#[test]
fn from_an_old_client_to_servers_of_both_eras() {
    passes_through(TYPESCRIPT_1, Transport::Stdio);
}

#[test]
fn from_a_new_client_to_servers_of_both_eras() {
    passes_through(PYTHON.with_mode(STATELESS), Transport::Stdio);
}

#[test]
fn over_http_to_servers_of_both_eras() {
    passes_through(TYPESCRIPT_2.with_mode(STATELESS), Transport::Http);
}

#[test]
fn a_result_that_is_too_long_is_cut_once_and_can_be_read_whole() {
    let fixture = ServerFixture::with(&[("everything", everything())]);
    let long = "a line of words\n".repeat(6_500);
    let steps = json!([
        {"call": "mcp__everything__echo", "arguments": {"message": long}},
        {"read": {"link_of": 0}},
    ]);
    let run = PYTHON.run(&fixture.mcp, Transport::Stdio, &[], None, &steps);
    let shown = text(&run.steps[0]);
    assert!(shown.len() < 103_000 && shown.starts_with("Echo: a line of words"), "{}", shown.len());
    let whole = run.steps[1]["contents"][0]["text"].as_str().unwrap();
    assert_eq!(whole, format!("Echo: {long}"));
}

#[test]
fn a_call_of_a_server_can_need_a_yes() {
    let fixture = ServerFixture::with(&[("good", and(hostile("good", "-"), &[("network", json!("all"))]))]);
    let echo = |text: &str| json!({"call": "mcp__good__echo", "arguments": {"text": text}});
    let answers = json!([{"action": "accept", "content": {"run": true}}, {"action": "decline"}]);
    let steps = json!([echo("yes"), echo("no")]);
    let run = PYTHON.run(&fixture.mcp, Transport::Stdio, &[], Some(&answers), &steps);
    assert_eq!(run.asked.len(), 2, "{:?}", run.asked);
    assert!(run.asked[0]["message"].as_str().unwrap().contains("mcp__good__echo"), "{:?}", run.asked);
    assert_eq!(text(&run.steps[0]), "yes");
    assert!(run.steps[1]["isError"] == true, "{}", run.steps[1]);
    let allowed = PYTHON.run(
        &fixture.mcp,
        Transport::Stdio,
        &["--allowedTools", "mcp__good__echo"],
        None,
        &json!([echo("allowed")]),
    );
    assert_eq!(text(&allowed.steps[0]), "allowed");
    let denied = PYTHON.run(
        &fixture.mcp,
        Transport::Stdio,
        &["--disallowedTools", "mcp__good"],
        None,
        &json!([{"list": "tools"}, echo("denied")]),
    );
    let names = denied.steps[0]["items"].as_array().unwrap();
    assert!(!names.iter().any(|tool| tool["name"].as_str().unwrap().starts_with("mcp__good")), "{names:?}");
    assert_eq!(denied.steps[1]["error"]["code"], -32602, "{}", denied.steps[1]);
}

#[test]
fn a_list_that_grows_is_told_and_its_new_tool_waits_for_a_yes() {
    let fixture = ServerFixture::with(&[("grow", hostile("grow", "-"))]);
    // The call of echo lists the tools again, because the server has announced a change before it answered `grow`.
    let echo = json!({"call": "mcp__grow__echo", "arguments": {"text": "x"}});
    let steps = json!([{"call": "mcp__grow__grow"}, echo, {"call": "mcp__grow__grown"}]);
    let ran = PYTHON.over_stdio(&fixture.mcp, &[], None, &steps).output().unwrap();
    let run = PYTHON.read(&ran);
    assert_eq!(run.steps[0]["isError"], false, "{}", run.steps[0]);
    assert_eq!(fixture.json(&["mcp", "get", "grow", "--json"])["pending"]["new"], json!(["grown"]));
    let refused = fixture.call("mcp__grow__grown", &json!({}));
    assert_eq!(refused["error_kind"], "permission_denied", "{refused}");
}
