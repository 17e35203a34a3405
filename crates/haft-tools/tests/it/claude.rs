//! Tools of the claude dialect.

use std::path::PathBuf;
use std::time::Duration;

use haft_tool::testing::{MemoryWorld, START_MS};
use haft_tool::{Capture, ErrorKind, Exit, Finished, Node, Output, ToolError, Value, json};

use crate::fixture;

fn call(world: &MemoryWorld, name: &str, arguments: Value) -> Result<Output, ToolError> {
    fixture::call(world, &fixture::claude(json!({})), name, arguments)
}

fn text(world: &MemoryWorld, name: &str, arguments: Value) -> String {
    call(world, name, arguments).unwrap().as_text()
}

fn world() -> MemoryWorld {
    MemoryWorld::new("/w")
        .with_file("/w/src/main.rs", "fn main() {\n    run();\n}\n")
        .with_file("/w/src/run.rs", "pub fn run() {}\n")
        .with_file("/w/notes.md", "Call run first.\n")
        .with_file("/w/.hidden/run.rs", "fn run() {}\n")
}

#[test]
fn read_shows_numbered_lines() {
    let shown = text(&world(), "Read", json!({"file_path": "/w/src/main.rs", "offset": 2, "limit": 1}));
    assert!(shown.contains('2') && shown.contains("    run();") && !shown.contains("main"), "{shown}");
    let missing = call(&world(), "Read", json!({"file_path": "/w/none"})).unwrap_err();
    assert_eq!(missing.kind, ErrorKind::FileNotFound);
}

#[test]
fn write_creates_and_edit_changes_a_file() {
    let world = world();
    text(&world, "Write", json!({"file_path": "/w/new/a.txt", "content": "one two\n"}));
    text(&world, "Edit", json!({"file_path": "/w/new/a.txt", "old_string": "two", "new_string": "three"}));
    assert_eq!(world.text("/w/new/a.txt").as_deref(), Some("one three\n"));
    let changes = world.memory_files().changes();
    assert_eq!((changes.len(), &changes[0].before), (2, &Node::Absent));
    assert_eq!(changes[0].after, changes[1].before);
    let outside = call(&world, "Write", json!({"file_path": "/etc/x", "content": ""})).unwrap_err();
    assert_eq!(outside.kind, ErrorKind::InvalidPath);
}

#[test]
fn glob_lists_the_newest_file_first() {
    let world = world();
    world.set_now_ms(START_MS + 1);
    text(&world, "Write", json!({"file_path": "/w/src/run.rs", "content": "pub fn run() { stop() }\n"}));
    let found = text(&world, "Glob", json!({"pattern": "**/*.rs"}));
    assert_eq!(found.lines().next(), Some("/w/src/run.rs"), "{found}");
    assert!(found.contains("/w/src/main.rs"), "{found}");
}

#[test]
fn grep_finds_lines_in_files_of_a_type() {
    let arguments = json!({"pattern": "run\\(", "type": "rust", "output_mode": "content", "-n": true});
    let found = text(&world(), "Grep", arguments);
    assert!(
        found.contains("src/main.rs:2:    run();") && found.contains("src/run.rs:1:pub fn run() {}"),
        "{found}"
    );
    assert!(!found.contains("notes.md"), "{found}");
}

#[test]
fn bash_runs_the_command_and_reports_its_exit_code() {
    let world = world();
    world.processes.push_output(3, "half done\n");
    let output = call(&world, "Bash", json!({"command": "make all"})).unwrap();
    assert_eq!(output.as_text(), "half done\nExit code 3");
    assert_eq!(output.structured.unwrap()["exitCode"], 3);
    let argv = &world.processes.requests()[0].argv;
    assert!(argv[..2] == ["bash", "-c"] && argv[2].to_string_lossy().ends_with("; make all"), "{argv:?}");
}

/// A command that succeeds and ends in `cwd`.
fn ends_in(cwd: &str) -> Finished {
    let head = format!("{cwd}\n").into_bytes();
    let stderr = Capture { total: head.len() as u64, head, tail: Vec::new() };
    Finished {
        exit: Exit::Code(0),
        stdout: Capture::default(),
        stderr,
        elapsed: Duration::ZERO,
        left_behind: 0,
        denials: Vec::new(),
        exhausted: None,
        runs_on_build: Vec::new(),
        previewed: None,
    }
}

#[test]
fn bash_starts_where_the_last_command_ended() {
    let world = world();
    for cwd in ["/w/src", "/w/src", "/etc", "/w/gone", "/w"] {
        world.processes.push(ends_in(cwd));
    }
    let run = || text(&world, "Bash", json!({"command": "cd somewhere"}));
    assert_eq!((run(), run()), ("(no output)".to_owned(), "(no output)".to_owned()));
    assert_eq!(run(), "Shell cwd was reset to /w", "/etc is outside of the workspace");
    run();
    run();
    let started: Vec<_> = world.processes.requests().into_iter().map(|request| request.cwd).collect();
    let src = Some(PathBuf::from("/w/src"));
    let reset = Some(PathBuf::from("/w"));
    assert_eq!(started, [None, src.clone(), src, reset, None], "the last directory does not exist");
}

#[test]
fn web_fetch_reads_a_scripted_response() {
    let world = world();
    world.http.push_body(200, "text/html", "<h1>Title</h1><p>Text</p>");
    let page = text(&world, "WebFetch", json!({"url": "https://example.com/", "prompt": "Summarise"}));
    assert!(page.contains("Title") && page.contains("Text"), "{page}");
    assert_eq!(world.http.requests()[0].url, "https://example.com/");
}

#[test]
fn todos_are_notes_of_the_session() {
    let world = world();
    let todos = json!([{"content": "Test", "status": "pending", "activeForm": "Testing"}]);
    text(&world, "TodoWrite", json!({"todos": todos}));
    let again = call(&world, "TodoWrite", json!({"todos": []})).unwrap().structured.unwrap();
    assert_eq!(again["oldTodos"], todos);
}
