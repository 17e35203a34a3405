//! Limits on rounds, dollars and time, each with its own reason.

use std::time::Duration;

use haft_agent::{RunLimits, RunSettings, RunStop, default_rounds};
use haft_model::{ModelPrice, PriceTable, ScriptModel};
use haft_tool::{Cancel, json};

use crate::fixture::*;

fn priced() -> PriceTable {
    let price = ModelPrice { input: 1.0, output: 1.0, cache_read: None, cache_write: None };
    PriceTable::default().with([("script/script".to_owned(), price)])
}

#[test]
fn the_limit_of_rounds_ends_the_turn_with_the_work_so_far() {
    let bench = Workbench::new();
    let step = |n: u32| {
        let call = json!({"name": "Bash", "arguments": {"command": format!("echo {n} > {n}.txt")}});
        json!({"text": format!("Step {n}."), "calls": [call]}).to_string()
    };
    let lines: Vec<String> = (1..=3).map(step).chain([json!({"text": "Done."}).to_string()]).collect();
    let limits = RunLimits { rounds: 2, ..RunLimits::default() };
    let model = ScriptModel::parse(&lines.join("\n")).unwrap();
    let mut run = bench.run_with(model, RunSettings { limits, ..RunSettings::default() });
    let report = say(&mut run, "Count.");
    assert_eq!((report.stop, report.text.as_str()), (RunStop::MaxTurns { rounds: 2 }, "Step 2."));
    assert_eq!(bench.read("2.txt"), "2\n");
    assert_valid(&run.state().conversation);
    // The next turn has its own rounds, and goes on from there.
    let report = say(&mut run, "Go on.");
    assert_eq!((report.stop, report.text.as_str()), (RunStop::Done, "Done."));
    assert_eq!((default_rounds("clawft"), default_rounds("claude")), (20, 50));
}

#[test]
fn the_limit_of_dollars_ends_the_turn_and_needs_a_price() {
    let bench = Workbench::new();
    let call = json!({"name": "Bash", "arguments": {"command": "true"}});
    let line = json!({"text": "Step.", "calls": [call], "usage": {"input": 400_000, "output": 100_000}});
    let script = [line.to_string(), line.to_string(), line.to_string()].join("\n");
    let limits = RunLimits { dollars: Some(0.9), ..RunLimits::default() };
    let settings =
        RunSettings { limits, prices: priced(), context_window: Some(u64::MAX), ..RunSettings::default() };
    let mut run = bench.run_with(ScriptModel::parse(&script).unwrap(), settings.clone());
    let report = say(&mut run, "Spend.");
    assert_eq!((report.stop, report.rounds), (RunStop::MaxBudget { dollars: 0.9 }, 2));
    assert_eq!(report.totals.cost_usd, Some(1.0));

    let settings = RunSettings { prices: PriceTable::list(), ..settings };
    let mut run = bench.run_with(ScriptModel::parse(&script).unwrap(), settings);
    let error = run.say(text("Spend."), &mut haft_agent::NoObserver, &Cancel::new()).unwrap_err();
    assert!(error.message.contains("price of script is not known"), "{error}");
}

#[test]
fn the_limit_of_time_stops_what_runs() {
    let bench = Workbench::new();
    let script = bench.calls(&[("Bash", json!({"command": "sleep 1000"}))]);
    let limits = RunLimits { time: Some(Duration::from_millis(300)), ..RunLimits::default() };
    let model = ScriptModel::parse(&script).unwrap();
    let mut run = bench.run_with(model, RunSettings { limits, ..RunSettings::default() });
    let report = say(&mut run, "Wait.");
    assert_eq!(report.stop, RunStop::Timeout { limit_ms: 300 });
    assert_valid(&run.state().conversation);
}

#[test]
fn an_answer_with_thousands_of_calls_ends_the_turn() {
    let bench = Workbench::new();
    let write = ("Write", json!({"file_path": "@/a.txt", "content": "a"}));
    let mut run = bench.run(&bench.calls(&vec![write; 1_001]));
    let RunStop::Failed { message, .. } = say(&mut run, "Go.").stop else { panic!("it went on") };
    assert!(message.contains("1001 calls, more than 1000"), "{message}");
    assert!(!bench.path("a.txt").exists());
    assert_valid(&run.state().conversation);
}
