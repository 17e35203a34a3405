//! Files and directories that deny their owner everything are restored, too.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::fixture::sandbox::{SandboxFixture, User};

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
