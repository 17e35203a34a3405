//! `/metrics` of `haft serve`, read by a strict parser.

use serde_json::json;

use super::prometheus_text::{parse, value};
use super::{bash, scripted, succeeds};
use crate::fixture::serve::{ServeFixture, VIEW};

#[test]
fn metrics_count_what_other_processes_do_from_the_start_of_the_server_on() {
    let fixture = ServeFixture::new();
    let lines = [
        bash("echo canary > canary.txt"),
        bash("exit 3"),
        json!({"text": "canary", "usage": {"input": 100, "output": 7}}),
    ];
    let run = || succeeds(scripted(&fixture.cli, &lines, &["-p", "canary"]));
    run();
    let server = fixture.serve();
    assert_eq!(server.raw("GET", "/metrics", &[], b"").status, 401);
    run();
    let authorization = format!("Authorization: Bearer {VIEW}");
    let answer = server.raw("GET", "/metrics", &[&authorization], b"");
    assert_eq!(answer.status, 200);
    assert!(
        answer.head.to_lowercase().contains("content-type: text/plain; version=0.0.4"),
        "{}",
        answer.head
    );
    let text = String::from_utf8(answer.body).unwrap();
    assert!(!text.contains("canary"), "{text}");
    let samples = parse(&text);
    let calls = |outcome| {
        value(&samples, "haft_calls_total", &[("tool", "Bash"), ("dialect", "claude"), ("outcome", outcome)])
    };
    assert_eq!([calls("completed"), calls("failed")], ["1", "1"]);
    let model = [("provider", "script"), ("model", "script")];
    assert_eq!(value(&samples, "haft_model_answers_total", &model), "3");
    let output = [model[0], model[1], ("type", "output")];
    assert_eq!(value(&samples, "haft_model_tokens_total", &output), "7");
    assert_eq!(value(&samples, "haft_commands_total", &[("sandbox", "enforced")]), "2");
    assert_eq!(value(&samples, "haft_ledger_calls", &[]), "4");
    assert_eq!(value(&samples, "haft_runs_active", &[]), "0");
}
