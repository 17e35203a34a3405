//! Hard links that lead out of the scope: what is outside does not change.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::tree::{differences, timeless};

/// Makes a file of the workspace, `f`, that is also a file outside.
fn add_linked_file(fixture: &SandboxFixture) {
    fixture.file("outside/f", "old\n");
    fs::hard_link(fixture.path("outside/f"), fixture.path("work/f")).unwrap();
}

/// Everything about the file outside but the number of its names.
fn outside(fixture: &SandboxFixture) -> (String, u64, u32, i64, i64, String) {
    let path = fixture.path("outside/f");
    let meta = fs::metadata(&path).unwrap();
    let attributes =
        fixture.unsandboxed("python3 -c \"import os; print(os.listxattr('../outside/f'))\"").stdout;
    let text = fs::read_to_string(path).unwrap();
    (text, meta.ino(), meta.mode(), meta.mtime(), meta.mtime_nsec(), attributes)
}

#[test]
fn e16_file_with_names_outside_becomes_a_copy_before_it_changes() {
    let python = |code: &str| format!("python3 -c \"import os, mmap; {code}\"");
    for (command, changes_bytes) in [
        ("echo new > f".to_owned(), true),
        ("echo new >> f".to_owned(), true),
        ("printf new | dd of=f conv=notrunc status=none".to_owned(), true),
        ("python3 -c \"import os; os.truncate('f', 1)\"".to_owned(), true),
        ("exec 5<>f; rm f; echo late >&5; ln -s x f".to_owned(), true),
        ("mkdir d; mv f d/f; echo new > d/f; mv d/f f".to_owned(), true),
        ("ln f g; echo new > g; cat g > f".to_owned(), true),
        (python("fd = os.open('f', os.O_RDONLY); open('/proc/self/fd/%d' % fd, 'r+').write('new')"), true),
        (python("f = open('f', 'r+'); m = mmap.mmap(f.fileno(), 4); m[0] = 65"), true),
        ("chmod 755 f".to_owned(), false),
        ("touch -d 2001-01-01 f".to_owned(), false),
        (python("os.setxattr('f', 'user.x', b'1')"), false),
        (python("fd = os.open('f', os.O_RDONLY); os.fchmod(fd, 0o700)"), false),
    ] {
        SandboxFixture::in_both_modes(User::Current, |fixture| {
            add_linked_file(fixture);
            let before = outside(fixture);
            let ran = fixture.inside(&command);
            assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
            assert_eq!(outside(fixture), before, "{command}");
            let text = fs::read_to_string(fixture.path("work/f")).unwrap_or_default();
            assert_eq!(text != "old\n", changes_bytes, "{command}: {text:?}");
            let shown = fixture.haft(&["show", "1"]).stdout;
            assert!(shown.contains("partly") && shown.contains("outside the scope"), "{command}: {shown}");
            let undo = fixture.haft(&["undo", "--yes"]);
            assert_eq!(undo.code, 0, "{command}: {}", undo.stderr);
            assert_eq!(fs::read_to_string(fixture.path("work/f")).unwrap(), "old\n", "{command}");
            assert_eq!(outside(fixture), before, "undo of {command}");
        });
    }
}

#[test]
fn e16_names_that_are_all_inside_stay_names_of_one_file() {
    for (set_up, command) in [
        ("mkdir d; echo old > a; ln a d/b", "echo new > a; cmp a d/b; chmod 700 d/b; test -x a"),
        ("true", "echo old > a; ln a b; echo new > a; cmp a b"),
        // These are made after the names were counted.
        (
            "echo 1 > x; ln x ../outside/x",
            "echo 2 > x; echo old > a; ln a b; ln b c; rm b; echo new > a; cmp a c",
        ),
        (
            "echo 1 > x; ln x y; ln x ../outside/x; echo 1 > a; ln a b",
            "echo 2 > x; ln a c; echo new > a; cmp a b; cmp a c",
        ),
    ] {
        SandboxFixture::in_both_modes(User::Current, |fixture| {
            assert_eq!(fixture.unsandboxed(set_up).code, 0);
            let before = timeless(&fixture.work(), &[]);
            let ran = fixture.inside(&format!("set -e; {command}"));
            assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
            assert_eq!(fixture.haft(&["undo", "--yes"]).code, 0);
            let wrong = differences(&before, &timeless(&fixture.work(), &[]));
            let is_expected = |line: &String| set_up.contains("outside") && line.contains('x');
            assert!(wrong.iter().all(is_expected), "{command}: {wrong:?}");
        });
    }
}

#[test]
fn e16_repository_that_a_local_clone_shares_objects_with_does_not_change() {
    SandboxFixture::in_both_modes(User::Current, |fixture| {
        let set_up = "cd ../outside; git init -q o; cd o; seq 1000 > n; git add n; git commit -qm 1; cd ../../work; git clone -q --local ../outside/o c";
        let ran = fixture.unsandboxed(set_up);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let before = timeless(&fixture.path("outside"), &[]);
        // An object outside has one link less once the clone has a copy of its own.
        let look = || {
            let set_aside = |line: &String| line.ends_with("2 links became 1");
            let mut wrong = differences(&before, &timeless(&fixture.path("outside"), &[]));
            wrong.retain(|line| !set_aside(line));
            wrong
        };
        let script = "cd c; find .git/objects -type f -exec chmod u+w {} +; for f in $(find .git/objects -type f); do echo garbage > $f; done; git status";
        let ran = fixture.inside(script);
        assert!(ran.code != 0, "the objects of the clone are garbage: {}", ran.stdout);
        assert_eq!(look(), [] as [String; 0]);
        assert_eq!(fixture.haft(&["undo", "--yes"]).code, 0);
        assert_eq!(look(), [] as [String; 0]);
        let fsck = fixture.unsandboxed("cd c; git fsck --strict && git status --porcelain");
        assert_eq!((fsck.code, fsck.stdout.as_str()), (0, ""), "{}", fsck.stderr);
    });
}

#[test]
fn e16_linked_file_cannot_get_a_name_where_changes_are_not_recorded() {
    for namespaces in ["true", "false"] {
        let fixture = SandboxFixture::new(User::Current);
        fixture.file("work/f", "old\n");
        let script = "ln f $TMPDIR/f && echo new > $TMPDIR/f";
        let ran = fixture.run(fixture.sandboxed(&[], script).env("HAFT_NAMESPACES", namespaces));
        assert!(ran.code != 0, "{namespaces}: {}", ran.stderr);
        assert_eq!(fs::read_to_string(fixture.path("work/f")).unwrap(), "old\n");
    }
}
