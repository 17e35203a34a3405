//! What remains when Haft is killed: after an undo either the tree before or the tree after it, and nothing unjudged.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::fixture::random::TestRng;
use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::tree::{differences, timeless};
use crate::fixture::wait_until;

const KILLS: u64 = 25;

#[test]
fn e38_killed_undo_leaves_the_old_or_the_new_tree() {
    let fixture = SandboxFixture::new(User::Current);
    let set_up =
        "mkdir -p a/b c; for i in $(seq 150); do echo $i > a/b/$i; done; echo l > l; ln l c/l; ln l a/l";
    assert_eq!(fixture.unsandboxed(set_up).code, 0);
    let before = timeless(&fixture.work(), &[]);
    let script = "sed -i s/1/2/ a/b/*; echo more >> l; mv a z; mv c z/b/c; rm z/b/?; mkdir a; touch a/$(seq -s ' a/' 50)";
    assert_eq!(fixture.inside(script).code, 0);
    let after = timeless(&fixture.work(), &[]);
    let (mut rng, mut undone) = (TestRng(7), 0);
    for kill in 0..KILLS {
        let mut undo = fixture.bare(&fixture.program());
        let mut undo = undo.args(["undo", "--yes", "1"]).spawn().unwrap();
        // A restore creates its stage before anything else.
        let is_stage = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(".haft-");
        let has_stage = || fs::read_dir(fixture.work()).unwrap().flatten().any(|entry| is_stage(&entry));
        while !has_stage() && undo.try_wait().unwrap().is_none() {}
        for _ in 0..rng.below(400) {
            std::hint::black_box(has_stage());
        }
        let _ = undo.kill();
        undo.wait().unwrap();
        // The next command recovers.
        assert_eq!(fixture.haft(&["log"]).code, 0);
        let now = timeless(&fixture.work(), &[]);
        if now == before {
            undone += 1;
            let redo = fixture.haft(&["redo", "--yes"]);
            assert_eq!(redo.code, 0, "kill {kill}: {}", redo.stderr);
            let now = timeless(&fixture.work(), &[]);
            assert_eq!(differences(&after, &now), [] as [String; 0], "kill {kill}: after the redo");
        } else {
            assert_eq!(differences(&after, &now), [] as [String; 0], "kill {kill}: neither old nor new");
        }
    }
    assert!(undone < KILLS, "no kill hit the undo, so this test has shown nothing");
}

#[test]
fn a8_call_of_a_killed_haft_is_recovered_before_the_next_call_changes_its_files() {
    let fixture = SandboxFixture::new(User::Current);
    fixture.file("work/f", "orig\n");
    let mut haft = fixture.bare(&fixture.program());
    let script = "echo one > f; touch ready; sleep 600";
    let mut haft = haft.args(["sandbox", "--", "bash", "-c", script]).spawn().unwrap();
    wait_until(|| fixture.work().join("ready").exists());
    haft.kill().unwrap();
    haft.wait().unwrap();
    wait_until(|| fixture.processes().is_empty());
    assert_eq!(fixture.inside("echo two > f").code, 0);
    for expected in ["one\n", "orig\n"] {
        let undo = fixture.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 0, "{}{}", undo.stdout, undo.stderr);
        assert_eq!(fs::read_to_string(fixture.work().join("f")).unwrap(), expected);
    }
}

/// Writes a hook and a file of settings, and keeps them open: they are judged a second later, or at the end.
const HOLD_GUARDED: &str = "exec 3> .git/hooks/pre-commit 4> .mcp.json; echo evil >&3; echo evil >&4; \
     chmod +x .git/hooks/pre-commit; echo b > f; touch ready; sleep 600";

/// A repository with a file, and no hook.
fn repository() -> SandboxFixture {
    let fixture = SandboxFixture::new(User::Current);
    assert_eq!(fixture.unsandboxed("git init -q; rm .git/hooks/*; echo a > f").code, 0);
    fixture
}

