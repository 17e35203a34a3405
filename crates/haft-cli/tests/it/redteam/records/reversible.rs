//! Owners, attributes and special files: restored, or the receipt says `partly`.

use crate::fixture::sandbox::{SandboxFixture, User};

/// Prints every path with its type, mode, owner and attributes.
const LOOK: &str = r"python3 - <<'END'
import os
for root, dirs, files in os.walk('.'):
    dirs.sort()
    for path in [root] + sorted(os.path.join(root, name) for name in files + [d for d in dirs if os.path.islink(os.path.join(root, d))]):
        s = os.lstat(path)
        names = sorted(os.listxattr(path, follow_symlinks=False))
        print(path, oct(s.st_mode), s.st_uid, s.st_gid, [(n, os.getxattr(path, n, follow_symlinks=False)) for n in names])
END";

fn python(code: &str) -> String {
    format!("python3 -c \"import os; {code}\"")
}

/// Runs a command in the sandbox and returns its receipt, after it was undone, redone and undone exactly.
fn shown_and_undone(fixture: &SandboxFixture, set_up: &str, command: &str) -> String {
    let look = || fixture.unsandboxed(LOOK).stdout;
    let ran = fixture.unsandboxed(set_up);
    assert_eq!(ran.code, 0, "{set_up}: {}", ran.stderr);
    let before = look();
    let ran = fixture.inside(command);
    assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
    let after = look();
    assert!(before != after, "{command} did nothing");
    let shown = fixture.haft(&["show", "1"]).stdout;
    for (word, expected) in [("undo", &before), ("redo", &after), ("undo", &before)] {
        let ran = fixture.haft(&[word, "--yes"]);
        assert_eq!(ran.code, 0, "{word} of {command}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(look(), *expected, "{word} of {command}");
    }
    shown
}

fn assert_restored(set_up: &str, command: &str) {
    for user in User::all() {
        assert_restored_for(*user, set_up, command);
    }
}

fn assert_restored_for(user: User, set_up: &str, command: &str) {
    SandboxFixture::in_both_modes(user, |fixture| {
        let shown = shown_and_undone(fixture, set_up, command);
        assert!(shown.contains("reversible  yes"), "{command}: {shown}");
    });
}

#[test]
fn e24_attributes_of_directories_are_restored() {
    let set = |path: &str, name: &str| python(&format!("os.setxattr('{path}', '{name}', b'1')"));
    // user::rwx user:1234:rw- group::r-x mask::rwx other::r-x, in the kernel's format.
    let acl = |kind: &str| {
        let entry =
            |tag: u16, permissions: u16, id: &str| format!("struct.pack('<HHi', {tag}, {permissions}, {id})");
        let entries = [
            entry(1, 7, "-1"),
            entry(2, 6, "1234"),
            entry(4, 5, "-1"),
            entry(16, 7, "-1"),
            entry(32, 5, "-1"),
        ]
        .join(" + ");
        python(&format!(
            "import struct; os.setxattr('d', 'system.posix_acl_{kind}', struct.pack('<I', 2) + {entries})"
        ))
    };
    for (set_up, command) in [
        ("mkdir d".to_owned(), set("d", "user.new")),
        (format!("mkdir d; {}", set("d", "user.old")), python("os.removexattr('d', 'user.old')")),
        (format!("mkdir d; {}", set("d", "user.old")), python("os.setxattr('d', 'user.old', b'2')")),
        (format!("mkdir d; {}", set("d", "user.old")), "rmdir d".to_owned()),
        (format!("mkdir -p d/e; touch d/f; {}", set("d/e", "user.old")), "rm -r d".to_owned()),
        (
            format!("mkdir d; {}", set("d", "user.old")),
            format!("{}; mv d e; touch e/f; chmod 700 e", set("d", "user.new")),
        ),
        ("mkdir d".to_owned(), acl("access")),
        ("mkdir d".to_owned(), format!("{}; touch d/f; mkdir d/g", acl("default"))),
        (
            format!("mkdir d; {}; {}; touch d/f; mkdir d/g", acl("default"), acl("access")),
            "rm -r d; mkdir d".to_owned(),
        ),
        (format!("mkdir d; {}; touch d/f", acl("access")), "chmod 500 d".to_owned()),
        ("true".to_owned(), format!("mkdir d; {}", set("d", "user.new"))),
    ] {
        assert_restored(&set_up, &command);
    }
}

#[test]
fn e24_owners_of_links_and_directories_are_restored() {
    // Only root can give something away.
    if !User::is_root() {
        return;
    }
    for (set_up, command) in [
        ("ln -s x l", "chown -h 65534 l"),
        ("ln -s x l; chown -h 65534:65534 l", "rm l"),
        ("mkdir d", "chown 65534 d"),
        ("mkdir d; chown 65534:65533 d", "rmdir d"),
        ("mkdir -p d/e; touch d/f; chown -R 65534 d", "chown -R 0 d; mv d g; rm g/f"),
        ("mkfifo p; chown 65534 p; chmod 604 p", "rm p"),
    ] {
        assert_restored_for(User::Current, set_up, command);
    }
}

#[test]
fn named_pipes_are_restored() {
    for (set_up, command) in [
        ("mkfifo -m 640 p", "rm p"),
        ("mkfifo p", "chmod 600 p"),
        ("mkfifo p", "rm p; echo file > p"),
        ("echo file > p", "rm p; mkfifo p"),
        ("mkdir d; mkfifo d/p", "mv d/p q; mv d e"),
        ("mkdir d; mkfifo d/p", "rm -r d"),
        ("true", "mkdir d; mkfifo d/p p"),
        (
            "mkdir d; python3 -c \"import os, struct; os.setxattr('d', 'system.posix_acl_default', struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *e) for e in [(1, 7, -1), (2, 6, 1234), (4, 5, -1), (16, 7, -1), (32, 5, -1)]))\"; mkfifo d/p",
            "rm d/p; mkfifo d/q",
        ),
    ] {
        assert_restored(set_up, command);
    }
}

#[test]
fn removed_sockets_and_devices_make_a_receipt_partly() {
    let socket = "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"";
    let mut cases = vec![(socket, "rm s; echo x > f"), (socket, "rm s; echo x > s; echo x > f")];
    if User::is_root() {
        cases.push(("mknod s c 1 3", "mv s t; echo x > f"));
    }
    for (set_up, command) in cases {
        let fixture = SandboxFixture::new(User::Current);
        let ran = fixture.unsandboxed(set_up);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let ran = fixture.inside(command);
        assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
        let shown = fixture.haft(&["show", "1"]).stdout;
        assert!(shown.contains("partly") && shown.contains("s was a device or socket"), "{command}: {shown}");
        let undo = fixture.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 0, "{command}: {}", undo.stderr);
        assert!(!fixture.path("work/f").exists(), "the rest is undone");
    }
}

#[test]
fn b14_pipe_with_several_names_is_restored_partly() {
    let fixture = SandboxFixture::new(User::Current);
    assert_eq!(fixture.unsandboxed("mkfifo p; ln p q").code, 0);
    assert_eq!(fixture.inside("chmod 600 p").code, 0);
    let shown = fixture.haft(&["show", "1"]).stdout;
    assert!(shown.contains("partly: ") && shown.contains("a pipe with several names"), "{shown}");
}
