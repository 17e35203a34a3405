//! A receipt says `partly` where undo does not restore everything.

use crate::fixture::sandbox::{SandboxFixture, User};

/// The receipt of a command, after something was set up without Haft.
fn shown(set_up: &str, command: &str) -> String {
    let fixture = SandboxFixture::new(User::Current);
    let ran = fixture.unsandboxed(set_up);
    assert_eq!(ran.code, 0, "{set_up}: {}", ran.stderr);
    let ran = fixture.inside(command);
    assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
    fixture.haft(&["show", "1"]).stdout
}

fn python(code: &str) -> String {
    format!("python3 -c \"import os; {code}\"")
}

#[test]
fn e24_attributes_of_a_directory_are_not_called_reversible() {
    let set = |name: &str| python(&format!("os.setxattr('d', 'user.{name}', b'1')"));
    for (set_up, command) in [
        ("mkdir d".to_owned(), set("new")),
        (format!("mkdir d; {}", set("old")), python("os.removexattr('d', 'user.old')")),
        (format!("mkdir d; {}", set("old")), "rmdir d".to_owned()),
    ] {
        let shown = shown(&set_up, &command);
        assert!(shown.contains("partly") && shown.contains("attributes of"), "{command}: {shown}");
    }
    let shown = shown("mkdir d", "rmdir d");
    assert!(shown.contains("reversible  yes"), "{shown}");
}

#[test]
fn e24_owners_of_links_and_directories_are_not_called_reversible() {
    // Only root can give something away.
    if !User::is_root() {
        return;
    }
    for (set_up, command) in [
        ("ln -s x l", "chown -h 65534 l"),
        ("ln -s x l; chown -h 65534 l", "rm l"),
        ("mkdir d", "chown 65534 d"),
        ("mkdir d; chown 65534 d", "rmdir d"),
    ] {
        let shown = shown(set_up, command);
        assert!(shown.contains("partly") && shown.contains("owner"), "{command}: {shown}");
    }
}
