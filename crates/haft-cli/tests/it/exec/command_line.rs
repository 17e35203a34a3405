//! `haft exec` with a model that plays a script.

use serde_json::{Value, json};

use crate::fixture::cli::{CliFixture, RunOutput, pipe};

/// Runs `haft exec` with these answers.
fn exec(cli: &CliFixture, script: &[Value], args: &[&str], input: &str) -> RunOutput {
    let lines: String = script.iter().map(|line| format!("{line}\n")).collect();
    let path = cli.config().with_file_name("script.jsonl");
    std::fs::write(&path, lines).unwrap();
    let flags = ["exec", "--script", path.to_str().unwrap()];
    pipe(cli.command(&[&flags, args].concat()), input.as_bytes())
}

fn says(text: &str) -> Value {
    json!({ "text": text })
}

fn calls(name: &str, arguments: &Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

fn events(output: &RunOutput) -> Vec<Value> {
    assert_eq!(output.code, 0, "{}", output.stderr);
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn completed(events: &[Value]) -> Vec<Value> {
    let items = events.iter().filter(|event| event["type"] == "item.completed");
    items.map(|event| event["item"].clone()).collect()
}

#[test]
fn without_json_the_answer_is_on_standard_output_and_progress_elsewhere() {
    let cli = CliFixture::new();
    let script = [calls("Bash", &json!({"command": "echo poured"})), says("It is ready.")];
    let output = exec(&cli, &script, &["-o", cli.path("last.txt").to_str().unwrap()], "Make tea.");
    assert_eq!((output.code, output.stdout.as_str()), (0, "It is ready.\n"), "{}", output.stderr);
    assert!(output.stderr.contains("Bash echo poured"), "{}", output.stderr);
    assert_eq!(cli.read("last.txt"), "It is ready.");
    let piped = exec(&cli, &script, &["Make tea.", "--full-auto"], "");
    assert_eq!(piped.stdout, "It is ready.\n");
}

#[test]
fn every_kind_of_item_is_an_event() {
    let cli = CliFixture::new();
    cli.write("old.txt", "tea\n");
    let path = |name: &str| cli.path(name).to_str().unwrap().to_owned();
    let todo =
        |status: &str| json!({"todos": [{"content": "Pour", "activeForm": "Pouring", "status": status}]});
    let script = [
        json!({"reasoning": "Hm.", "text": "I begin.", "calls": [{"name": "TodoWrite", "arguments": todo("in_progress")}]}),
        calls("Read", &json!({"file_path": path("old.txt")})),
        calls("Edit", &json!({"file_path": path("old.txt"), "old_string": "tea", "new_string": "coffee"})),
        calls("Write", &json!({"file_path": path("new.txt"), "content": "x"})),
        calls("Bash", &json!({"command": "rm new.txt; exit 3"})),
        calls("Read", &json!({"file_path": path("none.txt")})),
        calls("TodoWrite", &todo("completed")),
        says("Done."),
    ];
    let all = events(&exec(&cli, &script, &["--json", "--sandbox", "workspace-write", "Go."], ""));
    let items = completed(&all);
    let kinds: Vec<&str> = items.iter().map(|item| item["type"].as_str().unwrap()).collect();
    let expected = [
        "reasoning",
        "agent_message",
        "mcp_tool_call",
        "file_change",
        "file_change",
        "command_execution",
        "file_change",
        "mcp_tool_call",
        "agent_message",
        "todo_list",
    ];
    assert_eq!(kinds, expected, "{items:#?}");
    assert_eq!((&items[0]["text"], &items[1]["text"]), (&json!("Hm."), &json!("I begin.")));
    assert_eq!((&items[2]["server"], &items[2]["tool"]), (&json!("haft"), &json!("Read")));
    let change = |at: usize| {
        (items[at]["changes"][0]["kind"].as_str().unwrap(), items[at]["status"].as_str().unwrap())
    };
    assert_eq!(
        [change(3), change(4), change(6)],
        [("update", "completed"), ("add", "completed"), ("delete", "completed")]
    );
    assert_eq!((&items[5]["exit_code"], &items[5]["status"]), (&json!(3), &json!("failed")));
    assert_eq!(items[7]["status"], "failed");
    assert!(items[7]["error"]["message"].is_string(), "{}", items[7]);
    assert_eq!(items[9]["items"], json!([{"text": "Pour", "completed": true}]));
    // Each item has one id from its start to its end, and no other has it.
    let mut ids: Vec<&str> = items.iter().map(|item| item["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), items.len());
    let started = all.iter().filter(|event| event["type"] == "item.started");
    assert!(
        started.clone().count() >= 6
            && started.clone().all(|event| ids.contains(&event["item"]["id"].as_str().unwrap()))
    );
}

#[test]
fn a_run_is_resumed_by_its_id_or_as_the_last_one_and_copied() {
    let cli = CliFixture::new();
    let script = [says("One."), says("Two."), says("Three.")];
    let thread = |events: &[Value]| events[0]["thread_id"].as_str().unwrap().to_owned();
    let said = |events: &[Value]| completed(events)[0]["text"].as_str().unwrap().to_owned();
    let first = events(&exec(&cli, &script, &["--json"], "First."));
    let id = thread(&first);
    let second = events(&exec(&cli, &script, &["--json", "resume", &id, "--skip-git-repo-check"], "Second."));
    let copy = events(&exec(&cli, &script, &["--json", "fork", &id, "Third."], ""));
    assert_eq!((thread(&second), said(&second)), (id.clone(), "Two.".to_owned()));
    assert_eq!(said(&copy), "Three.");
    assert_ne!(thread(&copy), id);
    let last = events(&exec(
        &cli,
        &[&script[..], &[says("Four.")]].concat(),
        &["--experimental-json", "resume", "--last"],
        "Go.",
    ));
    assert_eq!((thread(&last), said(&last)), (thread(&copy), "Four.".to_owned()));
    assert_eq!(exec(&cli, &script, &["resume", "nosuchrun", "x"], "").code, 4);
}

#[test]
fn an_answer_that_must_be_json_is_nothing_else_or_an_error() {
    let cli = CliFixture::new();
    cli.write("schema.json", r#"{"type": "object", "required": ["n"]}"#);
    let flags = ["--output-schema", "schema.json", "--json", "Count."];
    let fenced = events(&exec(&cli, &[says("No."), says("```json\n{\"n\": 1}\n```")], &flags, ""));
    let items = completed(&fenced);
    assert_eq!(items.last().unwrap()["text"], "{\"n\":1}");
    let plain =
        exec(&cli, &[says("```\n{\"n\": 1}\n```")], &["--output-schema", "schema.json", "Count."], "");
    assert_eq!(plain.stdout, "{\"n\":1}\n", "{}", plain.stderr);
    let never = exec(&cli, &[says("No."), says("No."), says("No.")], &flags, "");
    let failed: Value = serde_json::from_str(never.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((never.code, &failed["type"]), (1, &json!("turn.failed")), "{}", never.stderr);
    assert!(failed["error"]["message"].as_str().unwrap().contains("output schema"), "{failed}");
    cli.write("schema.json", "{\"type\": 1}");
    assert_eq!(exec(&cli, &[], &flags, "").code, 2);
}

#[test]
fn flags_without_a_meaning_are_said_once_and_unknown_ones_refused() {
    let cli = CliFixture::new();
    let known = [
        "--ephemeral",
        "--color",
        "never",
        "-c",
        "mcp_servers.x.command=\"y\"",
        "-c",
        "approval_policy=\"never\"",
        "Go.",
    ];
    let output = exec(&cli, &[says("Done.")], &known, "");
    assert_eq!((output.code, output.stdout.as_str()), (0, "Done.\n"), "{}", output.stderr);
    let warnings: Vec<&str> = output.stderr.lines().filter(|line| line.contains("no effect")).collect();
    assert_eq!(warnings.len(), 1, "{}", output.stderr);
    assert!(warnings[0].contains("--ephemeral, --color, --config mcp_servers.x.command"), "{}", warnings[0]);
    for flags in [
        &["--unheard-of", "Go."][..],
        &["--worktree", "Go."],
        &["-c", "sandbox_mode=\"none\"", "Go."],
        &["--sandbox", "off", "Go."],
    ] {
        assert_eq!(exec(&cli, &[says("Done.")], flags, "").code, 2, "{flags:?}");
    }
    assert_eq!(exec(&cli, &[], &[], "").code, 2, "there is no prompt");
}

#[test]
fn what_may_be_written_is_said_by_the_flag_or_the_setting() {
    let writes = |more: &[&str]| {
        let cli = CliFixture::new();
        let script = [calls("Bash", &json!({"command": "echo x > made.txt"})), says("Done.")];
        let output = exec(&cli, &script, &[more, &["Go."]].concat(), "");
        assert_eq!(output.code, 0, "{}", output.stderr);
        cli.path("made.txt").exists()
    };
    assert!(!writes(&[]));
    assert!(!writes(&["--sandbox", "read-only", "-c", "sandbox_mode=\"workspace-write\""]));
    assert!(writes(&["-c", "sandbox_mode=\"workspace-write\""]));
    assert!(writes(&["--full-auto"]));
}
