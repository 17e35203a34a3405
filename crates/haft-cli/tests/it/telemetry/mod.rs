//! Telemetry: what a collector receives, and what happens when there is none.

mod collector;
mod content;
mod context;
mod failures;
mod golden;
mod metrics;
mod old_session;

#[path = "../../../../haft-telemetry/tests/it/prometheus_text.rs"]
mod prometheus_text;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::fixture::cli::{CliFixture, RunOutput};
use collector::Collector;

/// Long enough for the slowest machine, because the tests are about what is sent, not how soon.
const EXIT_WAIT_MS: u64 = 240_000;

/// A workspace whose settings name this collector.
fn with_collector(collector: &Collector) -> CliFixture {
    let cli = CliFixture::new();
    configure(&cli, &collector.url(), "");
    cli
}

fn configure(cli: &CliFixture, endpoint: &str, more: &str) {
    let settings = format!("[otel]\nendpoint = \"{endpoint}\"\nexit_wait_ms = {EXIT_WAIT_MS}\n{more}");
    std::fs::write(cli.config(), settings).unwrap();
}

/// The program, in an environment without telemetry.
fn command(cli: &CliFixture, args: &[&str]) -> Command {
    let mut command = cli.command(args);
    for (name, _) in std::env::vars_os() {
        let name = name.into_string().unwrap_or_default();
        if name.starts_with("OTEL_") || name.starts_with("TRACE") {
            command.env_remove(name);
        }
    }
    command
}

/// The program with a scripted model.
fn scripted(cli: &CliFixture, script: &[Value], args: &[&str]) -> Command {
    let lines: String = script.iter().map(|line| format!("{line}\n")).collect();
    let path = cli.config().with_file_name("script.jsonl");
    std::fs::write(&path, lines).unwrap();
    command(cli, &[args, &["--provider", "script", "--script", path.to_str().unwrap()]].concat())
}

/// Runs it; it must succeed and say nothing of telemetry.
#[track_caller]
fn succeeds(mut command: Command) -> RunOutput {
    let output = RunOutput::from(command.output().unwrap());
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(!output.stderr.contains("telemetry"), "{}", output.stderr);
    output
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

fn bash(command: &str) -> Value {
    call("Bash", &json!({ "command": command }))
}

/// A run with a command, a subagent with a command, a call that is denied, and an answer.
fn script(outside: &Path) -> Vec<Value> {
    let agent = json!({"description": "canary task", "prompt": "canary prompt", "subagent_type": "general-purpose", "name": "canary"});
    let mut of_agent = [bash("cat canary.txt; exit 3"), json!({"text": "canary of the agent"})];
    for line in &mut of_agent {
        line["agent"] = json!("canary");
    }
    let [agent_call, agent_says] = of_agent;
    vec![
        bash("echo canary > canary.txt"),
        call("Agent", &agent),
        agent_call,
        agent_says,
        call("Write", &json!({"file_path": outside.join("canary.txt"), "content": "canary"})),
        json!({"text": "canary answer", "usage": {"input": 100, "output": 7, "cache_read": 50}}),
    ]
}

/// The value of an attribute.
fn attribute<'a>(span: &'a Value, name: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == name);
    found.map_or(&Value::Null, |found| found["value"].as_object().unwrap().values().next().unwrap())
}

fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let mut found = spans.iter().filter(|span| span["name"] == name);
    let span = found.next().unwrap_or_else(|| panic!("no {name}: {spans:#?}"));
    assert!(found.next().is_none(), "several {name}");
    span
}
