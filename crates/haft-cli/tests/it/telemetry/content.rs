//! Contents are sent only if the user wants that, and keys never.

use serde_json::json;

use super::collector::{Collector, CollectorMode, ReceivedRequest};
use super::{bash, command, configure, script, scripted, succeeds, with_collector};
use crate::fixture::cli::CliFixture;

fn has(requests: &[ReceivedRequest], text: &str) -> bool {
    requests.iter().any(|request| request.body.windows(text.len()).any(|bytes| bytes == text.as_bytes()))
}

#[test]
fn nothing_of_prompts_answers_arguments_results_and_paths_is_sent_by_default() {
    let collector = Collector::start(CollectorMode::Accepts);
    let cli = with_collector(&collector);
    let outside = tempfile::tempdir().unwrap();
    let rule = format!("Edit(/{}/canary/**)", outside.path().display());
    let run = scripted(
        &cli,
        &script(outside.path()),
        &["-p", "canary", "--allowedTools", &rule, "Bash(echo canary:*)"],
    );
    succeeds(run);
    let mut failing = command(&cli, &["call", "Read", r#"{"file_path": "/canary"}"#]);
    assert_eq!(failing.output().unwrap().status.code(), Some(1));
    let mut unknown = command(&cli, &["call", "canary", "{}"]);
    assert!(!unknown.output().unwrap().status.success());
    let received = collector.received();
    assert!(has(&received, "execute_tool Read") && has(&received, "execute_tool Write"));
    assert!(!has(&received, "canary"));
    assert!(!has(&received, cli.root().to_str().unwrap()));
}

#[test]
fn content_is_sent_where_the_user_wants_that_without_secrets_of_the_environment() {
    let variable = ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true");
    for (setting, variable) in [("content = true\n", None), ("", Some(variable))] {
        let collector = Collector::start(CollectorMode::Accepts);
        let cli = CliFixture::new();
        configure(&cli, &collector.url(), setting);
        let lines = [bash("echo canary output; echo s3cr3t-of-mine"), json!({"text": "canary answer"})];
        let mut run = scripted(&cli, &lines, &["-p", "canary prompt"]);
        run.env("DEPLOY_TOKEN", "s3cr3t-of-mine").envs(variable);
        succeeds(run);
        let received = collector.received();
        for text in ["canary prompt", "canary output", "canary answer", "echo canary output; echo ***"] {
            assert!(has(&received, text), "{text}");
        }
        assert!(!has(&received, "s3cr3t-of-mine"));
    }
}

#[test]
fn keys_of_the_collector_reach_it_and_no_command() {
    let collector = Collector::start(CollectorMode::Accepts);
    let cli = CliFixture::new();
    let mut call = command(&cli, &["call", "Bash", r#"{"command": "env; cat /proc/self/environ"}"#]);
    call.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url());
    call.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k3y%20canary");
    configure(&cli, "http://127.0.0.1:1", "");
    let output = succeeds(call);
    assert!(output.stdout.contains("HOME=") && !output.stdout.contains("canary"), "{}", output.stdout);
    assert!(!output.stdout.contains("OTEL_"), "{}", output.stdout);
    let received = collector.received();
    assert!(received.iter().all(|request| request.head.contains("api-key: k3y canary\r\n")));
    assert_eq!(received.len(), 2, "spans and metrics");
    // In the settings they are masked.
    configure(&cli, "http://127.0.0.1:1", "headers = { api-key = \"k3y-canary\" }\n");
    let shown = cli.haft(&["config", "show", "otel"]);
    assert!(shown.stdout.contains("api-key") && !shown.stdout.contains("canary"), "{}", shown.stdout);
}

#[test]
fn a_project_cannot_have_telemetry_sent() {
    let collector = Collector::start(CollectorMode::Accepts);
    let cli = CliFixture::new();
    let section = format!("[otel]\nendpoint = \"{}\"\ncontent = true\n", collector.url());
    cli.write("haft.toml", &section);
    let output = command(&cli, &["call", "Bash", r#"{"command": "echo tea"}"#]).output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("otel.endpoint is ignored in a project's file"), "{said}");
    assert!(collector.received().is_empty());
}
