//! `haft sessions`: search, export, and the transcripts of other agents.

mod claude_code;
mod codex;
mod export;
mod foreign;
mod search;

use serde_json::{Value, json};

use crate::fixture::cli::{CliFixture, RunOutput};

/// Runs the program with a model that plays these lines.
fn scripted(cli: &CliFixture, script: &[Value], args: &[&str]) -> RunOutput {
    let lines: String = script.iter().map(|line| format!("{line}\n")).collect();
    let path = cli.config().with_file_name("script.jsonl");
    std::fs::write(&path, lines).unwrap();
    let flags = ["--provider", "script", "--script", path.to_str().unwrap()];
    let output = cli.haft(&[args, &flags].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    output
}

/// A run with one call; returns its session.
fn run(cli: &CliFixture, prompt: &str, command: &str, answer: &str) -> String {
    let call = json!({"reasoning": "I should look.", "calls": [{"name": "Bash", "arguments": {"command": command}}]});
    let output =
        scripted(cli, &[call, json!({ "text": answer })], &["-p", prompt, "--output-format", "json"]);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    report["session_id"].as_str().unwrap().to_owned()
}

fn json_lines(output: &RunOutput) -> Vec<Value> {
    assert_eq!(output.code, 0, "{}", output.stderr);
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
