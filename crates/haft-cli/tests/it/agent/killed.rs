//! Runs that are killed again and again: what comes out is what comes out of a run that was not.
//!
//! Each command of the run has one effect, which is made or not. One that had its effect when Haft was killed is reported to the
//! model as interrupted and not repeated; one that had none is made again. So the tree is always the same, and the history is the
//! same but for the texts of the interrupted calls.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use haft_agent::{RunState, read_run};
use haft_ledger::{EventLog as _, Ledger, ReceiptQuery};
use haft_model::{ChatMessage, ToolResult};
use serde_json::{Value, json};

use super::{says, scripted, scripted_command};
use crate::fixture::cli::CliFixture;
use crate::fixture::random::TestRng;
use crate::fixture::tree::{differences, timeless};

/// How often a run is killed by default; `HAFT_KILLS` is another number.
const KILLS: usize = 60;
/// Answers of the model before the last one.
const TURNS: usize = 20;
/// A kill comes after so many events of the run, at most.
const MAX_EVENTS: usize = 12;
/// And so much later, at most: about as long as a call takes.
const MAX_DELAY_MICROS: usize = 30_000;
/// The beginning of the result of an interrupted call.
const INTERRUPTED: &str = "interrupted: Haft ended while this call ran. It had changed ";

/// A workspace in which every step of the run can be made.
fn workspace() -> CliFixture {
    let cli = CliFixture::new();
    cli.write("log.txt", "begin\n");
    for turn in 0..TURNS {
        cli.write(&format!("old{turn}"), "old\n");
    }
    cli
}

/// One call per turn, of several kinds; every fifth turn has three.
fn script(cli: &CliFixture) -> Vec<Value> {
    let bash = |command: String| json!({"name": "Bash", "arguments": {"command": command}});
    let step = |turn: usize| {
        let append = bash(format!("echo {turn} >> log.txt; echo appended {turn}"));
        let calls = match turn % 5 {
            0 => vec![append],
            1 => vec![bash(format!("mv old{turn} moved{turn} && echo moved"))],
            2 => vec![bash(format!("mkdir dir{turn}")), bash("wc -l < log.txt".to_owned())],
            3 => vec![bash(format!("rm old{turn}"))],
            _ => vec![
                append,
                json!({"name": "Write", "arguments": {"file_path": cli.path(&format!("new{turn}")), "content": "made\n"}}),
                json!({"name": "Read", "arguments": {"file_path": cli.path("log.txt")}}),
            ],
        };
        json!({ "calls": calls })
    };
    (0..TURNS).map(step).chain([says("Done.")]).collect()
}

/// The newest run of a workspace.
fn newest_run(cli: &CliFixture) -> Option<(String, RunState)> {
    let ledger = Ledger::open(cli.home()).ok()?;
    let session = ledger.sessions(1).ok()?.pop()?.id;
    let state = read_run(&ledger, &session).ok()??;
    Some((session, state))
}

/// The results of a run by the ids of their calls, without the path of the workspace.
fn results(cli: &CliFixture, state: &RunState) -> BTreeMap<String, ToolResult> {
    let root = cli.root().to_str().unwrap();
    let messages = state.conversation.messages.iter().filter_map(|message| match message {
        ChatMessage::ToolResults { results, .. } => Some(results),
        _ => None,
    });
    let mut by_call = BTreeMap::new();
    for result in messages.flatten() {
        let text = serde_json::to_string(result).unwrap().replace(root, "/workspace");
        let result: ToolResult = serde_json::from_str(&text).unwrap();
        assert!(by_call.insert(result.call_id.clone(), result).is_none(), "a call has two results");
    }
    by_call
}

/// Waits until the run has so many more events, and a moment longer; earlier if it ends.
fn wait_for_moment(cli: &CliFixture, child: &mut Child, more: usize, delay: Duration) {
    let seq = |run: &Option<(String, RunState)>| {
        let ledger = Ledger::open(cli.home()).ok()?;
        let (session, _) = run.as_ref()?;
        ledger.read(session, 1, usize::MAX >> 1).ok().map(|events| events.len())
    };
    let begun = newest_run(cli);
    let before = seq(&begun).unwrap_or(0);
    let mut now = begun;
    while child.try_wait().unwrap().is_none() {
        if now.is_none() {
            now = newest_run(cli);
        }
        if seq(&now).unwrap_or(0) >= before + more {
            break;
        }
        std::thread::yield_now();
    }
    let start = Instant::now();
    while start.elapsed() < delay && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
}

