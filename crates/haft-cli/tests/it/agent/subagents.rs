//! Subagents: runs of their own, within the scope, rules, mode and budget of the run that started them.

use std::fs;

use haft_agent::{RunState, read_run};
use haft_ledger::{Ledger, SessionInfo};
use serde_json::{Value, json};

use super::{json_of, says, scripted, scripted_command};
use crate::fixture::cli::{CliFixture, RunOutput, interrupt};
use crate::fixture::wait_until;

/// An answer of the run itself that starts an agent.
fn agent(arguments: &Value) -> Value {
    let mut all = json!({"description": "a task", "prompt": "Do it.", "subagent_type": "general-purpose"});
    all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
    json!({"calls": [{"name": "Agent", "arguments": all}]})
}

/// An answer of a subagent.
fn of(name: &str, mut line: Value) -> Value {
    line["agent"] = json!(name);
    line
}

fn bash(command: &str) -> Value {
    super::bash(command)
}

fn expect(text: &str) -> Value {
    json!({"expect": {"contains": text}, "text": "Done."})
}

fn expect_error(text: &str) -> Value {
    json!({"expect": {"contains": text, "is_error": true}, "text": "Done."})
}

fn run(cli: &CliFixture, script: &[Value], args: &[&str]) -> Value {
    let output = scripted(cli, script, &[&["-p", "Go.", "--output-format", "json"], args].concat());
    let report = json_of(&output);
    assert_eq!(report["stop"], "done", "{} {}", output.stdout, output.stderr);
    report
}

/// The sessions of the agents of a run, with their runs; the oldest first.
fn agents_of(cli: &CliFixture, parent: &str) -> Vec<(SessionInfo, RunState)> {
    let ledger = Ledger::open(cli.home()).unwrap();
    let sessions = ledger.sessions_from(&format!("agent of {parent}"), 0, 100).unwrap();
    sessions.into_iter().map(|info| (info.clone(), read_run(&ledger, &info.id).unwrap().unwrap())).collect()
}

fn session(report: &Value) -> &str {
    report["session_id"].as_str().unwrap()
}

#[test]
fn an_agent_is_a_run_of_its_own_whose_last_message_is_the_result() {
    let cli = CliFixture::new();
    let script = [
        agent(&json!({"description": "make a file", "prompt": "Make a.txt."})),
        of("general-purpose", bash("echo tea > a.txt")),
        of("general-purpose", says("I made a.txt.")),
        expect("I made a.txt.\n\nagentId: "),
    ];
    let report = run(&cli, &script, &[]);
    assert_eq!(cli.read("a.txt"), "tea\n");
    let agents = agents_of(&cli, session(&report));
    let (info, state) = &agents[0];
    let origin = state.start.agent.as_ref().unwrap();
    assert_eq!(
        (agents.len(), origin.parent.as_str(), origin.kind.as_str(), origin.description.as_str()),
        (1, session(&report), "general-purpose", "make a file")
    );
    // It knows nothing of the conversation that it was started in.
    assert_eq!(state.turns.len(), 1);
    assert!(!serde_json::to_string(&state.conversation).unwrap().contains("Go."));
    let listed = cli.haft(&["sessions"]);
    assert!(listed.stdout.contains(&info.id) && listed.stdout.contains("agent of"), "{}", listed.stdout);
    let log = cli.haft(&["log", "--session", &info.id]);
    assert!(log.stdout.contains("echo tea > a.txt"), "{}", log.stdout);
    assert_eq!(cli.haft(&["undo", "--session", &info.id, "--yes"]).code, 0);
    assert!(!cli.path("a.txt").exists());
}

