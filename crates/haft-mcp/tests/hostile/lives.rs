//! How servers begin and end.

use std::sync::mpsc::channel;
use std::time::Duration;

use haft_mcp::client::{ClientLimits, ClientOptions, McpError, ServerChange};
use haft_mcp::wire::ProtocolVersion;
use haft_tool::Cancel;
use serde_json::{Map, json};

use super::{BOTH, LEGACY, LONG, Run, call, client, connect, echo, generous, text_of};

#[test]
fn an_honest_server_is_known_in_each_era_and_gives_all_it_has() {
    for (era, version) in [
        (BOTH, ProtocolVersion::V2026_07_28),
        ("modern", ProtocolVersion::V2026_07_28),
        (LEGACY, ProtocolVersion::V2025_11_25),
    ] {
        let (client, run) = client("good", era, generous());
        let info = client.info();
        assert_eq!((info.version, info.name.as_str(), info.release.as_str()), (version, "hostile", "1.0.0"));
        assert_eq!(info.instructions.as_deref(), Some("Tools to try a client with."));
        let tools = client.list_tools().unwrap();
        assert_eq!((tools.items.len(), tools.warnings.len()), (8, 0));
        assert_eq!(text_of(&call(&client, "add", &json!({"a": 2, "b": 3})).unwrap()), "5");
        assert_eq!(call(&client, "fail", &json!({})).unwrap()["isError"], true);
        let weather = call(&client, "structured", &json!({"place": "there"})).unwrap();
        assert_eq!(weather["structuredContent"]["place"], "there");
        assert_eq!(call(&client, "image", &json!({})).unwrap()["content"][0]["mimeType"], "image/png");
        let cancel = Cancel::new();
        assert_eq!(client.list_resources().unwrap().items[0].uri, "memo://hello");
        assert_eq!(client.list_resource_templates().unwrap().items[0].uri_template, "memo://note/{id}");
        assert_eq!(client.read_resource("memo://note/7", &cancel).unwrap()[0]["text"], "note 7");
        assert!(matches!(client.read_resource("memo://none", &cancel).unwrap_err().kind, McpError::Rpc(_)));
        assert_eq!(client.list_prompts().unwrap().items[0].arguments[0].name, "name");
        let prompt = client
            .get_prompt("greet", &Map::from_iter([("name".to_owned(), json!("Ann"))]), &cancel)
            .unwrap();
        assert_eq!(prompt["messages"][0]["content"]["text"], "Say hello to Ann.");
        client.close();
        run.nothing_is_left();
    }
}

#[test]
fn every_revision_can_be_asked_for() {
    for version in ProtocolVersion::ALL {
        let run = Run::new("good", BOTH);
        let options =
            ClientOptions { limits: generous(), version: Some(version), ..ClientOptions::default() };
        let client = haft_mcp::client::McpClient::connect(run.start(), options).unwrap();
        assert_eq!(client.info().version, version);
        assert_eq!(echo(&client, "hi").unwrap(), "hi");
    }
}

#[test]
fn a_server_that_is_slow_to_answer_is_not_lost_in_either_era() {
    for (mode, era) in [("silent-discover", BOTH), ("silent-discover", LEGACY), ("good", "modern")] {
        // Nobody starts in no time, so the first question is always answered too late.
        let limits = ClientLimits { probe_timeout: Duration::from_millis(1), ..generous() };
        let (client, _run) = client(mode, era, limits);
        assert_eq!(echo(&client, "hi").unwrap(), "hi", "{mode} {era}");
    }
}

