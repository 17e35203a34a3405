//! Handshake, changes and exit of servers.

use std::sync::mpsc::channel;
use std::time::Duration;

use haft_mcp::client::{ClientLimits, ClientOptions, McpClient, McpError, ServerChange, ToolCallOptions};
use haft_mcp::wire::ProtocolVersion;
use haft_tool::Cancel;
use serde_json::{Map, json};

use super::{BOTH, HostileServer, LEGACY, TEST_TIMEOUT, call, client, connect, echo, generous, text_of};

#[test]
fn good_server_works_in_both_families() {
    for (family, version) in [
        (BOTH, ProtocolVersion::V2026_07_28),
        ("stateless", ProtocolVersion::V2026_07_28),
        (LEGACY, ProtocolVersion::V2025_11_25),
    ] {
        let (client, server) = client("good", family, generous());
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
        server.assert_no_processes_left();
    }
}

#[test]
fn every_version_can_be_requested() {
    for version in ProtocolVersion::ALL {
        let server = HostileServer::new("good", BOTH);
        let options =
            ClientOptions { limits: generous(), version: Some(version), ..ClientOptions::default() };
        let client = McpClient::connect(server.start(), options).unwrap();
        assert_eq!(client.info().version, version);
        assert_eq!(echo(&client, "hi").unwrap(), "hi");
    }
}

#[test]
fn slow_server_is_reached_in_both_families() {
    for (mode, family) in [("silent-discover", BOTH), ("silent-discover", LEGACY), ("good", "stateless")] {
        // No server starts that fast, so the first answer is always too late.
        let limits = ClientLimits { probe_timeout: Duration::from_millis(1), ..generous() };
        let (client, _server) = client(mode, family, limits);
        assert_eq!(echo(&client, "hi").unwrap(), "hi", "{mode} {family}");
    }
}

#[test]
fn exit_is_reported_with_status_and_standard_error() {
    for (mode, status, text) in [
        ("die-at-start", "exit status 3", "hostile: the licence has expired"),
        ("die-at-start-quietly", "exit status 0", "wrote nothing to standard error"),
        ("die-initialize", "exit status 3", "licence"),
        ("die-with-escapes", "exit status 3", "no config"),
    ] {
        let error = connect(&HostileServer::new(mode, BOTH), generous()).err().unwrap();
        assert_eq!(error.kind, McpError::Disconnected, "{mode}: {error}");
        assert!(error.message.contains(status) && error.message.contains(text), "{mode}: {error}");
    }
    for (mode, status) in [
        ("die-mid-call", "exit status 3"),
        ("die-half-line", "exit status 3"),
        ("die-by-signal", "signal 9"),
        ("grandchild-and-death", "exit status 3"),
        ("close-stdout", "closed its output"),
    ] {
        let (client, _server) = client(mode, BOTH, generous());
        for _ in 0..2 {
            let error = echo(&client, "hi").unwrap_err();
            assert_eq!(error.kind, McpError::Disconnected, "{mode}: {error}");
            assert!(error.message.contains(status), "{mode}: {error}");
        }
    }
}

#[test]
fn exit_between_calls_fails_the_next_call() {
    let (client, _server) = client("die-between-calls", BOTH, generous());
    assert_eq!(echo(&client, "hi").unwrap(), "hi");
    let error = echo(&client, "hi").unwrap_err();
    assert!(error.kind == McpError::Disconnected && error.message.contains("exit status 3"), "{error}");
}

#[test]
fn noise_is_ignored_and_mentioned_on_timeout() {
    let server = HostileServer::new("noise-banner", BOTH);
    let client = connect(&server, generous()).unwrap();
    let cancel = Cancel::new();
    let timeout = Some(Duration::from_millis(300));
    let options = ToolCallOptions { timeout, max_time: timeout, ..ToolCallOptions::new(&cancel) };
    let error = client.call_tool("slow", &json!({"seconds": 100}), &options).unwrap_err();
    assert!(
        error.message.contains("that are not messages") && error.message.contains("Welcome to hostile"),
        "{error}"
    );
}

#[test]
fn unsupported_version_is_named_in_the_error() {
    for (mode, version) in
        [("version-1999", "1999-01-01"), ("version-2099", "2099-01-01"), ("version-number", "20251125")]
    {
        for family in [BOTH, LEGACY] {
            let error = connect(&HostileServer::new(mode, family), generous()).err().unwrap();
            assert_eq!(error.kind, McpError::UnsupportedVersion, "{mode}: {error}");
            assert!(
                error.message.contains(version) && error.message.contains("2025-11-25"),
                "{mode}: {error}"
            );
        }
    }
    let error = connect(&HostileServer::new("version-missing", BOTH), generous()).err().unwrap();
    assert!(error.message.contains("names no protocol version"), "{error}");
}

#[test]
fn changes_are_reported_in_both_families() {
    for family in [BOTH, LEGACY] {
        let (client, _server) = client("grow", family, generous());
        let (sender, receiver) = channel();
        client.on_change(move |change| drop(sender.send(change)));
        let names =
            || client.list_tools().unwrap().items.into_iter().map(|tool| tool.name).collect::<Vec<_>>();
        assert!(!names().contains(&"grown".to_owned()));
        call(&client, "grow", &json!({})).unwrap();
        assert_eq!(receiver.recv_timeout(TEST_TIMEOUT).unwrap(), ServerChange::Tools, "{family}");
        assert!(names().contains(&"grown".to_owned()));
        assert_eq!(text_of(&call(&client, "grown", &json!({})).unwrap()), "here now");
    }
}

#[test]
fn tools_work_although_resources_time_out() {
    let limits = ClientLimits { list_timeout: Duration::from_secs(2), ..generous() };
    let (client, _server) = client("silent-resources", BOTH, limits);
    assert_eq!(client.list_resources().unwrap_err().kind, McpError::TimedOut);
    assert!(client.list_tools().unwrap().items.len() > 5);
    assert_eq!(echo(&client, "hi").unwrap(), "hi");
}

#[test]
fn close_kills_servers_that_do_not_exit() {
    for mode in ["silent-shutdown", "ignore-sigterm", "grandchild", "grandchild-double-fork", "silent-always"]
    {
        let server = HostileServer::new(mode, BOTH);
        let limits = ClientLimits { connect_timeout: Duration::from_secs(3), ..generous() };
        drop(connect(&server, limits));
        server.assert_no_processes_left();
    }
}
