//! Calls that changed nothing: written down at once, entered later, in order, once.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use haft_ledger::{Daybook, Ledger, Query};
use haft_tool::State;

use crate::setting::{Blind, call, new_session, setting};

const HOME: &str = "HAFT_TEST_SLIPS_HOME";

fn ids(ledger: &Ledger) -> Vec<i64> {
    let all = Query { limit: 100_000, ..Query::default() };
    ledger.receipts(&all).unwrap().iter().rev().map(|receipt| receipt.id).collect()
}

#[test]
fn a_slip_has_its_number_at_once_and_is_found_by_whoever_looks() {
    let set = setting();
    let daybook = Daybook::open(&set.home(), &new_session("/w")).unwrap().unwrap();
    let mut first = call(daybook.session());
    first.state = State::Completed;
    daybook.note(&mut first, false).unwrap();
    let wrote = set.wrote("a", b"before", b"after");
    let mut second = call(daybook.session());
    second.state = State::Failed;
    daybook.note(&mut second, false).unwrap();
    assert!(first.id < wrote.id && wrote.id < second.id, "numbers come in the order of the calls");

    let other = Ledger::open(set.home()).unwrap();
    assert_eq!(other.receipt(first.id).unwrap(), first);
    assert_eq!(other.receipt(second.id).unwrap(), second);
    assert_eq!(other.session(daybook.session()).unwrap().calls, 2);
    assert_eq!(ids(&other), [first.id, wrote.id, second.id]);
    assert_eq!(ids(&set.ledger), ids(&other), "once, whoever looks first");
}

#[test]
fn a_call_that_begins_on_a_slip_ends_on_one_or_in_the_ledger() {
    let set = setting();
    let daybook = Daybook::open(&set.home(), &new_session("/w")).unwrap().unwrap();
    let begin = || {
        let mut receipt = call(daybook.session());
        receipt.state = State::Running;
        daybook.note(&mut receipt, false).unwrap();
        receipt
    };
    let (mut quiet, mut loud, cut_off) = (begin(), begin(), begin());
    quiet.state = State::Completed;
    daybook.note(&mut quiet, false).unwrap();
    assert_eq!(set.ledger.receipt(quiet.id).unwrap(), quiet, "both slips at once");
    assert_eq!(set.ledger.receipt(loud.id).unwrap().state, State::Running);
    loud.state = State::Failed;
    set.ledger.finish(&mut loud).unwrap();
    assert_eq!(set.ledger.receipt(loud.id).unwrap(), loud);
    let recovered = set.ledger.recover(&mut Blind).unwrap();
    assert!(recovered.is_empty(), "its process is this one, and lives");
    assert_eq!(ids(&set.ledger), [quiet.id, loud.id, cut_off.id]);
}

#[test]
fn what_is_left_for_later_has_its_number_and_is_there_once_it_is_settled() {
    let set = setting();
    let daybook = Daybook::open(&set.home(), &new_session("/w")).unwrap().unwrap();
    let note = |later| {
        let mut receipt = call(daybook.session());
        receipt.state = State::Completed;
        daybook.note(&mut receipt, later).unwrap();
        receipt.id
    };
    let first = [note(true), note(true)];
    assert!(ids(&set.ledger).is_empty(), "nobody has been told of them");
    daybook.settle().unwrap();
    assert_eq!(ids(&set.ledger), first);
    let (later, at_once) = (note(true), note(false));
    assert_eq!(
        ids(&set.ledger),
        [first[0], first[1], later, at_once],
        "whoever does not wait takes all along"
    );
    let same_process = note(true);
    assert_eq!(*ids(&daybook.ledger().unwrap()).last().unwrap(), same_process, "whoever looks settles it");
    let many: Vec<i64> = (0..400).map(|_| note(true)).collect();
    assert!(ids(&set.ledger).contains(&many[0]), "there is a bound to what is kept");
    drop(daybook);
    assert_eq!(ids(&set.ledger).last(), many.last(), "nothing is left behind");
}

