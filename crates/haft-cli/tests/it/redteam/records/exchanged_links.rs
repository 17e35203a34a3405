//! Names that a command exchanges between files with several names are restored by undo, and exchanged again by redo.

use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::tree::{differences, timeless};

/// Exchanges two names in one step.
fn exchange(a: &str, b: &str) -> String {
    format!(r#"python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b"{a}", -100, b"{b}", 2)'"#)
}

fn assert_undone_and_redone(set_up: &str, command: &str) {
    let fixture = SandboxFixture::new(User::Current);
    assert_eq!(fixture.unsandboxed(set_up).code, 0);
    let before = timeless(&fixture.work(), &[]);
    assert_eq!(fixture.inside(command).code, 0, "{command}");
    let after = timeless(&fixture.work(), &[]);
    assert!(!differences(&before, &after).is_empty(), "{command} did nothing");
    for (word, expected) in [("undo", &before), ("redo", &after), ("undo", &before)] {
        let ran = fixture.haft(&[word, "--yes"]);
        assert_eq!(ran.code, 0, "{word} of {command}: {}{}", ran.stdout, ran.stderr);
        let wrong = differences(expected, &timeless(&fixture.work(), &[]));
        assert_eq!(wrong, [] as [String; 0], "{word} of {command}");
    }
}

#[test]
fn b13_names_exchanged_between_files_with_several_names_are_undone_and_redone() {
    let two_files = "echo B > d; ln d o; echo AAA > c; ln c D";
    assert_undone_and_redone(two_files, "mv d t; mv c d; mv t c; echo 1 >> d");
    assert_undone_and_redone(two_files, "mv d t; mv c d; mv t c; echo 1 >> d; echo 2 >> c");
    assert_undone_and_redone(two_files, &format!("{}; echo 1 >> d", exchange("d", "c")));
    let one_file = "echo B > d; echo AAA > c; ln c D";
    assert_undone_and_redone(one_file, "mv d t; mv c d; mv t c; echo 1 >> d; echo 2 >> c");
    let others = "echo aa > c; ln c ct; ln c cfg; echo eeeee > e";
    let command = format!("echo new > c; {}; ln ct a; rm cfg", exchange("ct", "e"));
    assert_undone_and_redone(others, &command);
    assert_undone_and_redone(others, &format!("echo new > c; {}; ln ct a", exchange("ct", "e")));
    let in_directory = "mkdir e; echo C > e/c; ln e/c e/e; : > h; ln h d; ln h X";
    let command = format!("{}; {}; ln e h/y; echo z >> e", exchange("X", "e/e"), exchange("e", "h"));
    assert_undone_and_redone(in_directory, &command);
    assert_undone_and_redone(in_directory, &format!("{}; mv e k; echo z >> d", exchange("X", "e/e")));
}
