//! One trace spans the calling program, Haft, its commands and the servers that it uses.

use serde_json::{Value, json};

use super::collector::{Collector, CollectorMode};
use super::{bash, call, command, configure, named, scripted, succeeds, with_collector};
use crate::fixture::cli::CliFixture;
use crate::fixture::peers::ours;
use crate::fixture::stdio_client::ServedClient;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const ASKER: &str = "00f067aa0ba902b7";

fn parent() -> String {
    format!("00-{TRACE}-{ASKER}-01")
}

/// The settings of a server that returns the `_meta` of its calls.
fn echo_server() -> String {
    let script = ours("tests/it/telemetry/echo_server.py");
    format!("[tools.mcp_servers.echo]\ncommand = \"python3\"\nargs = [\"{script}\"]\n")
}

#[test]
fn a_run_belongs_to_the_span_it_was_started_from_and_its_commands_and_servers_to_their_calls() {
    let collector = Collector::start(CollectorMode::Accepts);
    let cli = CliFixture::new();
    configure(&cli, &collector.url(), &echo_server());
    let lines = [
        bash("echo $TRACEPARENT $TRACESTATE"),
        call("mcp__echo__meta", &json!({})),
        json!({"expect": {"contains": TRACE}, "text": "Done."}),
    ];
    let mut run = scripted(&cli, &lines, &["-p", "Go.", "--output-format", "stream-json", "--verbose"]);
    run.env("TRACEPARENT", parent()).env("TRACESTATE", "vendor=1");
    let output = succeeds(run);
    let spans = collector.spans();
    assert!(
        spans.iter().all(|span| span["traceId"] == TRACE && span["traceState"] == "vendor=1"),
        "{spans:#?}"
    );
    assert_eq!(named(&spans, "invoke_agent haft")["parentSpanId"], ASKER);
    let span = |name: &str| named(&spans, name)["spanId"].as_str().unwrap().to_owned();
    let told_command = format!("00-{TRACE}-{}-01 vendor=1", span("execute_tool Bash"));
    assert!(output.stdout.contains(&told_command), "{told_command}: {}", output.stdout);
    let told_server = format!("00-{TRACE}-{}-01", span("execute_tool mcp__echo__meta"));
    assert!(output.stdout.contains(&told_server), "{told_server}: {}", output.stdout);
}

#[test]
fn a_call_over_mcp_belongs_to_the_span_that_its_client_names() {
    let collector = Collector::start(CollectorMode::Accepts);
    let cli = with_collector(&collector);
    let serve = command(&cli, &["mcp", "--workspace", cli.root().to_str().unwrap()]);
    let mut client = ServedClient::start(serve);
    client.initialize(&json!({}));
    let call =
        |meta: Value| json!({"name": "Bash", "arguments": {"command": "echo $TRACEPARENT"}, "_meta": meta});
    let named = client.result("tools/call", &call(json!({"traceparent": parent()})));
    let alone = client.result("tools/call", &call(json!({"traceparent": "not one"})));
    drop(client);
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().trim().to_owned();
    let spans = collector.spans();
    let traceparent = |span: &Value| {
        format!("00-{}-{}-01", span["traceId"].as_str().unwrap(), span["spanId"].as_str().unwrap())
    };
    let [first, second] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((&first["traceId"], &first["parentSpanId"]), (&json!(TRACE), &json!(ASKER)));
    assert_eq!(text(&named), traceparent(first));
    assert!(second["traceId"] != TRACE && second.get("parentSpanId").is_none());
    assert_eq!(text(&alone), traceparent(second));
}

#[test]
fn without_telemetry_commands_are_told_what_haft_was_told() {
    let cli = CliFixture::new();
    let call = || command(&cli, &["call", "Bash", r#"{"command": "echo [$TRACEPARENT]"}"#]);
    assert_eq!(succeeds(call()).stdout, "[]\n");
    let mut traced = call();
    traced.env("TRACEPARENT", parent());
    assert_eq!(succeeds(traced).stdout, format!("[{}]\n", parent()));
    let mut invalid = call();
    invalid.env("TRACEPARENT", "00-x-y-01");
    assert_eq!(succeeds(invalid).stdout, "[]\n");
}

#[test]
fn spans_of_a_trace_that_is_not_sampled_are_not_sent() {
    let collector = Collector::start(CollectorMode::Accepts);
    let cli = with_collector(&collector);
    let mut call = command(&cli, &["call", "Bash", r#"{"command": "echo $TRACEPARENT"}"#]);
    call.env("TRACEPARENT", format!("00-{TRACE}-{ASKER}-00"));
    let output = succeeds(call);
    assert!(output.stdout.starts_with(&format!("00-{TRACE}-")) && output.stdout.ends_with("-00\n"));
    let received = collector.received();
    assert!(!received.is_empty(), "metrics do not depend on it");
    assert!(received.iter().all(|request| request.head.starts_with("POST /v1/metrics ")));
}