fn has_no_guarded_change(fixture: &SandboxFixture) {
    for name in [".git/hooks/pre-commit", ".mcp.json"] {
        assert!(!fixture.work().join(name).exists(), "{name}");
    }
    assert_eq!(fs::read_to_string(fixture.work().join("f")).unwrap(), "b\n");
    let shown = fixture.haft(&["show", "1"]).stdout;
    assert!(shown.contains("refused     write") && shown.contains("pre-commit"), "{shown}");
    let undo = fixture.haft(&["undo", "--yes", "1"]);
    assert_eq!(undo.code, 0, "{}{}", undo.stdout, undo.stderr);
    assert_eq!(fs::read_to_string(fixture.work().join("f")).unwrap(), "a\n");
    assert!(!fixture.work().join("ready").exists());
}

#[test]
fn b3b_what_a_killed_haft_did_not_judge_is_restored_by_recovery() {
    let fixture = repository();
    let mut haft = fixture.bare(&fixture.program());
    let mut haft = haft.args(["sandbox", "--", "bash", "-c", HOLD_GUARDED]).spawn().unwrap();
    wait_until(|| fixture.work().join("ready").exists());
    haft.kill().unwrap();
    haft.wait().unwrap();
    wait_until(|| fixture.processes().is_empty());
    assert_eq!(fixture.haft(&["log"]).code, 0);
    has_no_guarded_change(&fixture);
}

#[test]
fn b3b_what_a_command_left_is_judged_when_its_terminal_is_closed() {
    let fixture = repository();
    let mut haft = fixture.bare(&fixture.program());
    let mut haft = haft.args(["sandbox", "--", "bash", "-c", HOLD_GUARDED]).spawn().unwrap();
    wait_until(|| fixture.work().join("ready").exists());
    send_signal(haft.id(), "HUP");
    haft.wait().unwrap();
    has_no_guarded_change(&fixture);
}

#[test]
fn b3b_background_task_is_judged_when_the_server_is_terminated() {
    let fixture = repository();
    let mut session = fixture.session("true");
    session.call("Bash", &json!({"command": HOLD_GUARDED, "run_in_background": true}));
    wait_until(|| fixture.work().join("ready").exists());
    send_signal(session.id(), "TERM");
    session.wait();
    wait_until(|| fixture.processes().is_empty());
    for name in [".git/hooks/pre-commit", ".mcp.json"] {
        assert!(!fixture.work().join(name).exists(), "{name}");
    }
    assert_eq!(fixture.haft(&["undo", "--yes"]).code, 0);
    assert_eq!(fs::read_to_string(fixture.work().join("f")).unwrap(), "a\n");
}

fn send_signal(process: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn a8_edit_after_the_end_of_a_killed_haft_is_no_change_of_its_command() {
    let fixture = SandboxFixture::new(User::Current);
    fixture.file("work/f", "orig\n");
    fixture.file("work/g", "orig\n");
    let mut haft = fixture.bare(&fixture.program());
    let script = "echo one > f; echo one > g; touch ready; sleep 600";
    let mut haft = haft.args(["sandbox", "--", "bash", "-c", script]).spawn().unwrap();
    wait_until(|| fixture.work().join("ready").exists());
    haft.kill().unwrap();
    haft.wait().unwrap();
    wait_until(|| fixture.processes().is_empty());
    // The file system's clock has advanced since the last process ended.
    let ended = || fs::metadata(fixture.path("ledger/spool/1")).unwrap().modified().unwrap();
    wait_until(|| ended().elapsed().is_ok_and(|elapsed| elapsed > Duration::from_millis(50)));
    fixture.file("work/f", "the user's\n");
    let undo = fixture.haft(&["undo", "--yes"]);
    assert!(undo.code != 0 && undo.stdout.contains("f was changed while the call ran"), "{}", undo.stdout);
    assert!(!undo.stdout.contains("g was changed"), "{}", undo.stdout);
    let read = |name: &str| fs::read_to_string(fixture.work().join(name)).unwrap();
    assert_eq!((read("f").as_str(), read("g").as_str()), ("the user's\n", "one\n"));
    assert_eq!(fixture.haft(&["undo", "--yes", "--force"]).code, 0);
    assert_eq!((read("f").as_str(), read("g").as_str()), ("orig\n", "orig\n"));
}
