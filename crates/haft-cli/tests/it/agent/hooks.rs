//! Hooks on what happens in a run.

use serde_json::{Value, json};

use super::{bash, json_of, says, scripted};
use crate::fixture::cli::{CliFixture, RunOutput};

/// A workspace in which the user has these hooks, by event.
fn with_hooks(hooks: &[(&str, &str)]) -> CliFixture {
    let cli = CliFixture::new();
    let groups = hooks.iter().map(|(event, command)| {
        let handler = json!({"type": "command", "command": command});
        ((*event).to_owned(), json!([{"hooks": [handler]}]))
    });
    let settings = json!({"hooks": groups.collect::<serde_json::Map<String, Value>>()});
    std::fs::create_dir_all(cli.claude_config()).unwrap();
    std::fs::write(cli.claude_config().join("settings.json"), settings.to_string()).unwrap();
    cli
}

fn run(cli: &CliFixture, script: &[Value]) -> RunOutput {
    scripted(cli, script, &["-p", "Say something.", "--output-format", "json"])
}

/// All that was said in the last run.
fn said(cli: &CliFixture) -> String {
    cli.haft(&["sessions", "export", "--format", "json"]).stdout
}

#[test]
fn hooks_see_the_session_the_prompt_the_end_of_the_turn_and_of_the_session() {
    let note = "cat >> seen.jsonl; echo >> seen.jsonl";
    let events = ["SessionStart", "UserPromptSubmit", "PostToolBatch", "Stop", "SessionEnd"];
    let cli = with_hooks(&events.map(|event| (event, note)));
    let script = [bash("echo tea"), says("Done."), says("Again.")];
    let first = run(&cli, &script);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let session = json_of(&first)["session_id"].as_str().unwrap().to_owned();
    let second = scripted(&cli, &script, &["-p", "--resume", &session, "Go on."]);
    assert_eq!(second.code, 0, "{}", second.stderr);
    let seen: Vec<Value> =
        cli.read("seen.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = seen.iter().map(|seen| seen["hook_event_name"].as_str().unwrap()).collect();
    let again = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"];
    assert_eq!(names, [&events[..], &again].concat());
    assert_eq!(
        (&seen[0]["source"], &seen[5]["source"], &seen[1]["prompt"]),
        (&json!("startup"), &json!("resume"), &json!("Say something."))
    );
    assert_eq!(seen[2]["tool_calls"][0]["tool_name"], "Bash");
    assert!(seen[2]["tool_calls"][0]["tool_response"].as_str().unwrap().contains("tea"), "{}", seen[2]);
    assert_eq!(
        (&seen[3]["stop_hook_active"], &seen[3]["last_assistant_message"]),
        (&json!(false), &json!("Done."))
    );
    assert!(seen.iter().all(|seen| seen["session_id"] == session.as_str()), "{seen:?}");
}

#[test]
fn what_hooks_print_at_the_beginning_and_on_a_prompt_is_added_for_the_model() {
    let cli =
        with_hooks(&[("SessionStart", "echo branch is main"), ("UserPromptSubmit", "echo it is monday")]);
    assert_eq!(run(&cli, &[says("Done.")]).code, 0);
    let said = said(&cli);
    assert!(said.contains("branch is main") && said.contains("it is monday"), "{said}");
}

#[test]
fn a_prompt_that_a_hook_refuses_is_not_sent() {
    let cli = with_hooks(&[("UserPromptSubmit", "echo 'no secrets, please' >&2; exit 2")]);
    let refused = run(&cli, &[says("Never said.")]);
    let result = json_of(&refused);
    assert_eq!((refused.code, &result["stop"]), (1, &json!("hook")), "{result}");
    assert!(result["error"].as_str().unwrap().contains("no secrets, please"), "{result}");
    assert!(!refused.stdout.contains("Never said."));
}

#[test]
fn a_hook_can_keep_the_model_from_stopping_but_not_for_ever() {
    let once =
        "if grep -q '\"stop_hook_active\":true'; then exit 0; fi; echo 'run the tests first' >&2; exit 2";
    let cli = with_hooks(&[("Stop", once)]);
    let result = json_of(&run(&cli, &[says("Done."), bash("true"), says("Tested.")]));
    assert_eq!((&result["result"], &result["num_turns"]), (&json!("Tested."), &json!(3)), "{result}");
    assert!(said(&cli).contains("run the tests first"));
    let cli = with_hooks(&[("Stop", "exit 2")]);
    let script: Vec<Value> = (0..20).map(|number| says(&format!("Done {number}."))).collect();
    let result = json_of(&run(&cli, &script));
    assert_eq!((&result["result"], &result["stop"]), (&json!("Done 8."), &json!("done")), "{result}");
    // A broken hook does not keep it.
    let cli = with_hooks(&[("Stop", "exit 1")]);
    assert_eq!(json_of(&run(&cli, &[says("Done.")]))["result"], "Done.");
}

#[test]
fn a_hook_that_says_stop_ends_the_turn() {
    let stop = "echo '{\"continue\": false, \"stopReason\": \"enough for today\"}'";
    for event in ["PreToolUse", "PostToolUse", "PostToolBatch"] {
        let cli = with_hooks(&[(event, stop)]);
        let ended = run(&cli, &[bash("echo x"), says("Never said.")]);
        let result = json_of(&ended);
        assert_eq!((ended.code, &result["stop"]), (1, &json!("hook")), "{event}: {result}");
        assert!(result["error"].as_str().unwrap().contains("enough for today"), "{event}: {result}");
    }
}

#[test]
fn hooks_see_the_beginning_and_the_end_of_subagents() {
    let note = "cat >> seen.jsonl; echo >> seen.jsonl";
    let cli = with_hooks(&[("SubagentStart", note), ("SubagentStop", note)]);
    let agent = json!({"calls": [{"name": "Agent", "arguments":
        {"description": "look", "prompt": "Look.", "subagent_type": "explorer"}}]});
    let mut answer = says("Looked.");
    answer["agent"] = json!("explorer");
    let ran = run(&cli, &[agent, answer, says("Done.")]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let seen: Vec<Value> =
        cli.read("seen.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = seen.iter().map(|seen| (&seen["hook_event_name"], &seen["agent_type"])).collect();
    let (start, stop, kind) = (json!("SubagentStart"), json!("SubagentStop"), json!("explorer"));
    assert_eq!(names, [(&start, &kind), (&stop, &kind)]);
    assert_eq!(seen[1]["last_assistant_message"], "Looked.");
}