#[test]
fn a_home_without_a_ledger_has_no_daybook_yet() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Daybook::open(&dir.path().join("home"), &new_session("/w")).unwrap().is_none());
}

#[test]
fn slips_of_many_threads_and_of_a_ledger_beside_them_are_all_there_once() {
    let set = setting();
    let home = set.home();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let home = home.clone();
            std::thread::spawn(move || {
                let daybook = Daybook::open(&home, &new_session("/w")).unwrap().unwrap();
                let mut mine = Vec::new();
                for _ in 0..500 {
                    let mut receipt = call(daybook.session());
                    receipt.state = State::Completed;
                    // Long enough for the file to be begun anew several times.
                    receipt.call_id = "x".repeat(1_000);
                    daybook.note(&mut receipt, false).unwrap();
                    mine.push(receipt.id);
                }
                assert!(mine.is_sorted());
                mine
            })
        })
        .collect();
    let looking = Arc::new(Ledger::open(&home).unwrap());
    while threads.iter().any(|thread| !thread.is_finished()) {
        ids(&looking);
    }
    let told: Vec<i64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    let told: BTreeSet<i64> = told.into_iter().collect();
    assert_eq!(told.len(), 2_000);
    assert_eq!(ids(&looking).into_iter().collect::<BTreeSet<_>>(), told);
    assert!(fs::metadata(home.join("slips")).unwrap().len() < 1 << 20, "what was entered makes room");
}

#[test]
fn what_is_torn_takes_nothing_that_came_before_with_it() {
    let set = setting();
    let daybook = Daybook::open(&set.home(), &new_session("/w")).unwrap().unwrap();
    let mut kept = call(daybook.session());
    kept.state = State::Completed;
    daybook.note(&mut kept, false).unwrap();
    let slips = set.home().join("slips");
    let mut bytes = fs::read(&slips).unwrap();
    bytes.extend_from_slice(&[200, 0, 0, 0, 1, 2, 3, 4, b'{']);
    fs::write(&slips, bytes).unwrap();
    assert_eq!(ids(&set.ledger), [kept.id]);
    let mut next = call(daybook.session());
    next.state = State::Completed;
    daybook.note(&mut next, false).unwrap();
    assert_eq!(ids(&set.ledger), [kept.id, next.id]);
}

/// Writes slips until it is killed. It is the victim of the test below, which starts it.
#[test]
fn victim() {
    let Some(home) = std::env::var_os(HOME) else { return };
    let daybook = Daybook::open(home.as_ref(), &new_session("/w")).unwrap().unwrap();
    let mut out = std::io::stdout();
    loop {
        let ids: Vec<i64> = [true, true, false, true, true]
            .into_iter()
            .map(|later| {
                let mut receipt = call(daybook.session());
                receipt.state = State::Completed;
                daybook.note(&mut receipt, later).unwrap();
                receipt.id
            })
            .collect();
        daybook.settle().unwrap();
        for id in ids {
            writeln!(out, "\nslip {id}").unwrap();
        }
    }
}

#[test]
fn a_slip_that_was_acknowledged_survives_a_kill() {
    let set = setting();
    let mut told = BTreeSet::new();
    for round in 0..20 {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "slips::victim", "--nocapture", "--test-threads=1"])
            .env(HOME, set.home())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines().map_while(Result::ok);
        let heard = |line: String| line.strip_prefix("slip ").and_then(|id| id.parse::<i64>().ok());
        let mut wanted = round * 7;
        while wanted > 0 {
            if let Some(id) = heard(lines.next().unwrap()) {
                told.insert(id);
                wanted -= 1;
            }
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        told.extend(lines.filter_map(heard));
        let there: BTreeSet<i64> = ids(&set.ledger).into_iter().collect();
        assert!(told.is_subset(&there), "round {round}");
    }
}
