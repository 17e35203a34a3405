//! Servers that people have: server-everything, server-filesystem, server-memory, mcp-server-git and mcp-server-time.

use serde_json::{Value, json};

use crate::fixture::mcp_servers::{ServerFixture, and, everything, filesystem, git, hostile, memory, time};
use crate::fixture::peer_client::{TYPESCRIPT_1, Transport};

const NAMES: [&str; 5] = ["everything", "files", "git", "memory", "time"];

fn all_of_them() -> ServerFixture {
    let fixture = ServerFixture::with(&[]);
    let root = fixture.mcp.cli.root();
    fixture.own(&[
        ("everything", everything()),
        ("files", filesystem(root)),
        ("git", git(root)),
        ("memory", and(memory(&fixture.mcp.path("graph.jsonl")), &[("writes", json!(true))])),
        ("time", time()),
    ]);
    fixture.mcp.cli.write("letter.txt", "Dear Ann,\n");
    let ran = std::process::Command::new("git").args(["init", "--quiet"]).current_dir(root).status();
    assert!(ran.unwrap().success());
    fixture
}

#[test]
fn each_is_tried_out_and_says_what_it_is() {
    let fixture = all_of_them();
    let tried = std::thread::scope(|scope| {
        let try_out = |name| fixture.json(&["mcp", "test", name, "--json"]);
        let tried = NAMES.map(|name| scope.spawn(move || try_out(name)));
        tried.map(|tried| tried.join().unwrap())
    });
    let told = tried.map(|trial| {
        let tools = trial["tools"].as_array().map_or(0, Vec::len);
        (trial["protocol"].as_str().unwrap_or_default().to_owned(), tools, trial)
    });
    let expected =
        [("2025-11-25", 13), ("2025-11-25", 14), ("2026-07-28", 12), ("2025-11-25", 9), ("2026-07-28", 2)];
    for ((protocol, tools, trial), expected) in told.iter().zip(expected) {
        assert_eq!((protocol.as_str(), *tools), expected, "{trial}");
        assert_eq!((&trial["warnings"], &trial["schema_problems"]), (&json!([]), &json!({})), "{trial}");
        assert!(trial["round_trip_ms"].as_f64().unwrap() > 0.0, "{trial}");
    }
    assert_eq!((&told[0].2["resources"], &told[0].2["prompts"]), (&json!(7), &json!(4)));
    let said = fixture.done(&["mcp", "list"]);
    assert!(said.contains("13 tools") && !said.contains("not listed yet"), "{said}");
}

#[test]
fn their_tools_are_named_after_them_and_come_behind_the_built_in_ones() {
    let fixture = ServerFixture::with(&[("good", hostile("good", "-"))]);
    let names = fixture.tools(&[]);
    let built_in = names.iter().position(|name| name == "ReadMcpResource").unwrap();
    let theirs = &names[built_in + 1..];
    assert!(theirs.iter().all(|name| name.starts_with("mcp__good__")) && theirs.len() == 8, "{names:?}");
    assert_eq!(fixture.tools(&[]), names, "and always in this order");
    assert!(fixture.tools(&["--dialect", "omega"]).contains(&"mcp__good__echo".to_owned()));
    let clawft = fixture.tools(&["--dialect", "clawft"]);
    assert!(clawft.contains(&"good__echo".to_owned()), "{clawft:?}");
    assert_eq!(clawft.last().unwrap(), "message", "registered after the tools of servers");
    assert!(!clawft.iter().any(|name| name.starts_with("mcp__")), "{clawft:?}");

    let shown = fixture.json(&["tools", "mcp__good__structured", "--format", "anthropic"]);
    let tool = &shown.as_array().or(shown["tools"].as_array()).unwrap()[0];
    assert_eq!(tool["description"], "Tells the weather in two forms.", "{tool}");
    assert_eq!(tool["input_schema"]["properties"]["place"]["type"], "string", "{tool}");

    let arguments = json!({"text": "hi"}).to_string();
    for args in [
        &["call", "mcp__good__echo", &arguments][..],
        &["call", "mcp__good__echo", &arguments, "--dialect", "omega"],
        &["call", "good__echo", &arguments, "--dialect", "clawft"],
        &["mcp", "call", "good", "echo", &arguments],
        &["mcp", "call", "good", "echo", &arguments, "--dialect", "clawft"],
    ] {
        assert_eq!(fixture.done(args), "hi\n", "{args:?}");
    }
    let receipts = fixture.mcp.receipts();
    let called: Vec<&Value> = receipts.iter().filter(|receipt| receipt["tool"] != "server").collect();
    assert_eq!(called.len(), 5);
    assert!(called.iter().all(|receipt| receipt["effects"][0]["server"] == "good"), "{called:?}");
}

