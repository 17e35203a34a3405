//! What other programs put into a directory that a command made is theirs, and is recorded before the command changes it.

use std::fs;

use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::wait_until;

/// Runs a command that makes `d` and waits for `d/go`, after `theirs` has put files there.
fn run_beside(fixture: &SandboxFixture, then: &str, theirs: &str) {
    let script = format!("mkdir d; echo own > d/own; touch d/ready; while [ ! -e d/go ]; do :; done; {then}");
    let mut haft = fixture.bare(&fixture.program());
    let mut haft = haft.args(["sandbox", "--", "bash", "-c", &script]).spawn().unwrap();
    wait_until(|| fixture.path("work/d/ready").exists());
    assert_eq!(fixture.unsandboxed(&format!("{theirs}; touch d/go")).code, 0);
    assert!(haft.wait().unwrap().success());
}

fn read(fixture: &SandboxFixture, name: &str) -> String {
    fs::read_to_string(fixture.path("work").join(name)).unwrap_or_else(|error| error.to_string())
}

const THEIRS: &str =
    "for n in 1 2 3 4 5; do echo precious > d/$n; done; mkdir d/sub; echo precious > d/sub/f; ln d/5 d/5b";
const CHANGES: &str = "echo evil > d/1; rm d/2; mv d/3 d/moved; chmod 000 d/4; mv d/5 d/q; \
                       echo evil > d/sub/f; echo own > d/sub/own; mv d/sub d/renamed; rm d/ready";

#[test]
fn a7_files_of_others_in_a_new_directory_are_recorded_and_restored() {
    let fixture = SandboxFixture::new(User::Current);
    run_beside(&fixture, CHANGES, THEIRS);
    let show = fixture.haft(&["show", "1", "--all"]).stdout;
    for name in ["d/1", "d/2", "d/3", "d/4", "d/moved", "d/sub/f", "d/renamed/own"] {
        assert!(show.contains(name), "{name}: {show}");
    }
    let undo = fixture.haft(&["undo", "--yes"]);
    assert_eq!(undo.code, 0, "{}{}", undo.stdout, undo.stderr);
    for name in ["d/1", "d/2", "d/3", "d/4", "d/5", "d/5b", "d/sub/f"] {
        assert_eq!(read(&fixture, name), "precious\n", "{name}");
    }
    for name in ["d/own", "d/moved", "d/q", "d/sub/own", "d/renamed"] {
        assert!(!fixture.path("work").join(name).exists(), "{name}");
    }
}

#[test]
fn a7_files_of_others_follow_a_new_directory_that_is_moved() {
    let fixture = SandboxFixture::new(User::Current);
    run_beside(
        &fixture,
        "echo evil > d/1; mv d e; rm e/2; mv e/own own",
        "echo precious > d/1; echo precious > d/2",
    );
    let undo = fixture.haft(&["undo", "--yes"]);
    assert_eq!(undo.code, 0, "{}{}", undo.stdout, undo.stderr);
    assert_eq!((read(&fixture, "e/1"), read(&fixture, "e/2")), ("precious\n".into(), "precious\n".into()));
    assert!(!fixture.path("work/own").exists());
}

#[test]
fn a7_files_of_others_in_a_new_directory_are_restored_if_haft_was_killed() {
    let fixture = SandboxFixture::new(User::Current);
    let script =
        format!("mkdir d; touch d/ready; while [ ! -e d/go ]; do :; done; {CHANGES}; touch done; sleep 600");
    let mut haft = fixture.bare(&fixture.program());
    let mut haft = haft.args(["sandbox", "--", "bash", "-c", &script]).spawn().unwrap();
    wait_until(|| fixture.path("work/d/ready").exists());
    assert_eq!(fixture.unsandboxed(&format!("{THEIRS}; touch d/go")).code, 0);
    wait_until(|| fixture.path("work/done").exists());
    haft.kill().unwrap();
    haft.wait().unwrap();
    wait_until(|| fixture.processes().is_empty());
    let undo = fixture.haft(&["undo", "--yes"]);
    assert_eq!(undo.code, 0, "{}{}", undo.stdout, undo.stderr);
    for name in ["d/1", "d/2", "d/3", "d/4", "d/5", "d/5b", "d/sub/f"] {
        assert_eq!(read(&fixture, name), "precious\n", "{name}");
    }
    assert!(!fixture.path("work/done").exists());
}
