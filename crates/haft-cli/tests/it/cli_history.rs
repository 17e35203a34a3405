//! `haft log`, `show`, `diff`, `blame`, `sessions` and `ps`: what happened, for people.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::terminal::Terminal;
use crate::fixture::wait_until;

/// The numbers of the calls that `haft log` lists.
fn listed(cli: &CliFixture, flags: &[&str]) -> Vec<i64> {
    let ran = cli.haft(&[&["log", "--json"], flags].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_i64().unwrap();
    ran.stdout.lines().map(id).collect()
}

fn write(cli: &CliFixture, name: &str, content: &str) {
    let ran = cli.call("Write", &json!({"file_path": cli.path(name), "content": content}));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

fn bash(cli: &CliFixture, command: &str) -> i32 {
    cli.haft(&["call", "Bash", &json!({"command": command}).to_string(), "--sandbox", "off"]).code
}

#[test]
fn log_is_filtered_by_tool_text_path_time_and_failure() {
    let cli = CliFixture::new();
    write(&cli, "a.txt", "say \"hello\"\n");
    bash(&cli, "echo Needle in the result; exit 3");
    std::fs::create_dir(cli.path("sub")).unwrap();
    write(&cli, "sub/b.txt", "x\n");
    cli.call("Read", &json!({"file_path": cli.path("none")}));
    assert_eq!(listed(&cli, &[]), [4, 3, 2, 1]);
    assert_eq!(listed(&cli, &["--tool", "write"]), [3, 1]);
    assert_eq!(listed(&cli, &["--tool", "Bash,Read"]), [4, 2]);
    assert_eq!(listed(&cli, &["--failed"]), [4, 2]);
    assert_eq!(listed(&cli, &["--grep", "needle IN"]), [2]);
    assert_eq!(listed(&cli, &["--grep", "say \"hello\""]), [1], "as typed, not as JSON");
    assert_eq!(listed(&cli, &["--grep", "file_path"]), [] as [i64; 0], "names of fields are no text");
    assert_eq!(listed(&cli, &["--path", "sub"]), [3]);
    assert_eq!(listed(&cli, &["--path", "sub/b"]), [] as [i64; 0]);
    assert_eq!(listed(&cli, &["--path", "."]), [4, 3, 1]);
    assert_eq!(listed(&cli, &["--since", "1h"]), [4, 3, 2, 1]);
    assert_eq!(listed(&cli, &["--since", "2999-01-01"]), [] as [i64; 0]);
    assert_eq!(listed(&cli, &["--grep", "x", "--tool", "Write", "-n", "1"]), [3]);
    let wrong = cli.haft(&["log", "--since", "tomorrow"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("Examples: 10m"), "{}", wrong.stderr);
}

#[test]
fn log_shows_time_duration_exit_code_and_session() {
    let cli = CliFixture::new();
    bash(&cli, "exit 3");
    let ran = cli
        .command(&["call", "Read", &json!({"file_path": cli.path("none")}).to_string()])
        .env("HAFT_SESSION", "review/1")
        .output();
    assert_eq!(ran.unwrap().status.code(), Some(1));
    let log = cli.command(&["log"]).env("TZ", "UTC").output().unwrap();
    let log = String::from_utf8(log.stdout).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].contains("failed") && lines[0].ends_with("review/1"), "{log}");
    assert!(lines[1].contains("exit 3") && lines[1].contains("Bash"), "{log}");
    let time = lines[1].split_whitespace().nth(1).unwrap();
    assert!(time.len() == 10 && time.starts_with("20"), "{log}");
    let show = cli.haft(&["show", "1"]).stdout;
    assert!(show.contains("exit code   3") && show.contains("result\n  "), "{show}");
    assert_eq!(cli.haft(&["show", "2", "--json"]).code, 0);
}

#[test]
fn show_prints_what_the_caller_saw_with_control_characters_escaped() {
    let cli = CliFixture::new();
    let ran =
        cli.haft(&["call", "Bash", r#"{"command": "printf 'a\\033[2Jb\\n'; exit 4"}"#, "--sandbox", "off"]);
    let show = cli.haft(&["show", "1"]).stdout;
    assert!(show.contains("a\\u{1b}[2Jb") && !show.contains('\u{1b}'), "{show}");
    for line in ran.stdout.lines() {
        assert!(show.contains(&line.replace('\u{1b}', "\\u{1b}")), "{line:?}: {show}");
    }
}

#[test]
fn color_and_stat_are_flags_of_every_view() {
    let cli = CliFixture::new();
    write(&cli, "a.txt", "one\ntwo\n");
    write(&cli, "a.txt", "one\n2\n3\n");
    for view in [&["log"][..], &["show", "1"], &["diff"], &["blame", "a.txt"], &["sessions"]] {
        let colored = cli.haft(&[view, &["--color", "always"]].concat());
        assert!(colored.stdout.contains("\u{1b}["), "{view:?}: {}{}", colored.stdout, colored.stderr);
        let plain = cli.haft(&[view, &["--color", "never"]].concat());
        assert!(!plain.stdout.contains('\u{1b}'), "{view:?}");
    }
    assert_eq!(cli.haft(&["diff", "2", "--stat"]).stdout, "modified a.txt  +2 -1\n");
    assert!(cli.haft(&["log", "--stat"]).stdout.contains("         modified a.txt\n"));
    let show = cli.haft(&["show", "2", "--stat"]).stdout;
    assert!(show.contains("modified a.txt") && !show.contains("+2"), "{show}");
}

#[test]
fn diff_adds_up_the_calls_of_a_session_or_a_range() {
    let cli = CliFixture::new();
    cli.write("a.txt", "0\n");
    for content in ["1\n", "2\n"] {
        let arguments = json!({"file_path": cli.path("a.txt"), "content": content}).to_string();
        assert_eq!(cli.haft(&["call", "Write", &arguments, "--session", "work"]).code, 0);
    }
    write(&cli, "b.txt", "new\n");
    let of_session = "change a.txt\n@@ -1 +1 @@\n-0\n+2\n";
    assert_eq!(cli.haft(&["diff", "--session", "work"]).stdout, of_session);
    assert_eq!(cli.haft(&["diff", "1..2"]).stdout, of_session);
    assert_eq!(cli.haft(&["diff", "1.."]).stdout, format!("{of_session}create b.txt\n@@ -0,0 +1 @@\n+new\n"));
    assert_eq!(cli.haft(&["diff", "1..3", "--", "b.txt"]).stdout, "create b.txt\n@@ -0,0 +1 @@\n+new\n");
    assert_eq!(cli.haft(&["diff"]).stdout, "create b.txt\n@@ -0,0 +1 @@\n+new\n", "the last session");
    // The contents are those that the calls left, whatever happened since.
    cli.write("a.txt", "later\n");
    assert_eq!(cli.haft(&["diff", "2"]).stdout, "change a.txt\n@@ -1 +1 @@\n-1\n+2\n");
    let object: Value = serde_json::from_str(&cli.haft(&["diff", "1..2", "--json"]).stdout).unwrap();
    assert_eq!((&object["change"], &object["added"]), (&json!("modified"), &json!(1)));
    assert_eq!(cli.haft(&["diff", "2..1"]).code, 2);
    assert_eq!(cli.haft(&["diff", "--session", "none"]).code, 4);
}

#[test]
fn blame_names_the_call_of_each_line() {
    let cli = CliFixture::new();
    cli.write("a.txt", "one\ntwo\nthree\n");
    cli.call("Edit", &json!({"file_path": cli.path("a.txt"), "old_string": "two", "new_string": "2"}));
    cli.call("Edit", &json!({"file_path": cli.path("a.txt"), "old_string": "three", "new_string": "3\n4"}));
    cli.write("a.txt", "one\n2\n3\n4\nby hand\n");
    let blame = |cli: &CliFixture| {
        let lines = cli.haft(&["blame", "a.txt", "--json"]).stdout;
        let line = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            (line["origin"].as_str().unwrap().to_owned(), line["call"].as_i64().unwrap_or(0))
        };
        lines.lines().map(line).collect::<Vec<_>>()
    };
    let origin = |word: &str, call: i64| (word.to_owned(), call);
    assert_eq!(
        blame(&cli),
        [origin("before", 0), origin("call", 1), origin("call", 2), origin("call", 2), origin("other", 0)]
    );
    let text = cli.haft(&["blame", "a.txt"]).stdout;
    assert!(text.lines().nth(1).unwrap().trim_start().starts_with('1') && text.contains("Edit"), "{text}");
    // An undo gives lines back to the call that wrote them.
    cli.write("a.txt", "one\n2\n3\n4\n");
    assert_eq!(cli.haft(&["undo", "2", "--yes"]).code, 0);
    assert_eq!(blame(&cli), [origin("before", 0), origin("call", 1), origin("before", 0)]);
    assert_eq!(cli.haft(&["blame", "none"]).code, 1);
}

#[test]
fn named_session_is_started_and_continued_and_listed() {
    let cli = CliFixture::new();
    let read = |flags: &[&str]| {
        let arguments = json!({"file_path": cli.path("none")}).to_string();
        cli.haft(&[&["call", "Read", &arguments], flags].concat())
    };
    for name in ["review", "fix 2", "review"] {
        assert_eq!(read(&["--session", name]).code, 1);
    }
    let sessions = cli.haft(&["sessions", "--json"]).stdout;
    let sessions: Vec<Value> = sessions.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary: Vec<_> = sessions.iter().map(|one| (one["name"].as_str(), one["calls"].as_i64())).collect();
    assert_eq!(summary, [(Some("review"), Some(2)), (Some("fix 2"), Some(1))]);
    assert_eq!(listed(&cli, &["--session", "review"]), [3, 1]);
    let id = sessions[0]["id"].as_str().unwrap();
    assert_eq!(read(&["--session", id]).code, 1);
    assert_eq!(listed(&cli, &["--session", "review"]), [4, 3, 1]);
    for name in ["", "-x", "a\u{1b}b", "zzzzzzz9"] {
        let ran = read(&["--session", name]);
        assert!(matches!(ran.code, 2 | 4) || name.is_empty(), "{name:?}: {}", ran.code);
    }
    assert_eq!(cli.haft(&["log", "--session", "unknown name"]).code, 4);
    let text = cli.haft(&["sessions"]).stdout;
    assert!(text.contains("review") && text.contains("3 calls"), "{text}");
}

#[test]
fn following_the_log_prints_calls_as_they_end() {
    let cli = CliFixture::new();
    write(&cli, "a.txt", "x\n");
    let mut child = cli.command(&["log", "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()["id"].as_i64();
    assert_eq!(next(), Some(1));
    write(&cli, "b.txt", "x\n");
    assert_eq!(next(), Some(2));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn ps_lists_running_commands_until_they_end() {
    let cli = CliFixture::new();
    let mut child = cli
        .command(&["sandbox", "--", "sh", "-c", "echo started; cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    let ps = cli.haft(&["ps"]).stdout;
    assert!(ps.contains(&child.id().to_string()) && ps.contains("Sandbox sh -c"), "{ps}");
    let object: Value = serde_json::from_str(&cli.haft(&["ps", "--json"]).stdout).unwrap();
    assert_eq!((&object["pid"], &object["state"]), (&json!(child.id()), &json!("running")));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(cli.haft(&["ps"]).stderr.contains("nothing is running"));
}

#[test]
fn detached_command_that_cannot_start_is_an_error_at_once() {
    let cli = CliFixture::new();
    let ran = cli.haft(&["sandbox", "--detach", "nosuchcmd"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (127, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("There is no program named nosuchcmd"), "{}", ran.stderr);
    let ran = cli.haft(&["sandbox", "--detach", "/"]);
    assert_eq!(ran.code, 126, "{}", ran.stderr);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = cli.haft(&["sandbox", "--detach", "--serve", &port, "true"]);
    assert!(ran.code == 125 && ran.stderr.contains("address already in use"), "{}", ran.stderr);
    let ran = cli.haft(&["sandbox", "--detach", "false"]);
    assert_eq!(ran.code, 0, "it has started: {}", ran.stderr);
}

#[test]
fn discarded_preview_is_marked_in_the_log() {
    let cli = CliFixture::new();
    assert_eq!(cli.haft(&["sandbox", "--preview=discard", "touch", "a"]).code, 0);
    assert_eq!(cli.haft(&["sandbox", "touch", "a"]).code, 0);
    let log = cli.haft(&["log"]).stdout;
    assert_eq!(log.matches("preview, nothing was changed").count(), 1, "{log}");
}

#[test]
fn ps_names_the_output_of_a_detached_command() {
    let cli = CliFixture::new();
    let release = cli.path("release");
    let script = format!("until [ -e '{}' ]; do sleep 0.05; done", release.display());
    let ran = cli.haft(&["sandbox", "--detach", "--", "sh", "-c", &script]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut ps = String::new();
    wait_until(|| {
        ps = cli.haft(&["ps"]).stdout;
        ps.contains("output in ")
    });
    let output = ps.lines().find_map(|line| line.split_once("output in ")).unwrap().1;
    assert!(std::path::Path::new(output).is_file() && ran.stdout.contains(output), "{ps}{}", ran.stdout);
    cli.write("release", "");
    wait_until(|| cli.haft(&["ps"]).stderr.contains("nothing is running"));
}

#[test]
fn long_lists_go_to_the_pager_and_lines_fit_the_terminal() {
    let cli = CliFixture::new();
    for name in 0..6 {
        write(
            &cli,
            &format!("a-very-long-name-that-does-not-fit-into-the-terminal-at-all-{name}.txt"),
            "x\n",
        );
    }
    let haft = crate::fixture::haft_program().display().to_string();
    let shell = |script: &str| {
        let mut command = cli.command(&[]);
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(script).current_dir(cli.root());
        for (name, value) in command.stdin(Stdio::null()).get_envs() {
            shell.env(name, value.unwrap());
        }
        Terminal::run(shell).ends().1
    };
    let paged = shell(&format!("stty rows 5 cols 90; PAGER='sed s/^/PAGED/' exec '{haft}' log"));
    let lines: Vec<&str> = paged.lines().collect();
    assert_eq!(lines.len(), 6, "{paged}");
    for line in lines {
        assert!(line.starts_with("PAGED") && line.contains('…'), "{paged}");
        assert!(line.chars().count() <= 90 + "PAGED".len(), "{line}");
    }
    let direct = shell(&format!("stty rows 5 cols 90; PAGER=false exec '{haft}' log --no-pager"));
    assert_eq!(direct.lines().count(), 6, "{direct}");
    let missing = shell(&format!("stty rows 5 cols 90; PAGER=no-such-pager exec '{haft}' log 2>/dev/null"));
    assert_eq!(missing.lines().count(), 6, "{missing}");
}