#[test]
fn undoing_a_turn_takes_back_what_its_agents_did() {
    let cli = CliFixture::new();
    let script = [
        agent(&json!({})),
        of("general-purpose", bash("echo tea > a.txt")),
        of("general-purpose", says("Made.")),
        says("Done."),
    ];
    let report = run(&cli, &script, &[]);
    let undone = cli.haft(&["undo", "--run", session(&report), "--turn", "1", "--yes"]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    assert!(!cli.path("a.txt").exists());
}

#[test]
fn the_model_is_told_of_the_agents_and_definitions_of_project_and_home_are_used() {
    let cli = CliFixture::new();
    let folder = cli.path(".claude/agents");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("reviewer.md"),
        "---\nname: reviewer\ndescription: Reviews changes.\ntools: Read, Grep\nmaxTurns: 2\nmodel: haiku\n---\nYou review strictly.\n",
    )
    .unwrap();
    fs::write(folder.join("broken.md"), "no front matter").unwrap();
    fs::write(cli.config(), "[agents.models]\nhaiku = \"tiny\"\n").unwrap();
    let script = [
        agent(&json!({"subagent_type": "reviewer"})),
        of("reviewer", bash("touch reviewed")),
        of(
            "reviewer",
            json!({"expect": {"is_error": true, "contains": "The tools are: Read, Grep."}, "text": "Reviewed."}),
        ),
        expect("Reviewed."),
    ];
    let output = scripted(&cli, &script, &["-p", "Go.", "--output-format", "json"]);
    assert!(output.stderr.contains("broken.md is not used as an agent"), "{}", output.stderr);
    let report = json_of(&output);
    assert_eq!(report["stop"], "done", "{report}");
    assert!(!cli.path("reviewed").exists());
    let (_, state) = &agents_of(&cli, session(&report))[0];
    assert_eq!(state.model, "tiny");
    assert!(state.conversation.system.iter().any(|text| text.contains("You review strictly.")));
    let ledger = Ledger::open(cli.home()).unwrap();
    let parent = read_run(&ledger, session(&report)).unwrap().unwrap();
    let system = parent.conversation.system.join("\n");
    for line in ["- reviewer: Reviews changes.", "- explorer: ", "- planner: ", "- general-purpose: "] {
        assert!(system.contains(line), "{line}: {system}");
    }
    // Two rounds are its limit; the caller learns how to go on.
    let script = [
        agent(&json!({"subagent_type": "reviewer", "max_turns": 1})),
        of("reviewer", json!({"text": "First.", "calls": [{"name": "Grep", "arguments": {"pattern": "x"}}]})),
        expect("First.\n\n(It stopped after 1 rounds"),
    ];
    run(&cli, &script, &[]);
}

#[test]
fn explorer_and_planner_cannot_change_anything() {
    for kind in ["explorer", "planner", "Explore", "Plan"] {
        let cli = CliFixture::new();
        let own = if kind.to_lowercase().starts_with('e') { "explorer" } else { "planner" };
        let write = json!({"calls": [{"name": "Write", "arguments": {"file_path": cli.path("a.txt"), "content": "x"}}]});
        let script = [
            agent(&json!({"subagent_type": kind, "mode": "acceptEdits"})),
            of(own, write),
            of(
                own,
                json!({"expect": {"is_error": true}, "calls": [{"name": "Bash", "arguments": {"command": "touch b.txt"}}]}),
            ),
            of(own, json!({"expect": {"is_error": true}, "text": "I may not."})),
            expect("I may not."),
        ];
        run(&cli, &script, &[]);
        assert!(!cli.path("a.txt").exists() && !cli.path("b.txt").exists());
    }
}

#[test]
fn an_agent_is_held_to_the_rules_and_the_mode_of_its_parent() {
    let cli = CliFixture::new();
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a.txt");
    let write = json!({"calls": [{"name": "Write", "arguments": {"file_path": path, "content": "x"}}]});
    let script = [
        agent(&json!({})),
        of("general-purpose", write.clone()),
        of(
            "general-purpose",
            json!({"expect": {"is_error": true, "contains": "--allowedTools"}, "text": "No."}),
        ),
        expect("No."),
    ];
    run(&cli, &script, &[]);
    let more = [agent(&json!({"mode": "bypassPermissions"})), expect_error("allows more than")];
    run(&cli, &more, &[]);
    let script = [
        agent(&json!({"mode": "plan"})),
        of("general-purpose", bash("touch c.txt")),
        of("general-purpose", json!({"expect": {"is_error": true, "contains": "plan mode"}, "text": "No."})),
        expect("No."),
    ];
    run(&cli, &script, &[]);
    run(
        &cli,
        &script[1..].iter().fold(vec![agent(&json!({}))], |mut all, line| {
            all.push(line.clone());
            all
        }),
        &["--permission-mode", "plan"],
    );
    assert!(!cli.path("c.txt").exists());
}