/// Runs the script and kills it up to `kills` times; returns how often.
fn run_with_kills(cli: &CliFixture, script: &[Value], kills: usize, rng: &mut TestRng) -> usize {
    let mut killed = 0;
    loop {
        let state = newest_run(cli).map(|(_, state)| state);
        let args: &[&str] = match &state {
            Some(state) if state.turns.is_empty() => &["-p", "--continue", "Count."],
            Some(state) if state.is_turn_open => &["-p", "--continue"],
            Some(_) => return killed,
            None => &["-p", "Count."],
        };
        if killed == kills {
            let last = scripted(cli, script, args);
            assert_eq!((last.code, last.stdout.as_str()), (0, "Done.\n"), "{}", last.stderr);
            return killed;
        }
        let mut command = scripted_command(cli, script, args);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (more, delay) = (rng.below(MAX_EVENTS), rng.below(MAX_DELAY_MICROS));
        wait_for_moment(cli, &mut child, more, Duration::from_micros(delay as u64));
        child.kill().unwrap();
        killed += usize::from(!child.wait().unwrap().success());
    }
}

/// How many receipts with changes each command has. Those of file tools have also changes that were only intended.
fn changing_receipts(cli: &CliFixture, session: &str) -> BTreeMap<String, usize> {
    let ledger = Ledger::open(cli.home()).unwrap();
    let query = ReceiptQuery { session: Some(session.to_owned()), limit: 1_000, ..ReceiptQuery::default() };
    let mut counts = BTreeMap::new();
    for summary in ledger.summaries(&query).unwrap() {
        let receipt = ledger.complete(summary).unwrap();
        if receipt.tool != "Bash" {
            continue;
        }
        *counts.entry(receipt.call_id).or_default() += usize::from(!receipt.changes.is_empty());
    }
    counts
}

#[test]
fn a_run_killed_at_random_moments_comes_out_as_one_that_was_not() {
    let kills = std::env::var("HAFT_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let mut rng = TestRng(17);
    let whole = workspace();
    assert_eq!(run_with_kills(&whole, &script(&whole), 0, &mut rng), 0);
    let (session, state) = newest_run(&whole).unwrap();
    let (tree, expected) = (timeless(whole.root(), &[]), results(&whole, &state));
    let changing = changing_receipts(&whole, &session);
    let (mut killed, mut interrupted, mut runs) = (0, 0, 0);
    while killed < kills {
        let cli = workspace();
        let of_run = run_with_kills(&cli, &script(&cli), (kills - killed).min(TURNS), &mut rng);
        (killed, runs) = (killed + of_run, runs + 1);
        let (session, end) = newest_run(&cli).unwrap();
        let different = differences(&tree, &timeless(cli.root(), &[]));
        assert!(different.is_empty(), "run {runs}: {different:?}");
        assert_eq!(end.conversation.messages.len(), state.conversation.messages.len(), "run {runs}");
        let found = results(&cli, &end);
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        let differing = found.iter().filter(|(id, result)| expected[*id] != **result);
        let differing: Vec<_> = differing.collect();
        for (id, result) in &differing {
            let is_interrupted = result.text().starts_with(INTERRUPTED);
            assert!(is_interrupted, "run {runs}: {id}: {result:?} instead of {:?}", expected[*id]);
        }
        interrupted += differing.len();
        let once = changing_receipts(&cli, &session);
        let made: BTreeMap<_, _> = changing.keys().map(|id| (id.clone(), once[id])).collect();
        assert_eq!(made, changing, "run {runs}");
    }
    assert!(interrupted <= killed, "{interrupted} of {killed}");
    eprintln!("{killed} kills in {runs} runs; {interrupted} calls were reported as interrupted");
}
