//! Undo restores exactly what was there, whatever a command did, including which names are the same file.

use std::path::PathBuf;

use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::tree::{Tree, TreeEntry, differences, timeless};
use crate::fixture::wait_until;

/// Random operations; the arguments are a seed and their number.
const OPERATIONS: &str = include_str!("operations.py");
/// Scripts per test; `HAFT_SEEDS` runs more of them.
const SEEDS: u64 = 16;
const OPERATIONS_PER_SCRIPT: usize = 700;

fn seeds(default: u64) -> std::ops::Range<u64> {
    let count = std::env::var("HAFT_SEEDS").ok().and_then(|count| count.parse().ok());
    let first = std::env::var("HAFT_FIRST_SEED").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    first..first + count.unwrap_or(default)
}

fn script(seed: u64, count: usize) -> String {
    format!("python3 - {seed} {count} <<'END'\n{OPERATIONS}\nEND\n")
}

/// The same, with names that are exchanged.
fn exchanging_script(seed: u64, count: usize) -> String {
    format!("python3 - {seed} {count} exchange <<'END'\n{OPERATIONS}\nEND\n")
}

fn look(fixture: &SandboxFixture) -> Tree {
    timeless(&fixture.work(), &[])
}

/// A workspace with random files; every second one is without namespaces.
fn fixture_for(seed: u64) -> SandboxFixture {
    let fixture = SandboxFixture::new(User::Current).with_namespaces(seed.is_multiple_of(2));
    let ran = fixture.unsandboxed(&script(seed + 1_000_000, 150));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    fixture
}

#[test]
fn e45_long_scripts_are_undone_and_redone_exactly() {
    let mut failures = String::new();
    for seed in seeds(SEEDS) {
        let fixture = fixture_for(seed);
        let before = look(&fixture);
        let ran = fixture.inside(&exchanging_script(seed, OPERATIONS_PER_SCRIPT));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let after = look(&fixture);
        for (word, expected) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            let ran = fixture.haft(&[word, "--yes"]);
            let wrong = differences(expected, &look(&fixture));
            if ran.code != 0 || !wrong.is_empty() {
                failures.push_str(&format!("seed {seed}, {word}: {wrong:?}\n{}\n", ran.stderr));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn e45_several_long_scripts_of_a_session_are_undone_together() {
    let mut failures = String::new();
    for seed in seeds(SEEDS / 4) {
        let fixture = fixture_for(seed);
        let mut trees = vec![look(&fixture)];
        for part in 0..4 {
            assert_eq!(fixture.inside(&script(seed * 100 + part, 120)).code, 0);
            trees.push(look(&fixture));
        }
        trees.pop();
        let mut divides_files = false;
        for (part, expected) in trees.iter_mut().enumerate().rev() {
            let undo = fixture.haft(&["undo", "--yes"]);
            let mut now = look(&fixture);
            // An undo recreated a file that had only one name left, and an earlier undo another of its names.
            divides_files |= undo.stderr.contains("had other names (hard links), which are other files now");
            if divides_files {
                let is_divided = |path: &PathBuf| expected.get(path).is_some_and(TreeEntry::has_other_names);
                now.retain(|path, _| !is_divided(path));
                expected.retain(|_, entry| !entry.has_other_names());
            }
            let wrong = differences(expected, &now);
            if undo.code != 0 || !wrong.is_empty() {
                failures.push_str(&format!("seed {seed}, part {part}: {wrong:?}\n{}\n", undo.stderr));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn e45_long_scripts_of_a_killed_haft_are_undone_exactly() {
    let mut failures = String::new();
    for seed in seeds(SEEDS / 2) {
        let fixture = fixture_for(seed);
        let before = look(&fixture);
        let script = exchanging_script(seed, OPERATIONS_PER_SCRIPT) + "touch .ready; sleep 600";
        let mut haft = fixture.bare(&fixture.program());
        let mut haft = haft.args(["sandbox", "--", "bash", "-c", &script]).spawn().unwrap();
        wait_until(|| fixture.work().join(".ready").exists());
        haft.kill().unwrap();
        haft.wait().unwrap();
        wait_until(|| fixture.processes().is_empty());
        let undo = fixture.haft(&["undo", "--yes"]);
        let wrong = differences(&before, &look(&fixture));
        if undo.code != 0 || !wrong.is_empty() {
            failures.push_str(&format!("seed {seed}: {wrong:?}\n{}\n", undo.stderr));
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Sets a workspace up, runs a command in the sandbox and undoes it.
fn assert_undone(set_up: &str, command: &str) {
    SandboxFixture::in_both_modes(User::Current, |fixture| {
        assert_eq!(fixture.unsandboxed(set_up).code, 0);
        let before = look(fixture);
        let ran = fixture.inside(command);
        assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
        assert!(!differences(&before, &look(fixture)).is_empty(), "{command} did nothing");
        let undo = fixture.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 0, "{command}: {}{}", undo.stdout, undo.stderr);
        assert_eq!(differences(&before, &look(fixture)), [] as [String; 0], "{command}");
    });
}

#[test]
fn e44_names_of_one_file_stay_one_file_across_a_moved_directory() {
    assert_undone("mkdir d; echo old > f; ln f d/f", "echo new > f; mv d e; rm f e/f");
    assert_undone("mkdir d; echo old > f; ln f d/f", "echo new > d/f; mv d e; mv e g; rm g/f; echo x >> f");
    assert_undone("mkdir d; echo old > f; ln f d/f; ln f d/g", "mv d e; echo new > e/f; rm -r e; echo x > f");
}

#[test]
fn e45_file_renamed_while_open_and_written_after_a_move_is_restored() {
    assert_undone("mkdir d; echo old > f", "exec 5>> f; mv f g; mv d e; echo late >&5");
    assert_undone(
        "mkdir -p d/k; echo old > d/f",
        "exec 5>> d/f; mv d/f d/g; mv d e; echo late >&5; mv e/k k",
    );
    assert_undone("mkdir d; echo old > f; ln f h", "exec 5>> f; mv f d/f; mv d e; echo late >&5; rm h");
}

#[test]
fn undo_says_that_names_of_one_file_are_several_files_now() {
    let fixture = SandboxFixture::new(User::Current);
    assert_eq!(fixture.unsandboxed("echo old > a; ln a b; echo old > c; ln c d").code, 0);
    let before = look(&fixture);
    for command in ["rm a c", "echo new > x; mv x b"] {
        assert_eq!(fixture.inside(command).code, 0);
    }
    // The file of `b` had one name when it was replaced, so it comes back as a separate file.
    let undo = fixture.haft(&["undo", "--yes"]);
    assert!(!undo.stderr.contains("note: "), "{}", undo.stderr);
    let undo = fixture.haft(&["undo", "--yes"]);
    assert!(undo.stderr.contains("/work/a had other names (hard links)"), "{}", undo.stderr);
    assert!(!undo.stderr.contains("/work/c had"), "{}", undo.stderr);
    assert!(fixture.haft(&["show", "4"]).stdout.contains("partly: "), "{}", undo.stderr);
    let wrong = differences(&before, &look(&fixture));
    assert!(wrong.len() == 2 && wrong.iter().all(|line| line.ends_with("2 links became 1")), "{wrong:?}");
}
