//! A session in the ledger is exported as it would have been sent while it ran.

use serde_json::Value;

use super::collector::{Collector, CollectorMode, spans_of};
use super::{bash, command, configure, script, scripted, succeeds, with_collector};
use crate::fixture::cli::{CliFixture, RunOutput};

fn sorted(mut spans: Vec<Value>) -> Vec<Value> {
    spans.sort_by_key(|span| span["spanId"].to_string());
    spans
}

#[test]
fn an_old_session_has_the_spans_that_were_sent_while_it_ran() {
    let live = Collector::start(CollectorMode::Accepts);
    let cli = with_collector(&live);
    let outside = tempfile::tempdir().unwrap();
    succeeds(scripted(&cli, &script(outside.path()), &["-p", "canary", "--output-format", "json"]));
    let sent = sorted(live.spans());
    assert!(sent.len() > 10);

    let later = Collector::start(CollectorMode::Accepts);
    let session = main_session(&cli);
    let mut export = command(&cli, &["sessions", "export", "--otel", &session]);
    export.env("OTEL_EXPORTER_OTLP_ENDPOINT", later.url());
    let output = succeeds(export);
    assert!(output.stderr.contains(&format!("sent {} spans", sent.len())), "{}", output.stderr);
    assert_eq!(sorted(later.spans()), sent);

    // The same as a file, without a collector.
    std::fs::write(cli.config(), "").unwrap();
    let file = succeeds(command(&cli, &["sessions", "export", "--format", "otlp", &session]));
    let lines: Vec<Value> = file.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids = |spans: Vec<Value>| {
        let id =
            |span: &Value| ["traceId", "spanId", "parentSpanId", "name"].map(|name| span[name].to_string());
        let mut ids: Vec<_> = spans.iter().map(id).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(spans_of(&lines)), ids(sent));
    assert!(!file.stdout.contains("canary"));
}

/// The session of the run, and not of its subagent.
fn main_session(cli: &CliFixture) -> String {
    let ledger = haft_ledger::Ledger::open(cli.home()).unwrap();
    let sessions = ledger.sessions(10).unwrap();
    sessions.into_iter().find(|session| session.entry_point == "run").unwrap().id
}

#[test]
fn a_copy_of_a_run_has_only_its_own_spans() {
    let collector = Collector::start(CollectorMode::Accepts);
    let cli = with_collector(&collector);
    let lines =
        [bash("echo tea"), serde_json::json!({"text": "Made."}), serde_json::json!({"text": "Again."})];
    succeeds(scripted(&cli, &lines, &["-p", "Make tea."]));
    let first = collector.spans().len();
    succeeds(scripted(&cli, &lines, &["-p", "--continue", "--fork-session", "Again?"]));
    let spans = collector.spans();
    let ids: std::collections::HashSet<_> = spans.iter().map(|span| span["spanId"].to_string()).collect();
    assert_eq!((ids.len(), spans.len()), (first + 2, first + 2), "a turn and its answer: {spans:#?}");
}

#[test]
fn without_a_collector_the_export_says_what_to_do() {
    let cli = CliFixture::new();
    succeeds(command(&cli, &["call", "Bash", r#"{"command": "echo tea"}"#]));
    let output = RunOutput::from(command(&cli, &["sessions", "export", "--otel"]).output().unwrap());
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("OTEL_EXPORTER_OTLP_ENDPOINT") && output.stderr.contains("--format otlp"));
    let collector = Collector::start(CollectorMode::Answers(401));
    configure(&cli, &collector.url(), "");
    let output = RunOutput::from(command(&cli, &["sessions", "export", "--otel"]).output().unwrap());
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("answered 401"), "{}", output.stderr);
}
