//! One run: what is printed where, limits, tools, signals.

use serde_json::json;

use super::{bash, json_of, says, scripted, scripted_command};
use crate::fixture::cli::{CliFixture, interrupt, pipe};
use crate::fixture::wait_until;

#[test]
fn the_answer_is_on_standard_output_and_calls_are_on_standard_error() {
    let cli = CliFixture::new();
    let script = [bash("echo tea > a.txt"), says("Made a.txt.")];
    let quiet = scripted(&cli, &script, &["-p", "Make a.txt."]);
    assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (0, "Made a.txt.\n", ""));
    assert_eq!(cli.read("a.txt"), "tea\n");
    let verbose = scripted(&cli, &script, &["run", "--verbose", "Make", "a.txt."]);
    assert_eq!((verbose.code, verbose.stdout.as_str()), (0, "Made a.txt.\n"));
    assert!(verbose.stderr.contains("Bash echo tea > a.txt"), "{}", verbose.stderr);
    assert!(verbose.stderr.contains("2 rounds"), "{}", verbose.stderr);
    // The calls of a run are calls like any other.
    assert_eq!(cli.haft(&["undo", "-n", "2", "--yes"]).code, 0);
    assert!(!cli.path("a.txt").exists());
}

#[test]
fn json_has_the_answer_the_provider_the_tokens_the_time_and_the_model() {
    let cli = CliFixture::new();
    std::fs::write(cli.config(), "[model.prices.script]\ninput = 1\noutput = 2\n").unwrap();
    let script = [json!({"text": "Hello.", "usage": {"input": 500_000, "output": 250_000}})];
    let run = json_of(&scripted(&cli, &script, &["-p", "Hello?", "--output-format", "json"]));
    let expected = json!({
        "result": "Hello.", "provider": "script", "model": "script", "cost_usd": 1.0, "num_turns": 1,
        "stop": "done", "is_error": false,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(run[name], *value, "{name}");
    }
    assert_eq!(
        (run["usage"]["input"].as_u64(), run["usage"]["output"].as_u64()),
        (Some(500_000), Some(250_000))
    );
    assert!(run["duration_ms"].is_u64() && run["session_id"].is_string());
}

#[test]
fn the_prompt_comes_from_the_words_or_from_standard_input() {
    let cli = CliFixture::new();
    let asked = |args: &[&str], input: &str| {
        let command = scripted_command(&cli, &[says("Yes.")], &[args, &["--output-format", "json"]].concat());
        let session = json_of(&pipe(command, input.as_bytes()))["session_id"].as_str().unwrap().to_owned();
        let ledger = haft_ledger::Ledger::open(cli.home()).unwrap();
        let events = haft_ledger::EventLog::read(&ledger, &session, 2, 1).unwrap();
        events[0].body["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(asked(&["-p"], "from a pipe\n"), "from a pipe");
    assert_eq!(asked(&["-p", "Review", "this:", "-"], "a diff\n"), "Review this:\n\na diff");
    assert_eq!(asked(&["run", "-p", "only", "words"], "not read"), "only words");
    let nothing = pipe(scripted_command(&cli, &[says("Yes.")], &["-p"]), b"");
    assert_eq!(nothing.code, 2);
    assert!(nothing.stderr.contains("there is no prompt"), "{}", nothing.stderr);
}

#[test]
fn each_limit_ends_the_run_with_its_own_reason_and_the_work_so_far() {
    let cli = CliFixture::new();
    let step = json!({"text": "Step.", "calls": [{"name": "Bash", "arguments": {"command": "echo >> n.txt"}}],
                      "usage": {"input": 100_000, "output": 0}});
    let script = [step.clone(), step.clone(), step];
    let rounds = scripted(&cli, &script, &["-p", "Go.", "--max-turns", "2", "--output-format", "json"]);
    let report = json_of(&rounds);
    assert_eq!(
        (rounds.code, report["stop"].as_str(), report["result"].as_str()),
        (1, Some("max_turns"), Some("Step."))
    );
    assert_eq!(cli.read("n.txt"), "\n\n");

    std::fs::write(cli.config(), "[model.prices.script]\ninput = 1\noutput = 1\n").unwrap();
    let budget =
        scripted(&cli, &script, &["-p", "Go.", "--max-budget-usd", "0.15", "--output-format", "json"]);
    assert_eq!((budget.code, json_of(&budget)["stop"].as_str()), (1, Some("max_budget")));
    std::fs::write(cli.config(), "").unwrap();
    let unknown = scripted(&cli, &script, &["-p", "Go.", "--max-budget-usd", "1"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);

    let time = scripted(&cli, &[bash("sleep 1000")], &["-p", "Go.", "--timeout", "300ms"]);
    assert_eq!(time.code, 124);
    assert!(time.stderr.contains("--timeout") && time.stderr.contains("--resume"), "{}", time.stderr);
}

#[test]
fn a_denied_call_goes_back_to_the_model() {
    let cli = CliFixture::new();
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a.txt");
    let script = [
        json!({"calls": [{"name": "Write", "arguments": {"file_path": path, "content": "x"}}]}),
        json!({"expect": {"contains": "--allowedTools", "is_error": true}, "text": "I may not."}),
    ];
    let denied = scripted(&cli, &script, &["-p", "Write it."]);
    assert_eq!((denied.code, denied.stdout.as_str()), (0, "I may not.\n"), "{}", denied.stderr);
    assert!(!path.exists());
    let script = [script[0].clone(), json!({"expect": {"is_error": false}, "text": "Done."})];
    let rule = format!("Write(/{})", path.display());
    let allowed = scripted(&cli, &script, &["-p", "Write it.", "--allowedTools", &rule]);
    assert_eq!((allowed.code, allowed.stdout.as_str()), (0, "Done.\n"), "{}", allowed.stderr);
    assert!(path.exists());
}

#[test]
fn ctrl_c_stops_the_turn_and_keeps_the_run() {
    let cli = CliFixture::new();
    let script = [bash("touch begun; sleep 1000"), says("Going on.")];
    let mut command = scripted_command(&cli, &script, &["-p", "Wait.", "--output-format", "json"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until(|| cli.path("begun").exists());
    interrupt(child.id());
    let stopped = crate::fixture::cli::RunOutput::from(child.wait_with_output().unwrap());
    assert_eq!((stopped.code, json_of(&stopped)["stop"].as_str()), (130, Some("interrupted")));
    let next = scripted(&cli, &script, &["-p", "--continue", "Go on."]);
    assert_eq!((next.code, next.stdout.as_str()), (0, "Going on.\n"), "{}", next.stderr);
}

#[test]
fn a_script_that_does_not_fit_is_an_error_that_names_its_line() {
    let cli = CliFixture::new();
    let script = [bash("echo tea"), json!({"expect": {"contains": "coffee"}, "text": "No."})];
    let failed = scripted(&cli, &script, &["-p", "Go."]);
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("Line 2 of the script expects"), "{}", failed.stderr);
    let missing = super::output(super::without_models(&cli, &["-p", "Go.", "--provider", "script"]));
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("--script FILE"), "{}", missing.stderr);
}
