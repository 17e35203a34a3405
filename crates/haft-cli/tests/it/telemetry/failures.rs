//! A collector that is absent, slow or refuses changes neither what a command prints nor its exit code.

use serde_json::json;

use super::collector::{Collector, CollectorMode};
use super::{bash, command, configure, scripted};
use crate::fixture::cli::{CliFixture, RunOutput};
use crate::fixture::stdio_client::ServedClient;

/// So long that waiting for it would exceed the time limit of the test run.
const REQUEST_TIMEOUT_MS: &str = "86400000";

/// A run that makes a call and fails with its limit of rounds, with these settings of telemetry.
fn run(settings: &str) -> RunOutput {
    let cli = CliFixture::new();
    std::fs::write(cli.config(), settings).unwrap();
    let lines = [bash("echo tea"), bash("echo more"), json!({"text": "Done."})];
    let mut run = scripted(&cli, &lines, &["-p", "Make tea.", "--max-turns", "2"]);
    run.env("OTEL_EXPORTER_OTLP_TIMEOUT", REQUEST_TIMEOUT_MS);
    run.output().unwrap().into()
}

/// What it prints without session ids and without the last line.
fn but_last_line(stderr: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = stderr.lines().filter(|line| !line.contains("--resume")).collect();
    lines.pop_if(|line| line.contains("telemetry"));
    lines
}

fn changes_nothing_but_one_line(settings: &str, line: &str) {
    let (plain, with) = (run(""), run(settings));
    assert_eq!((with.code, &with.stdout), (plain.code, &plain.stdout), "{}", with.stderr);
    assert_eq!(plain.code, 1);
    assert_eq!(but_last_line(&with.stderr), but_last_line(&plain.stderr));
    let said: Vec<&str> = with.stderr.lines().filter(|line| line.contains("telemetry")).collect();
    assert!(matches!(said[..], [only] if only.contains(line)), "{}", with.stderr);
}

fn endpoint(url: &str) -> String {
    format!("[otel]\nendpoint = \"{url}\"\n")
}

#[test]
fn a_collector_that_is_absent() {
    // Nothing listens at port 1, which is never given out.
    let settings = endpoint("http://127.0.0.1:1") + "exit_wait_ms = 240000\n";
    changes_nothing_but_one_line(&settings, "nothing listens there");
}

#[test]
fn a_collector_that_never_answers() {
    let collector = Collector::start(CollectorMode::Hangs);
    changes_nothing_but_one_line(&endpoint(&collector.url()), "within 300 ms");
}

#[test]
fn a_collector_that_fails() {
    let collector = Collector::start(CollectorMode::Answers(500));
    let settings = endpoint(&collector.url()) + "exit_wait_ms = 240000\n";
    changes_nothing_but_one_line(&settings, "answered 500");
}

#[test]
fn a_collector_that_takes_a_part() {
    let collector = Collector::start(CollectorMode::RejectsTwo);
    let settings = endpoint(&collector.url()) + "exit_wait_ms = 240000\n";
    changes_nothing_but_one_line(&settings, "rejected 2 spans: too old");
}

#[test]
fn a_collector_that_does_not_accept_the_key() {
    let collector = Collector::start(CollectorMode::Answers(401));
    let settings = endpoint(&collector.url()) + "exit_wait_ms = 240000\n";
    changes_nothing_but_one_line(&settings, "Check OTEL_EXPORTER_OTLP_HEADERS");
}

#[test]
fn settings_that_cannot_be_used_are_named_and_the_command_goes_on() {
    let cli = CliFixture::new();
    let mut call = command(&cli, &["call", "Bash", r#"{"command": "echo tea"}"#]);
    call.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let output = RunOutput::from(call.output().unwrap());
    assert_eq!((output.code, output.stdout.as_str()), (0, "tea\n"));
    assert!(output.stderr.contains("OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported"), "{}", output.stderr);
}

#[test]
fn a_server_answers_its_clients_while_the_collector_hangs() {
    let collector = Collector::start(CollectorMode::Hangs);
    let cli = CliFixture::new();
    configure(&cli, &collector.url(), "");
    std::fs::write(cli.config(), endpoint(&collector.url())).unwrap();
    let mut serve = command(&cli, &["mcp", "--workspace", cli.root().to_str().unwrap()]);
    serve.env("OTEL_EXPORTER_OTLP_TIMEOUT", REQUEST_TIMEOUT_MS);
    let mut client = ServedClient::start(serve);
    client.initialize(&json!({}));
    for number in 0..20 {
        let (failed, text) = client.call("Bash", &json!({"command": format!("echo {number}")}));
        assert_eq!((failed, text.trim()), (false, number.to_string().as_str()));
    }
}
