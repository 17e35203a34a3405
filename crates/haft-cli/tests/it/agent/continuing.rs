//! Runs that are continued, copied, killed and undone.

use std::process::Stdio;

use serde_json::{Value, json};

use super::{bash, json_of, output, says, scripted, scripted_command, without_models};
use crate::fixture::cli::CliFixture;
use crate::fixture::scripted_model::ScriptedModel;
use crate::fixture::wait_until;

const JSON: [&str; 2] = ["--output-format", "json"];

fn session(cli: &CliFixture, script: &[Value], args: &[&str]) -> (String, String) {
    let report = json_of(&scripted(cli, script, &[args, &JSON].concat()));
    let text = |name: &str| report[name].as_str().unwrap().to_owned();
    (text("session_id"), text("result"))
}

#[test]
fn a_run_is_continued_by_its_id_or_as_the_last_one_and_copied() {
    let cli = CliFixture::new();
    let script = [says("One."), says("Two."), says("Three.")];
    let (first, _) = session(&cli, &script, &["-p", "First"]);
    let (other, _) = session(&cli, &script, &["-p", "Another run"]);
    assert_ne!(first, other);
    assert_eq!(
        session(&cli, &script, &["-p", "Second", "--resume", &first]),
        (first.clone(), "Two.".to_owned())
    );
    // It is the last one now, although the other began later.
    let (copy, text) = session(&cli, &script, &["-p", "Third", "--continue", "--fork-session"]);
    assert_eq!(text, "Three.");
    assert_ne!(copy, first);
    assert_eq!(
        session(&cli, &script, &["-p", "Third", "--resume", &first]),
        (first.clone(), "Three.".to_owned())
    );

    let ended = scripted(&cli, &script, &["-p", "--resume", &first]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    let unknown = scripted(&cli, &script, &["-p", "x", "--resume", "nosuchrun"]);
    assert_eq!(unknown.code, 4, "{}", unknown.stderr);
    let elsewhere = CliFixture::new();
    let none = scripted(&elsewhere, &script, &["-p", "x", "--continue"]);
    assert_eq!(none.code, 4, "{}", none.stderr);
    assert_eq!(scripted(&cli, &script, &["-p", "x", "--fork-session"]).code, 2);
}

#[test]
fn a_run_killed_at_any_step_goes_on_and_makes_no_call_twice() {
    const STEPS: usize = 8;
    for killed_at in 1..STEPS {
        let cli = CliFixture::new();
        let step = |n: usize| {
            json!({"calls": [
                {"name": "Bash", "arguments": {"command": format!("echo {n} >> log.txt")}},
                {"name": "Write", "arguments": {"file_path": cli.path(&format!("{n}.txt")), "content": "made"}},
            ]})
        };
        let script: Vec<Value> = (1..=STEPS).map(step).chain([says("Done.")]).collect();
        let mut command = scripted_command(&cli, &script, &["-p", "Count."]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = || std::fs::read_to_string(cli.path("log.txt")).unwrap_or_default().lines().count();
        wait_until(|| lines() >= killed_at);
        child.kill().unwrap();
        child.wait().unwrap();
        let resumed = scripted(&cli, &script, &["-p", "--continue", "--output-format", "json"]);
        if resumed.code == 2 {
            // The run had ended before it was killed.
            assert_eq!(lines(), STEPS);
            continue;
        }
        let report = json_of(&resumed);
        assert_eq!((resumed.code, report["result"].as_str()), (0, Some("Done.")), "{}", resumed.stderr);
        let ledger = haft_ledger::Ledger::open(cli.home()).unwrap();
        let session = report["session_id"].as_str().unwrap();
        let state = haft_agent::read_run(&ledger, session).unwrap().unwrap();
        let results: Vec<_> = state
            .conversation
            .messages
            .iter()
            .filter_map(|message| match message {
                haft_model::ChatMessage::ToolResults { results, .. } => Some(results[0].clone()),
                _ => None,
            })
            .collect();
        assert_eq!(results.len(), STEPS);
        let interrupted: Vec<usize> =
            (1..).zip(&results).filter(|(_, result)| result.is_error).map(|(at, _)| at).collect();
        assert!(interrupted.len() <= 1, "{interrupted:?}");
        let log = cli.read("log.txt");
        for step in 1..=STEPS {
            let count = log.lines().filter(|line| *line == step.to_string()).count();
            // What was about to be written is written once more, unless it was.
            assert_eq!(cli.read(&format!("{step}.txt")), "made");
            let is_right = count == 1 || (count == 0 && interrupted.contains(&step));
            assert!(is_right, "killed at {killed_at}: step {step} was made {count} times: {interrupted:?}");
        }
    }
}

#[test]
fn undo_takes_back_the_files_and_the_conversation_of_a_turn() {
    let cli = CliFixture::new();
    let script = [
        bash("echo one > one.txt"),
        says("One."),
        bash("echo two > two.txt; echo more >> one.txt"),
        says("Two."),
        says("Another two."),
    ];
    let (run, _) = session(&cli, &script, &["-p", "First"]);
    session(&cli, &script, &["-p", "Second", "--resume", &run]);
    assert_eq!(cli.read("one.txt"), "one\nmore\n");
    let dry = cli.haft(&["undo", "--run", &run, "--turn", "2", "--dry-run"]);
    assert_eq!((dry.code, cli.path("two.txt").exists()), (0, true), "{}", dry.stderr);
    let undone = cli.haft(&["undo", "--run", &run, "--turn", "2", "--yes"]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    assert_eq!(cli.read("one.txt"), "one\n");
    assert!(!cli.path("two.txt").exists());
    let ledger = haft_ledger::Ledger::open(cli.home()).unwrap();
    let state = haft_agent::read_run(&ledger, &run).unwrap().unwrap();
    assert_eq!((state.turns.len(), state.conversation.messages.len()), (1, 4));
    // The run goes on from there; the script has used two answers by then.
    let (_, text) = session(&cli, &script, &["-p", "Another second", "--resume", &run]);
    assert_eq!(text, "Two.");
    let unknown = cli.haft(&["undo", "--run", &run, "--turn", "9", "--yes"]);
    assert_eq!(unknown.code, 4, "{}", unknown.stderr);
    assert_eq!(cli.haft(&["undo", "--run", &run]).code, 2);
}

#[test]
fn a_run_under_way_is_neither_continued_nor_undone() {
    let cli = CliFixture::new();
    let script = [bash("touch started; while [ ! -e go ]; do sleep 0.05; done"), says("One.")];
    let mut command = scripted_command(&cli, &script, &["-p", "First", "--output-format", "json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| cli.path("started").exists());
    let run = haft_ledger::Ledger::open(cli.home()).unwrap().sessions(1).unwrap().remove(0).id;
    let second = scripted(&cli, &script, &["-p", "Second", "--resume", &run]);
    let undo = cli.haft(&["undo", "--run", &run, "--turn", "1", "--yes"]);
    cli.write("go", "");
    for refused in [second, undo] {
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(refused.stderr.contains("is being driven by process"), "{}", refused.stderr);
    }
    let done = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["result"], "One.");
    assert_eq!(
        scripted(&cli, &[&script[..], &[says("Two.")]].concat(), &["-p", "Second", "--resume", &run]).code,
        0
    );
}

#[test]
fn a_run_is_continued_in_its_own_workspace_and_dialect() {
    let cli = CliFixture::new();
    std::fs::create_dir(cli.path("project")).unwrap();
    std::fs::create_dir(cli.path("elsewhere")).unwrap();
    let script = [
        json!({"calls": [{"name": "bash", "arguments": {"command": "pwd"}}]}),
        says("Here."),
        json!({"calls": [{"name": "bash", "arguments": {"command": "touch made"}}]}),
        json!({"expect": {"is_error": false}, "text": "Made."}),
    ];
    let (run, _) = session(&cli, &script, &["-p", "Where?", "--dialect", "loom", "--workspace", "project"]);
    let mut command = scripted_command(&cli, &script, &["-p", "Make it.", "--resume", &run]);
    let output = command.current_dir(cli.path("elsewhere")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(cli.path("project/made").exists());
}

#[test]
fn a_run_is_continued_where_its_model_is_without_naming_it_again() {
    let (cli, model) = (CliFixture::new(), ScriptedModel::for_haft(Vec::new()));
    let secret = "sk-very-secret-0123456789";
    let run = |args: &[&str]| {
        let mut command = without_models(&cli, &[args, &JSON].concat());
        command.env("HAFT_API_KEY", secret);
        json_of(&output(command))
    };
    let url = model.url();
    let first = run(&["-p", "First", "--base-url", &url, "--wire", "anthropic", "--model", "small"]);
    assert_eq!(first["is_error"], false, "{first}");
    // Neither the user's own settings nor those of a project move the run elsewhere.
    std::fs::write(cli.config(), "[model]\nprovider = \"ollama\"\nname = \"other\"\n").unwrap();
    cli.write("haft.toml", "[model]\nbase_url = \"http://127.0.0.1:9\"\n");
    let second = run(&["-p", "Second", "--continue"]);
    assert_eq!(
        (&second["session_id"], &second["model"]),
        (&first["session_id"], &json!("small")),
        "{second}"
    );
    let requests = model.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1]["messages"].as_array().unwrap().len(), 3, "{}", requests[1]);
    let ledger = haft_ledger::Ledger::open(cli.home()).unwrap();
    let events = haft_ledger::EventLog::read(&ledger, first["session_id"].as_str().unwrap(), 1, 100).unwrap();
    assert_eq!(events[0].body["address"], json!({"base_url": url, "wire": "anthropic"}));
    assert!(events.iter().all(|event| !event.body.to_string().contains(secret)));
    // A flag does, and the run stays there.
    let other = ScriptedModel::for_haft(Vec::new());
    let moved = ["-p", "Third", "--continue", "--base-url", &other.url(), "--provider", "compatible"];
    assert_eq!(run(&moved)["is_error"], false);
    assert_eq!(run(&["-p", "Fourth", "--continue"])["is_error"], false);
    assert_eq!((model.requests().len(), other.requests().len()), (2, 2));
}

#[test]
fn a_receipt_says_how_the_arguments_of_a_model_were_repaired() {
    let cli = CliFixture::new();
    let twice = Value::String(json!({"command": "echo tea"}).to_string()).to_string();
    let script = [json!({"calls": [{"name": "Bash", "arguments": twice}]}), says("Done.")];
    let run = scripted(&cli, &script, &["-p", "Go."]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let receipt: Value = serde_json::from_str(&cli.haft(&["log", "--json", "-n", "1"]).stdout).unwrap();
    let note = receipt["input_note"].as_str().unwrap_or_default();
    assert!(note.contains("JSON"), "{receipt}");
    assert!(cli.haft(&["show", &receipt["id"].to_string()]).stdout.contains(note));
}