#[test]
fn orders_that_cannot_be_kept_are_refused_by_name() {
    let cli = CliFixture::new();
    let cases = [
        (json!({"team_name": "reds"}), "team_name: there are no teams"),
        (json!({"mode": "delegate"}), "mode: delegate"),
        (json!({"subagent_type": "explorr"}), "Did you mean explorer?"),
        (json!({"resume": "nothing"}), "resume: this run has no agent"),
        (json!({"prompt": " "}), "prompt"),
        (json!({"model": "gpt"}), "model"),
    ];
    for (arguments, words) in cases {
        run(&cli, &[agent(&arguments), expect_error(words)], &[]);
    }
    // The session of a run is no agent of it.
    let report = run(&cli, &[says("Hello.")], &[]);
    run(&cli, &[agent(&json!({"resume": session(&report)})), expect_error("this run has no agent")], &[]);
}

#[test]
fn an_agent_goes_on_by_its_id_with_what_it_knows() {
    let cli = CliFixture::new();
    let script = [agent(&json!({"name": "anna"})), of("anna", says("First answer.")), says("Done.")];
    let report = run(&cli, &script, &[]);
    let id = agents_of(&cli, session(&report))[0].0.id.clone();
    let script = [
        says("Done."),
        says("Done."),
        agent(&json!({"resume": id, "subagent_type": "explorer", "prompt": "And now?"})),
        of("anna", says("First answer.")),
        of("anna", says("Second answer.")),
        expect("Second answer."),
    ];
    let output = scripted(&cli, &script, &["-p", "Again.", "--continue", "--output-format", "json"]);
    assert_eq!(json_of(&output)["stop"], "done", "{}{}", output.stdout, output.stderr);
    let agents = agents_of(&cli, session(&report));
    assert_eq!((agents.len(), agents[0].1.turns.len()), (1, 2));
}

#[test]
fn an_agent_in_the_background_is_read_and_stopped_by_its_id() {
    let cli = CliFixture::new();
    let started = json!({"regex": "Agent running in background with ID: (?<agent>\\w+)"});
    let script = [
        agent(&json!({"run_in_background": true})),
        of("general-purpose", bash("echo tea > a.txt")),
        of("general-purpose", says("I made a.txt.")),
        json!({"expect": started, "calls": [{"name": "TaskOutput", "arguments": {"task_id": "${agent}", "timeout": 60_000}}]}),
        json!({"expect": {"contains": "I made a.txt."}, "calls": [{"name": "TaskStop", "arguments": {"task_id": "${agent}"}}]}),
        expect("had already ended (completed)"),
    ];
    let report = run(&cli, &script, &[]);
    assert_eq!(cli.read("a.txt"), "tea\n");
    assert_eq!(agents_of(&cli, session(&report)).len(), 1);
    let script = [
        agent(&json!({"run_in_background": true})),
        of("general-purpose", bash("touch begun; sleep 1000")),
        json!({"expect": started, "calls": [{"name": "TaskOutput", "arguments": {"task_id": "${agent}", "block": false}}]}),
        json!({"expect": {"contains": "is still running"}, "calls": [{"name": "TaskStop", "arguments": {"task_id": "${agent}"}}]}),
        expect("Stopped task"),
    ];
    run(&cli, &script, &[]);
}

