//! The same through the program: at a terminal, without one, and from one process to the next.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use haft::{Value, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::terminal::Terminal;
use crate::host::{question, todo};

#[test]
fn a_later_process_of_the_session_sees_the_old_todos() {
    let cli = CliFixture::new();
    let write = |todos: Value, more: &[&str]| -> Value {
        let arguments = json!({"todos": todos}).to_string();
        let ran = cli.haft(&[&["call", "TodoWrite", &arguments, "--json"], more].concat());
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let first = write(json!([todo("look", "pending")]), &[]);
    let session = first["receipt"]["session"].as_str().unwrap();
    let second = write(json!([]), &["--session", session]);
    assert_eq!(second["structured"]["oldTodos"], json!([todo("look", "pending")]));
    assert_eq!(write(json!([]), &[])["structured"]["oldTodos"], json!([]), "another session has its own");
}

#[test]
fn a_person_at_the_terminal_answers_by_number_by_several_or_in_their_own_words() {
    let cli = CliFixture::new();
    let questions = [question("Which?", false), question("Which ones?", true), question("Else?", false)];
    let arguments = json!({"questions": questions}).to_string();
    let mut terminal = Terminal::run(cli.command(&["call", "AskUserQuestion", &arguments]));
    terminal.sees("[Colour] Which?");
    terminal.sees("2) Blue  it is Blue");
    terminal.sees("A number (1-2), or your own answer: ");
    terminal.types("7");
    terminal.sees("Choose a number from 1 to 2.");
    terminal.sees("A number (1-2), or your own answer: ");
    terminal.types("2");
    terminal.sees("Numbers separated by commas (1-2), or your own answer: ");
    terminal.types("1,2");
    terminal.sees("Else?");
    terminal.sees("your own answer: ");
    terminal.types("rather green");
    terminal.sees("rather green");
    let (code, said) = terminal.ends();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Which?\n  Blue\nWhich ones?\n  Red, Blue\nElse?\n  rather green\n"), "{said}");
}

#[test]
fn ctrl_c_ends_a_question_and_the_end_of_input_too() {
    let cli = CliFixture::new();
    let arguments = json!({"questions": [question("Which?", false)]}).to_string();
    for key in ["\u{3}", "\u{4}"] {
        let mut terminal = Terminal::run(cli.command(&["call", "AskUserQuestion", &arguments]));
        terminal.sees("your own answer: ");
        terminal.press(key);
        assert_eq!(terminal.ends().0, 130, "{key:?}");
    }
    let ran = cli.haft(&["call", "AskUserQuestion", &arguments]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("No one can answer"), "{}", ran.stdout);
}

#[test]
fn leaving_the_sandbox_needs_a_rule() {
    let cli = CliFixture::new();
    let arguments = json!({"command": "echo free > out", "dangerouslyDisableSandbox": true}).to_string();
    let ran = cli.haft(&["call", "Bash", &arguments]);
    assert_eq!((ran.code, cli.path("out").exists()), (3, false));
    assert!(ran.stdout.contains("Bash(unsandboxed)"), "{}", ran.stdout);
    let ran = cli.haft(&["call", "Bash", &arguments, "--allowedTools", "Bash(echo *)"]);
    assert_eq!(ran.code, 3, "a rule for the command is not one for the sandbox");
    let ran = cli.haft(&["call", "Bash", &arguments, "--json", "--allowedTools", "Bash(unsandboxed)"]);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, cli.read("out").as_str()), (0, "free\n"));
    assert!(value["receipt"]["enforcement"].as_str().unwrap().starts_with("off"), "{}", value["receipt"]);
    assert_ne!(value["receipt"]["reversible"], "yes");
    let held = json!({"command": "true", "dangerouslyDisableSandbox": false}).to_string();
    let ran = cli.haft(&["call", "Bash", &held, "--json"]);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(!value["receipt"]["enforcement"].as_str().unwrap().starts_with("off"), "{}", value["receipt"]);
    let (code, said) = Terminal::run(cli.command(&["call", "Bash", &arguments])).ends();
    assert!(code == 3 && said.contains("the command would run without the sandbox"), "{said}");
}

#[test]
fn an_edit_that_a_client_has_worked_out_is_written_instead_of_run() {
    let cli = CliFixture::new();
    cli.write("a.txt", "old\n");
    let edit = json!({"filePath": cli.path("a.txt"), "newContent": "new\n"});
    let ran = cli
        .call("Bash", &json!({"command": "sed -i s/old/new/ a.txt; touch ran", "_simulatedSedEdit": edit}));
    assert_eq!((ran.code, cli.read("a.txt").as_str(), cli.path("ran").exists()), (0, "new\n", false));
    assert_eq!(cli.haft(&["undo", "--yes"]).code, 0);
    assert_eq!(cli.read("a.txt"), "old\n");
    let edit = json!({"filePath": "/etc/haft-host-test", "newContent": ""});
    assert_eq!(cli.call("Bash", &json!({"command": "x", "_simulatedSedEdit": edit})).code, 3);
}

#[test]
fn messages_go_out_by_the_channels_of_the_file() {
    let cli = CliFixture::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::fs::write(
        cli.config(),
        format!("[channels.ops]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:{port}/in\"\n[channels.here]\nkind = \"log\"\n"),
    )
    .unwrap();
    // Takes the first message, and will not have the second.
    let heard = std::thread::spawn(move || {
        ["200 OK", "400 Bad Request"].map(|status| {
            let (mut stream, _) = server.accept().unwrap();
            let body = body(&mut BufReader::new(stream.try_clone().unwrap()));
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
            body
        })
    });
    let send = |channel: &str| {
        let arguments = json!({"channel": channel, "chat_id": "42", "content": "it is done"}).to_string();
        cli.haft(&["call", "message", &arguments, "--dialect", "clawft"])
    };
    let ran = send("ops");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let ran = send("here");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("here 42: it is done"), "{}", ran.stderr);
    let ran = send("nowhere");
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    let ran = send("ops");
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("the message to ops 42 was not delivered"), "{}", ran.stderr);
    assert!(heard.join().unwrap().iter().all(|body| body.contains("it is done")));
}

/// What a request carries.
fn body(from: &mut impl BufRead) -> String {
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let start = head.len();
        from.read_line(&mut head).unwrap();
        if let Some(value) = head[start..].to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}
