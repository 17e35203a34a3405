//! `haft log`, `show`, `undo` and sessions: the ledger on the command line.

use crate::fixture::cli::CliFixture;
use serde_json::{Value, json};

#[test]
fn undo_previews_asks_restores_and_can_be_undone() {
    let cli = CliFixture::new();
    cli.write("a.txt", "one\ntwo\n");
    cli.call("Edit", &json!({"file_path": cli.path("a.txt"), "old_string": "two", "new_string": "2"}));
    let preview = cli.haft(&["undo", "--dry-run"]);
    assert_eq!(
        (preview.code, preview.stdout.as_str()),
        (0, "change a.txt\n@@ -1,2 +1,2 @@\n one\n-2\n+two\n")
    );
    let unasked = cli.haft(&["undo"]);
    assert_eq!(unasked.code, 3, "no one can be asked");
    assert_eq!(cli.read("a.txt"), "one\n2\n");
    assert_eq!(cli.haft(&["undo", "--yes"]).code, 0);
    assert_eq!(cli.read("a.txt"), "one\ntwo\n");
    assert_eq!(cli.haft(&["redo", "--yes"]).code, 0);
    assert_eq!(cli.read("a.txt"), "one\n2\n");
    assert_eq!(cli.haft(&["undo", "3", "--yes"]).code, 0, "the redo is a call too");
    assert_eq!(cli.read("a.txt"), "one\ntwo\n");
}

#[test]
fn undo_refuses_on_a_conflict_unless_forced() {
    let cli = CliFixture::new();
    cli.write("a.txt", "old\n");
    cli.call("Write", &json!({"file_path": cli.path("a.txt"), "content": "new\n"}));
    cli.write("a.txt", "another version\n");
    let refused = cli.haft(&["undo", "--yes"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stdout.contains("conflict"), "{}", refused.stdout);
    assert_eq!(cli.read("a.txt"), "another version\n");
    assert_eq!(cli.haft(&["undo", "--yes", "--force"]).code, 0);
    assert_eq!(cli.read("a.txt"), "old\n");
    assert_eq!(cli.haft(&["redo", "--yes"]).code, 0, "even a forced undo can be undone");
    assert_eq!(cli.read("a.txt"), "another version\n");
}

#[test]
fn a_command_that_was_not_watched_is_not_pretended_to_be_undone() {
    let cli = CliFixture::new();
    cli.haft(&["call", "Bash", r#"{"command": "echo x > made-by-bash"}"#, "--sandbox", "off"]);
    let ran = cli.haft(&["undo", "1", "--yes"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("call 1 cannot be undone: the changes of the command were not recorded"),
        "{}",
        ran.stderr
    );
}

#[test]
fn undo_says_which_later_commands_stay() {
    let cli = CliFixture::new();
    cli.call("Write", &json!({"file_path": cli.path("a"), "content": "x"}));
    cli.haft(&["call", "Bash", r#"{"command": "echo x > made-by-bash"}"#, "--sandbox", "off"]);
    let ran = cli.haft(&["undo", "--yes"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("note: call 2 (Bash) ran later and is not undone"), "{}", ran.stderr);
    assert!(!cli.path("a").exists() && cli.path("made-by-bash").exists());
}

#[test]
fn log_and_show_tell_what_was_done_and_why() {
    let cli = CliFixture::new();
    cli.call("Write", &json!({"file_path": cli.path("a.txt"), "content": "x\n"}));
    cli.call("Write", &json!({"file_path": "/etc/haft-test", "content": "x\n"}));
    let log = cli.haft(&["log"]).stdout;
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].contains("denied") && lines[0].contains("/etc/haft-test"), "{log}");
    assert!(
        lines[1].contains("done") && lines[1].contains("a.txt") && lines[1].contains("1 changed"),
        "{log}"
    );
    let show = cli.haft(&["show", "2"]).stdout;
    assert!(
        show.contains("decision    deny: /etc/haft-test is outside the workspace. No one can be asked here"),
        "{show}"
    );
    let show = cli.haft(&["show", "1"]).stdout;
    assert!(show.contains("reversible  yes") && show.contains("+x"), "{show}");
    let json: Value =
        serde_json::from_str(cli.haft(&["log", "--json"]).stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&json["id"], &json["state"]), (&json!(2), &json!("denied")));
    assert!(!log.contains('\u{1b}'), "no colours into a pipe");
}

#[test]
fn show_tells_what_a_command_was_refused() {
    let cli = CliFixture::new();
    let ran = cli.haft(&["sandbox", "--", "sh", "-c", "echo x > /etc/haft-test; echo y > inside"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let show = cli.haft(&["show", "1"]).stdout;
    assert!(show.contains("refused     write /etc/haft-test: outside the scope"), "{show}");
    let receipt: Value = serde_json::from_str(&cli.haft(&["show", "1", "--json"]).stdout).unwrap();
    assert_eq!(receipt["denials"][0]["where"], "/etc/haft-test");
}

#[test]
fn no_command_moves_the_directory_around_the_ledger() {
    let (cli, above) = (CliFixture::new(), tempfile::tempdir().unwrap());
    let (inside, moved) = (above.path().join("in"), above.path().join("out"));
    let command =
        ["sandbox", "--sandbox", "rwx", "--", "mv", inside.to_str().unwrap(), moved.to_str().unwrap()];
    let ran = cli.command(&command).env("HAFT_HOME", inside.join("ledger")).output().unwrap();
    assert!(!ran.status.success());
    assert!(inside.join("ledger").is_dir() && !moved.exists());
    assert!(String::from_utf8_lossy(&ran.stderr).contains("Refused: move"), "{ran:?}");
}

#[test]
fn a_session_is_gone_on_with_and_undone_as_a_whole() {
    let cli = CliFixture::new();
    cli.write("a.txt", "0\n");
    let first = cli.haft(&[
        "call",
        "Write",
        &json!({"file_path": cli.path("a.txt"), "content": "1\n"}).to_string(),
        "--json",
    ]);
    let session = serde_json::from_str::<Value>(&first.stdout).unwrap()["receipt"]["session"]
        .as_str()
        .unwrap()
        .to_owned();
    for text in ["2\n", "3\n"] {
        let arguments = json!({"file_path": cli.path("a.txt"), "content": text}).to_string();
        assert_eq!(cli.haft(&["call", "Write", &arguments, "--session", &session]).code, 0);
    }
    cli.call("Write", &json!({"file_path": cli.path("other.txt"), "content": "stays\n"}));
    assert_eq!(cli.haft(&["undo", "--session", &session[..4], "--yes"]).code, 0);
    assert_eq!((cli.read("a.txt").as_str(), cli.read("other.txt").as_str()), ("0\n", "stays\n"));
    assert_eq!(cli.haft(&["call", "Read", "{}", "--session", "zzzzzzz9"]).code, 4);
}