#[test]
fn a_dead_server_is_told_of_at_once_with_how_it_ended_and_its_last_words() {
    for (mode, how, words) in [
        ("die-at-start", "exit status 3", "hostile: the licence has expired"),
        ("die-at-start-quietly", "exit status 0", "wrote nothing to standard error"),
        ("die-initialize", "exit status 3", "licence"),
        ("die-with-escapes", "exit status 3", "no config"),
    ] {
        let error = connect(&Run::new(mode, BOTH), generous()).err().unwrap();
        assert_eq!(error.kind, McpError::Disconnected, "{mode}: {error}");
        assert!(error.message.contains(how) && error.message.contains(words), "{mode}: {error}");
    }
    for (mode, how) in [
        ("die-mid-call", "exit status 3"),
        ("die-half-line", "exit status 3"),
        ("die-by-signal", "signal 9"),
        ("grandchild-and-death", "exit status 3"),
        ("close-stdout", "closed its output"),
    ] {
        let (client, _run) = client(mode, BOTH, generous());
        for _ in 0..2 {
            let error = echo(&client, "hi").unwrap_err();
            assert_eq!(error.kind, McpError::Disconnected, "{mode}: {error}");
            assert!(error.message.contains(how), "{mode}: {error}");
        }
    }
}

#[test]
fn who_dies_between_two_calls_is_dead_at_the_second() {
    let (client, _run) = client("die-between-calls", BOTH, generous());
    assert_eq!(echo(&client, "hi").unwrap(), "hi");
    let error = echo(&client, "hi").unwrap_err();
    assert!(error.kind == McpError::Disconnected && error.message.contains("exit status 3"), "{error}");
}

#[test]
fn noise_is_passed_over_and_told_of_when_nothing_else_comes() {
    let run = Run::new("noise-banner", BOTH);
    let (client, _run) = (connect(&run, generous()).unwrap(), &run);
    let cancel = Cancel::new();
    let timeout = Some(Duration::from_millis(300));
    let options = haft_mcp::client::ToolCallOptions {
        timeout,
        max_time: timeout,
        ..haft_mcp::client::ToolCallOptions::new(&cancel)
    };
    let error = client.call_tool("slow", &json!({"seconds": 100}), &options).unwrap_err();
    assert!(
        error.message.contains("that are not messages") && error.message.contains("Welcome to hostile"),
        "{error}"
    );
}

#[test]
fn versions_that_nobody_speaks_are_refused_by_name() {
    for (mode, word) in
        [("version-1999", "1999-01-01"), ("version-2099", "2099-01-01"), ("version-number", "20251125")]
    {
        for era in [BOTH, LEGACY] {
            let error = connect(&Run::new(mode, era), generous()).err().unwrap();
            assert_eq!(error.kind, McpError::UnsupportedVersion, "{mode}: {error}");
            assert!(error.message.contains(word) && error.message.contains("2025-11-25"), "{mode}: {error}");
        }
    }
    let error = connect(&Run::new("version-missing", BOTH), generous()).err().unwrap();
    assert!(error.message.contains("names no protocol version"), "{error}");
}

#[test]
fn news_come_in_each_era_and_lists_are_then_other_ones() {
    for era in [BOTH, LEGACY] {
        let (client, _run) = client("grow", era, generous());
        let (tell, told) = channel();
        client.on_change(move |news| drop(tell.send(news)));
        let names =
            || client.list_tools().unwrap().items.into_iter().map(|tool| tool.name).collect::<Vec<_>>();
        assert!(!names().contains(&"grown".to_owned()));
        call(&client, "grow", &json!({})).unwrap();
        assert_eq!(told.recv_timeout(LONG).unwrap(), ServerChange::Tools, "{era}");
        assert!(names().contains(&"grown".to_owned()));
        assert_eq!(text_of(&call(&client, "grown", &json!({})).unwrap()), "here now");
    }
}

#[test]
fn what_is_silent_about_resources_still_has_tools() {
    let limits = ClientLimits { list_timeout: Duration::from_secs(2), ..generous() };
    let (client, _run) = client("silent-resources", BOTH, limits);
    assert_eq!(client.list_resources().unwrap_err().kind, McpError::TimedOut);
    assert!(client.list_tools().unwrap().items.len() > 5);
    assert_eq!(echo(&client, "hi").unwrap(), "hi");
}

#[test]
fn whoever_does_not_want_to_end_is_ended() {
    for mode in ["silent-shutdown", "ignore-sigterm", "grandchild", "grandchild-double-fork", "silent-always"]
    {
        let run = Run::new(mode, BOTH);
        let limits = ClientLimits { connect_timeout: Duration::from_secs(3), ..generous() };
        drop(connect(&run, limits));
        run.nothing_is_left();
    }
}