#[test]
fn what_a_server_refuses_is_told_in_its_own_words() {
    let fixture = ServerFixture::with(&[("time", time())]);
    let wrong = fixture.ask("time", "get_current_time", &json!({"timzone": "UTC"}));
    assert!(wrong["is_error"] == true && wrong["content"].as_str().unwrap().contains("timezone"), "{wrong}");
    let failed = fixture.call("mcp__time__get_current_time", &json!({"timezone": "Middle/Earth"}));
    assert!(
        failed["is_error"] == true && failed["content"].as_str().unwrap().contains("Middle/Earth"),
        "{failed}"
    );
    let unknown = fixture.call("mcp__time__set_clock", &json!({}));
    assert_eq!(unknown["error_kind"], "not_found", "{unknown}");
    assert!(unknown["content"].as_str().unwrap().contains("get_current_time"), "{unknown}");
}

#[test]
fn whatever_a_result_is_made_of_is_kept() {
    let fixture = ServerFixture::with(&[("everything", everything())]);
    let steps = json!([
        {"call": "mcp__everything__get-resource-links", "arguments": {"count": 2}},
        {"call": "mcp__everything__get-resource-reference", "arguments": {"resourceType": "Text", "resourceId": 1}},
        {"call": "mcp__everything__get-annotated-message", "arguments": {"messageType": "error", "includeImage": true}},
    ]);
    let run = TYPESCRIPT_1.run(&fixture.mcp, Transport::Stdio, &[], None, &steps);
    let [links, resource, annotated] = &run.steps[..] else { panic!("three results") };
    assert_eq!(kinds(links), ["text", "resource_link", "resource_link"]);
    assert_eq!(kinds(resource), ["text", "resource", "text"]);
    assert_eq!(resource["content"][1]["resource"]["uri"], "demo://resource/dynamic/text/1");
    assert_eq!(kinds(annotated), ["text", "image"]);

    let image = fixture.call("mcp__everything__get-tiny-image", &json!({}));
    assert_eq!(kinds(&image), ["text", "image", "text"]);
    assert_eq!(image["content"][1]["mimeType"], "image/png");
    let weather = fixture.call("mcp__everything__get-structured-content", &json!({"location": "Chicago"}));
    assert!(weather["structured"]["temperature"].is_number(), "{weather}");
    assert!(weather["content"].as_str().unwrap().contains("temperature"), "{weather}");
}

fn kinds(result: &Value) -> Vec<&str> {
    let pieces = result["content"].as_array().into_iter().flatten();
    pieces.map(|piece| piece["type"].as_str().unwrap_or_default()).collect()
}

#[test]
fn their_resources_are_listed_and_read() {
    let fixture = ServerFixture::with(&[("everything", everything()), ("good", hostile("good", "-"))]);
    let listed = fixture.done(&["call", "ListMcpResources", "{}"]);
    let address = "demo://resource/static/document/features.md";
    assert!(listed.contains(address) && listed.contains("memo://hello"), "{listed}");
    let one = fixture.done(&["call", "ListMcpResources", r#"{"server": "everything"}"#]);
    assert_eq!(one.lines().count(), 7, "{one}");
    let read = json!({"server": "everything", "uri": address}).to_string();
    assert!(fixture.done(&["call", "ReadMcpResource", &read]).contains("# Everything Server"));
    let missing = fixture.call("ListMcpResources", &json!({"server": "missing"}));
    assert!(missing["content"].as_str().unwrap().contains("servers are: everything, good"), "{missing}");
    let missing = fixture.call("ReadMcpResource", &json!({"server": "everything", "uri": "demo://nothing"}));
    assert_eq!(missing["is_error"], true, "{missing}");
}
