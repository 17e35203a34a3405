//! Files and directories that deny their owner everything are restored, too.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::tree::{Tree, differences, timeless};
use crate::fixture::wait_until;

fn ordinary_user() -> SandboxFixture {
    SandboxFixture::new(if User::is_root() { User::Unprivileged } else { User::Current })
}

fn mode(fixture: &SandboxFixture, name: &str) -> u32 {
    fs::metadata(fixture.path("work").join(name)).unwrap().permissions().mode() & 0o7777
}

/// Runs a command and undoes it.
fn undone(fixture: &SandboxFixture, set_up: &str, command: &str) {
    assert_eq!(fixture.unsandboxed(set_up).code, 0, "{set_up}");
    assert_eq!(fixture.inside(command).code, 0, "{command}");
    let undo = fixture.haft(&["undo", "--yes"]);
    assert_eq!(undo.code, 0, "{command}: {}{}", undo.stdout, undo.stderr);
    let left = fs::read_dir(fixture.work()).unwrap().flatten().map(|entry| entry.file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().starts_with(".haft-")), "{command}");
}

#[test]
fn b11_directories_that_their_owner_cannot_search_are_restored() {
    let fixture = ordinary_user();
    undone(&fixture, "mkdir d; chmod 755 d; echo a > d/f", "chmod 000 d");
    assert_eq!(mode(&fixture, "d"), 0o755);
    undone(&fixture, "mkdir -p k/e; echo a > k/e/f; chmod 000 k/e", "chmod 755 k/e; rm -r k");
    assert_eq!(mode(&fixture, "k/e"), 0);
    assert_eq!(fixture.unsandboxed("chmod 700 k/e; grep -q a k/e/f").code, 0);
}

#[test]
fn b12_attributes_of_a_file_that_its_owner_cannot_read_are_restored() {
    let fixture = ordinary_user();
    let set_up = r#"echo a > f; python3 -c 'import os; os.setxattr("f", "user.x", b"v")'; chmod 000 f"#;
    undone(&fixture, set_up, "rm -f f");
    assert_eq!(mode(&fixture, "f"), 0);
    let look = r#"chmod 600 f; python3 -c 'import os; assert os.getxattr("f", "user.x") == b"v"'"#;
    assert_eq!(fixture.unsandboxed(look).code, 0);
}

/// What to set up, and commands that close directories after they changed something in them.
const CLOSING: [(&str, &str); 9] = [
    (
        "mkdir -p d/e; echo a > d/f; echo b > d/e/g; echo s > d/same",
        "echo x > d/f; rm d/e/g; echo n > d/e/n; chmod 000 d",
    ),
    (
        "mkdir -p d/e/k; echo a > d/f; echo c > d/e/k/h",
        "echo x > d/e/k/h; mkdir d/e/new; echo n > d/e/new/n; chmod 000 d/e/new d/e/k d/e d",
    ),
    (
        "mkdir -p d/e; echo b > d/e/g; chmod 500 d/e",
        "chmod 700 d/e; echo x > d/e/g; chmod 000 d/e; chmod 300 d",
    ),
    ("echo a > f", "mkdir -p m/n/o p; echo a > m/n/f; chmod 000 m/n/o m/n m p"),
    ("mkdir d; echo a > d/f; echo b > d/g", "echo x > d/f; echo y > d/n; chmod 000 d/f d/g d/n"),
    ("mkdir -p d/e", "chmod 000 d/e; rmdir d/e; rmdir d"),
    ("mkdir d; echo a > d/f; chmod 000 d", "chmod 700 d; echo x > d/f; chmod 000 d"),
    (
        "mkdir d; python3 -c 'import os; os.setxattr(\"d\", \"user.x\", b\"v\")'; chmod 000 d",
        "chmod 755 d; touch d/f",
    ),
    (
        "mkdir d; echo a > d/f; python3 -c 'import os; os.setxattr(\"d\", \"user.x\", b\"v\")'",
        "python3 -c 'import os; os.setxattr(\"d\", \"user.x\", b\"w\")'; rm d/f; chmod 000 d",
    ),
];

/// Undoes and redoes the last call, and compares the trees.
fn assert_undone_and_redone(fixture: &SandboxFixture, before: &Tree, command: &str) {
    let after = timeless(&fixture.work(), &[]);
    let preview = fixture.haft(&["undo", "--dry-run"]);
    assert_eq!(preview.code, 0, "{command}: {}", preview.stderr);
    assert_eq!(
        differences(&after, &timeless(&fixture.work(), &[])),
        [] as [String; 0],
        "{command}: a preview"
    );
    for (word, expected) in [("undo", before), ("redo", &after), ("undo", before)] {
        let ran = fixture.haft(&[word, "--yes"]);
        assert_eq!(ran.code, 0, "{command}: {word}: {}{}", ran.stdout, ran.stderr);
        let wrong = differences(expected, &timeless(&fixture.work(), &[]));
        assert_eq!(wrong, [] as [String; 0], "{command}: {word}");
    }
}

#[test]
fn f5_changes_in_directories_that_a_command_closed_are_undone() {
    for (set_up, command) in CLOSING {
        let fixture = ordinary_user();
        assert_eq!(fixture.unsandboxed(set_up).code, 0, "{set_up}");
        let before = timeless(&fixture.work(), &[]);
        let ran = fixture.inside(command);
        assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
        let shown = fixture.haft(&["show", "1"]).stdout;
        assert!(shown.contains("reversible  yes"), "{command}: {shown}");
        assert_undone_and_redone(&fixture, &before, command);
    }
}

#[test]
fn f5_changes_in_closed_directories_are_found_if_haft_was_killed() {
    for (set_up, command) in CLOSING {
        let fixture = ordinary_user();
        assert_eq!(fixture.unsandboxed(set_up).code, 0, "{set_up}");
        let before = timeless(&fixture.work(), &[]);
        let mut haft = fixture.bare(&fixture.program());
        let script = format!("{command}; touch .ready; sleep 600");
        let mut haft = haft.args(["sandbox", "--", "bash", "-c", &script]).spawn().unwrap();
        wait_until(|| fixture.work().join(".ready").exists());
        haft.kill().unwrap();
        haft.wait().unwrap();
        wait_until(|| fixture.processes().is_empty());
        assert_eq!(fixture.haft(&["log"]).code, 0, "{command}");
        assert_undone_and_redone(&fixture, &before, command);
    }
}

#[test]
fn f5_closed_directory_with_a_file_of_another_program_is_not_removed() {
    let fixture = ordinary_user();
    assert_eq!(fixture.inside("mkdir -p d/e; echo a > d/f; chmod 000 d/e d").code, 0);
    let after = "chmod 700 d; chmod 700 d/e; echo theirs > d/e/theirs; chmod 000 d/e d";
    assert_eq!(fixture.unsandboxed(after).code, 0);
    let tree = timeless(&fixture.work(), &[]);
    let undo = fixture.haft(&["undo", "--yes"]);
    assert_ne!(undo.code, 0, "{}", undo.stdout);
    assert_eq!(differences(&tree, &timeless(&fixture.work(), &[])), [] as [String; 0]);
}
