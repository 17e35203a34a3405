//! What a command leaves in the private directories of its session is on its receipt.

use crate::fixture::sandbox::{SandboxFixture, User};

/// The receipt of a command.
fn shown(fixture: &SandboxFixture, namespaces: &str, command: &str) -> String {
    let ran = fixture.run(fixture.sandboxed(&[], command).env("HAFT_NAMESPACES", namespaces));
    assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
    let log = fixture.haft(&["log", "--json"]).stdout;
    let newest = log.matches("\"id\":").count().to_string();
    fixture.haft(&["show", &newest]).stdout
}

fn assert_partly(namespaces: &str, commands: &[&str], expected: Option<&str>) {
    let fixture = SandboxFixture::new(User::Current);
    for command in commands {
        let shown = shown(&fixture, namespaces, command);
        match expected {
            None => assert!(shown.contains("reversible  yes"), "{namespaces}: {command}: {shown}"),
            Some(words) => {
                let is_partly = shown.contains("reversible  partly") && shown.contains(words);
                assert!(is_partly, "{namespaces}: {command}: {shown}");
            }
        }
    }
}

#[test]
fn e17_files_that_stay_in_temporary_directories_are_reported() {
    for namespaces in ["true", "false"] {
        for (command, expected) in [
            ("echo x > $TMPDIR/left", "left is in a private directory of the session"),
            ("mkdir $TMPDIR/left; touch $TMPDIR/left/a $TMPDIR/left/b", "left is in"),
            ("echo x > $TMPDIR/a; mv $TMPDIR/a $TMPDIR/left", "left is in"),
            ("mkdir $TMPDIR/a; touch $TMPDIR/a/x; mv $TMPDIR/a $TMPDIR/left", "left is in"),
            ("mkfifo $TMPDIR/left", "left is in"),
            ("ln -s x $TMPDIR/left", "left is in"),
            ("touch $TMPDIR/left $TMPDIR/b $TMPDIR/c", "b and 2 more paths are in private directories"),
            (
                "python3 -c \"import os, socket; os.chdir(os.environ['TMPDIR']); socket.socket(socket.AF_UNIX).bind('left')\"",
                "left is in",
            ),
            (
                "python3 -c \"import os; [open(os.environ['TMPDIR'] + '/%d' % n, 'w') for n in range(2500)]\"",
                "2499 more paths",
            ),
        ] {
            assert_partly(namespaces, &[command], Some(expected));
        }
    }
    assert_partly("true", &["echo x > /var/tmp/left"], Some("/var/tmp/left is in"));
    assert_partly("true", &["echo x > /dev/shm/left"], Some("/dev/shm/left is in"));
}

#[test]
fn e17_temporary_files_that_are_gone_again_are_not_reported() {
    for namespaces in ["true", "false"] {
        for command in [
            "f=$(mktemp); echo x > $f; chmod 600 $f; rm $f; cat <<< here; echo x > /dev/null",
            "mkdir -p $TMPDIR/a/b; touch $TMPDIR/a/b/c; mv $TMPDIR/a $TMPDIR/d; rm -r $TMPDIR/d",
            "printf 'int main() { return 0; }' > x.c; cc x.c -o x",
            "python3 -c \"import os; d = os.environ['TMPDIR'] + '/'; [(open(d + str(n), 'w').close(), os.unlink(d + str(n))) for n in range(2500)]\"",
            "python3 -c \"import tempfile; tempfile.TemporaryFile().write(b'x')\"",
        ] {
            assert_partly(namespaces, &[command], None);
        }
    }
}

#[test]
fn e43_files_that_stay_in_the_private_home_are_reported() {
    assert_partly("true", &["echo x >> ~/.profile"], Some(".profile is in"));
    assert_partly("true", &["mkdir -p ~/.cache; echo x > ~/.cache/new"], Some("/.cache/new is in"));
    // Without namespaces the private home persists, and so the second command changes an existing file.
    let write = "echo x >> ~/.profile";
    assert_partly("false", &[write, write, "chmod 700 ~/.profile", "rm ~/.profile"], Some(".profile is in"));
    assert_partly("false", &["cat ~/.profile || true"], None);
}
