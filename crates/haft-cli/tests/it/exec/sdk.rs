//! Codex's own SDK drives Haft, with a model of this machine that speaks `OpenAI`'s Responses.

use std::process::Command;

use serde_json::{Value, json};

use crate::fixture::cli::{CliFixture, is_running};
use crate::fixture::peers::{agent, node, ours};
use crate::fixture::scripted_model::{ScriptedCall, ScriptedModel};
use crate::fixture::{haft_program, wait_until};

const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\nno more than the first bytes";

/// Lets the SDK take these steps; returns what it says of each, and what the model was sent.
fn drive(
    cli: &CliFixture,
    script: Vec<ScriptedCall>,
    steps: &Value,
    options: &Value,
) -> (Vec<Value>, Vec<Value>) {
    let model = ScriptedModel::for_haft(script);
    let turns = drive_at(cli, &model.url(), steps, options);
    (turns, model.requests())
}

fn drive_at(cli: &CliFixture, url: &str, steps: &Value, options: &Value) -> Vec<Value> {
    let plan = json!({
        "sdk": agent("HAFT_CODEX_SDK"), "program": haft_program(), "url": url, "workspace": cli.root(),
        "steps": steps, "options": options, "go": cli.path("go"),
    });
    let mut command = Command::new(node());
    command.arg(ours("tests/it/fixture/clients/codex_sdk.mjs")).arg(plan.to_string());
    command
        .env("HAFT_HOME", cli.home())
        .env("HAFT_CONFIG", cli.config())
        .env("CLAUDE_CONFIG_DIR", cli.claude_config());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"))
}

fn bash(command: &str) -> ScriptedCall {
    ("Bash", json!({ "command": command }))
}

fn writes() -> Value {
    json!({"sandboxMode": "workspace-write"})
}

/// The items of a kind.
fn items<'a>(turn: &'a Value, kind: &str) -> Vec<&'a Value> {
    turn["items"].as_array().unwrap().iter().filter(|item| item["type"] == kind).collect()
}

#[test]
fn a_thread_runs_and_is_resumed() {
    let cli = CliFixture::new();
    let steps = json!([{"input": "Make tea."}, {"input": "Once more.", "resume": true}]);
    let (turns, requests) = drive(&cli, vec![bash("echo poured | tee tea.txt")], &steps, &writes());
    let first = &turns[0];
    assert_eq!(first["finalResponse"], "That is all.", "{first}");
    assert_eq!(cli.read("tea.txt"), "poured\n");
    let command = items(first, "command_execution")[0];
    assert_eq!((&command["exit_code"], &command["status"]), (&json!(0), &json!("completed")));
    assert!(command["aggregated_output"].as_str().unwrap().contains("poured"), "{command}");
    assert_eq!(command["command"], "echo poured | tee tea.txt");
    let changes = &items(first, "file_change")[0]["changes"];
    assert_eq!(changes[0]["kind"], "add", "{changes}");
    assert!(changes[0]["path"].as_str().unwrap().ends_with("/tea.txt"), "{changes}");
    let usage = json!({
        "input_tokens": 2, "cached_input_tokens": 0, "cache_write_input_tokens": 0, "output_tokens": 2, "reasoning_output_tokens": 0,
    });
    assert_eq!(first["usage"], usage);

    assert_eq!((&turns[1]["thread"], &turns[1]["finalResponse"]), (&first["thread"], &json!("That is all.")));
    assert_eq!(requests.len(), 3);
    let sent = requests[2]["input"].to_string();
    assert!(sent.contains("Make tea.") && sent.contains("poured") && sent.contains("Once more."), "{sent}");
    assert_eq!(requests[2]["model"], "m");
    let exported = cli.haft(&["sessions", "export", turns[0]["thread"].as_str().unwrap()]);
    assert!(exported.stdout.contains("> Once more."), "{}", exported.stderr);
}

#[test]
fn what_a_command_writes_arrives_while_it_runs() {
    let cli = CliFixture::new();
    // The command ends only when the program that reads its output has seen some.
    let command = bash("echo first; while [ ! -e go ]; do sleep 0.05; done; echo second");
    let (turns, _) = drive(&cli, vec![command], &json!([{"input": "Go.", "streamed": true}]), &json!({}));
    let events = turns[0]["events"].as_array().unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["thread.started", "turn.started", "item.started"], "{kinds:?}");
    assert!(kinds.contains(&"item.updated"), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"turn.completed"));
    let of_command = |event: &&Value| event["item"]["type"] == "command_execution";
    let ids: Vec<&Value> = events.iter().filter(of_command).map(|event| &event["item"]["id"]).collect();
    assert!(ids.len() >= 3 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let last = events.iter().rev().find(of_command).unwrap();
    let output = last["item"]["aggregated_output"].as_str().unwrap();
    assert!(output.contains("first\nsecond"), "{last}");
}

#[test]
fn a_final_answer_fits_the_schema_that_the_program_gives() {
    let cli = CliFixture::new();
    let schema = json!({
        "type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"], "additionalProperties": false,
    });
    let steps = json!([{"input": "Is that all?", "outputSchema": schema}]);
    let (turns, requests) = drive(&cli, vec![bash("true")], &steps, &json!({}));
    let answer: Value = serde_json::from_str(turns[0]["finalResponse"].as_str().unwrap()).unwrap();
    assert_eq!(answer, json!({"answer": "That is all."}));
    assert!(requests.iter().all(|request| request["text"]["format"]["schema"] == schema), "{requests:?}");
}

#[test]
fn images_belong_to_the_prompt() {
    let cli = CliFixture::new();
    std::fs::write(cli.path("pixel.png"), PIXEL).unwrap();
    let image = json!({"type": "local_image", "path": cli.path("pixel.png")});
    let steps = json!([{"input": [{"type": "text", "text": "What is this?"}, image]}]);
    let (turns, requests) = drive(&cli, Vec::new(), &steps, &json!({}));
    assert_eq!(turns[0]["finalResponse"], "That is all.", "{}", turns[0]);
    let sent = requests[0]["input"].to_string();
    assert!(
        sent.contains("What is this?") && sent.contains("data:image/png;base64,iVBORw0KGgpubyBt"),
        "{sent}"
    );
}

#[test]
fn nothing_is_written_unless_the_program_allows_it() {
    let cli = CliFixture::new();
    let (turns, _) = drive(&cli, vec![bash("echo x > made.txt")], &json!([{"input": "Go."}]), &json!({}));
    let command = items(&turns[0], "command_execution")[0];
    assert_eq!(command["status"], "failed", "{command}");
    assert!(!cli.path("made.txt").exists());
}

#[test]
fn an_aborted_turn_ends_its_command() {
    let cli = CliFixture::new();
    let mark = format!("77{}", std::process::id());
    let command = bash(&format!("echo begun; exec sleep {mark}"));
    let (turns, _) = drive(&cli, vec![command], &json!([{"input": "Go.", "abort": true}]), &json!({}));
    assert_eq!(turns[0]["error"]["name"], "AbortError", "{}", turns[0]);
    wait_until(|| !is_running(&format!("sleep\0{mark}")));
}

#[test]
fn a_turn_that_fails_is_an_error_in_the_program() {
    let cli = CliFixture::new();
    // Nothing listens at the port that is never given out.
    let turns = drive_at(&cli, "http://127.0.0.1:1", &json!([{"input": "Go."}]), &json!({}));
    let error = turns[0]["error"]["message"].as_str().unwrap();
    assert!(error.contains("127.0.0.1:1"), "{error}");
}