#[test]
fn agents_at_once_and_their_depth_are_bounded() {
    let cli = CliFixture::new();
    fs::write(cli.config(), "[agents]\nmax_running = 1\nmax_depth = 1\n").unwrap();
    let script = [
        agent(&json!({"run_in_background": true})),
        of("general-purpose", bash("sleep 1000")),
        agent(&json!({})),
        expect_error("1 agents are running"),
    ];
    run(&cli, &script, &[]);
    let script = [
        agent(&json!({})),
        of("general-purpose", agent(&json!({}))),
        of(
            "general-purpose",
            json!({"expect": {"is_error": true, "contains": "There is no tool \"Agent\""}, "text": "Alone."}),
        ),
        expect("Alone."),
    ];
    run(&cli, &script, &[]);
    fs::write(cli.config(), "").unwrap();
    let script = [
        agent(&json!({"name": "outer"})),
        of("outer", agent(&json!({"name": "inner"}))),
        of("inner", agent(&json!({"name": "third"}))),
        of(
            "inner",
            json!({"expect": {"is_error": true, "contains": "There is no tool \"Agent\""}, "text": "Inner."}),
        ),
        of("outer", json!({"expect": {"contains": "Inner."}, "text": "Outer."})),
        expect("Outer."),
    ];
    run(&cli, &script, &[]);
}

#[test]
fn what_agents_spend_counts_for_the_run() {
    let cli = CliFixture::new();
    fs::write(cli.config(), "[model.prices.script]\ninput = 1\noutput = 1\n").unwrap();
    let mut step = of("general-purpose", bash("echo >> n.txt"));
    step["usage"] = json!({"input": 500_000, "output": 0});
    let mut last = of("general-purpose", says("Made."));
    last["usage"] = json!({"input": 250_000, "output": 0});
    let script = [agent(&json!({})), step.clone(), last, says("Done.")];
    let report = run(&cli, &script, &[]);
    assert_eq!((report["cost_usd"].as_f64(), report["usage"]["input"].as_u64()), (Some(0.75), Some(750_000)));
    // The budget is one for all of them: the agent stops in the middle, and then the run.
    let script = [agent(&json!({})), step.clone(), step.clone(), step.clone(), says("Done.")];
    let output =
        scripted(&cli, &script, &["-p", "Go.", "--max-budget-usd", "0.75", "--output-format", "json"]);
    assert_eq!(json_of(&output)["stop"], "max_budget", "{}", output.stdout);
    assert_eq!(cli.read("n.txt"), "\n\n\n");
}

#[test]
fn stopping_the_run_stops_its_agents_and_each_call_has_one_result() {
    let cli = CliFixture::new();
    let script =
        [agent(&json!({})), of("general-purpose", bash("touch begun; sleep 1000")), says("Going on.")];
    let mut command = scripted_command(&cli, &script, &["-p", "Wait.", "--output-format", "json"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until(|| cli.path("begun").exists());
    interrupt(child.id());
    let stopped = RunOutput::from(child.wait_with_output().unwrap());
    let report = json_of(&stopped);
    assert_eq!((stopped.code, report["stop"].as_str()), (130, Some("interrupted")));
    let (_, state) = &agents_of(&cli, session(&report))[0];
    assert_eq!(state.last_stop.as_ref().map(haft_agent::RunStop::name), Some("interrupted"));
    assert!(state.open_calls.is_empty());
    let next = scripted(&cli, &script, &["-p", "--continue", "Go on."]);
    assert_eq!((next.code, next.stdout.as_str()), (0, "Going on.\n"), "{}", next.stderr);
}

#[test]
fn what_an_agent_does_is_shown_while_it_does_it() {
    let cli = CliFixture::new();
    let script =
        [agent(&json!({"name": "anna"})), of("anna", bash("true")), of("anna", says("Made.")), says("Done.")];
    let output = scripted(&cli, &script, &["-p", "Go.", "--verbose"]);
    assert!(output.stderr.contains("anna: Bash true"), "{}", output.stderr);
}
