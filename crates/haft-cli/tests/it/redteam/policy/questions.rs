//! E32: a question shows exactly what would happen, at a terminal and to an MCP client.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::terminal::Terminal;

/// Haft as an MCP server over stdio, with a client that can show forms.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn start(cli: &CliFixture, flags: &[&str]) -> Self {
        let mut command = cli.command(&[&["mcp"], flags].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child, input, output };
        client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        }}));
        assert_eq!(client.next()["id"], 1);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Makes a request and declines what is asked; returns the question and the response.
    fn declined(&mut self, method: &str, params: &Value) -> (String, Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}));
        let mut question = None;
        loop {
            let message = self.next();
            if message["method"] == "elicitation/create" {
                question = message["params"]["message"].as_str().map(str::to_owned);
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {"action": "decline"}}));
            } else if message["id"] == 2 {
                let question = question.unwrap_or_else(|| panic!("no question was asked: {message}"));
                return (question, message);
            }
        }
    }

    /// Calls a tool and declines; returns the question.
    fn question(&mut self, tool: &str, arguments: &Value) -> String {
        let (question, response) =
            self.declined("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert_eq!(response["result"]["isError"], true, "{response}");
        question
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The question at a terminal, which is answered with no.
fn at_terminal(cli: &CliFixture, tool: &str, arguments: &Value, flags: &[&str]) -> String {
    let arguments = arguments.to_string();
    let mut terminal = Terminal::run(cli.command(&[&["call", tool, &arguments], flags].concat()));
    let seen = terminal.text_up_to("[y/N");
    terminal.types("n");
    assert_eq!(terminal.ends().0, 3);
    seen
}

/// Writes the user's settings.
fn set(cli: &CliFixture, text: &str) {
    std::fs::write(cli.config(), text).unwrap();
}

/// The question in both places must show all of `expected`, in this order.
#[track_caller]
fn shows(cli: &CliFixture, tool: &str, arguments: &Value, flags: &[&str], expected: &[&str]) {
    let shown =
        [at_terminal(cli, tool, arguments, flags), Client::start(cli, flags).question(tool, arguments)];
    for text in shown {
        let mut rest = text.replace("\r\n", "\n");
        for part in expected {
            let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is not shown in {text:?}"));
            rest.drain(..at + part.len());
        }
        let unsafe_chars: Vec<char> =
            text.chars().filter(|c| c.is_control() && !"\r\n".contains(*c)).collect();
        assert!(unsafe_chars.is_empty(), "{text:?}");
    }
}

#[test]
fn e32_command_is_shown_whole_and_that_it_leaves_the_sandbox() {
    let cli = CliFixture::new();
    let command = "echo one\necho \x1b[8mtwo\u{202e}\necho three";
    let lines = ["    echo one\n", "    echo \\u{1b}[8mtwo\\u{202e}\n", "    echo three\n"];
    let flags = ["--permission-mode", "default"];
    set(&cli, "[permissions]\nask = [\"Bash\"]\nallow = [\"Bash(unsandboxed)\"]\n");
    shows(&cli, "Bash", &json!({"command": command}), &flags, &lines);
    let free = json!({"command": command, "dangerouslyDisableSandbox": true});
    shows(&cli, "Bash", &free, &flags, &[&lines[..], &["outside the sandbox"]].concat());
}

#[test]
fn e32_long_command_is_bounded_with_a_note_and_its_end_is_shown() {
    let cli = CliFixture::new();
    set(&cli, "[permissions]\nask = [\"Bash\"]\n");
    let command = format!("first\n{}last", "\n".repeat(500));
    let expected = ["    first\n", "lines in the middle are not shown", "    last\n"];
    shows(&cli, "Bash", &json!({"command": command}), &[], &expected);
    let command = format!("first{}last", " ".repeat(5_000));
    shows(
        &cli,
        "Bash",
        &json!({"command": command}),
        &[],
        &["first ", "characters are not shown", " last\n"],
    );
}

#[test]
fn e32_fetch_shows_its_url() {
    let cli = CliFixture::new();
    let url = "http://example.com/path?key=value#part";
    let arguments = json!({"url": url, "prompt": "what is it"});
    set(&cli, "[permissions]\nask = [\"WebFetch\"]\n");
    shows(&cli, "WebFetch", &arguments, &[], &[url, "what is it", "a rule asks before WebFetch"]);
}

#[test]
fn e32_edit_shows_its_diff_and_where_a_link_leads() {
    let cli = CliFixture::new();
    cli.write("a.txt", "one\ntwo\nthree\n");
    std::fs::create_dir(cli.path(".vscode")).unwrap();
    cli.write(".vscode/tasks.json", "old\n");
    std::os::unix::fs::symlink(".vscode", cli.path("v")).unwrap();
    let flags = ["--permission-mode", "default"];
    set(&cli, "[permissions]\nask = [\"Edit\", \"Write\"]\n");
    let edit = json!({"file_path": cli.path("a.txt"), "old_string": "two", "new_string": "2"});
    shows(&cli, "Edit", &edit, &flags, &["a.txt\n", " one\n", "-two\n", "+2\n", " three\n"]);
    let new = json!({"file_path": cli.path("new.txt"), "content": "fresh\x1b[2J\n"});
    shows(&cli, "Write", &new, &flags, &["create ", "new.txt\n", "+fresh\\u{1b}[2J\n"]);
    let linked = json!({"file_path": cli.path("v/tasks.json"), "content": "new\n"});
    let expected = ["-old\n", "+new\n", ".vscode/tasks.json: protected"];
    shows(&cli, "Write", &linked, &flags, &expected);
    assert_eq!(
        (cli.read("a.txt").as_str(), cli.read(".vscode/tasks.json").as_str()),
        ("one\ntwo\nthree\n", "old\n")
    );
    assert!(!cli.path("new.txt").exists());
}

#[test]
fn e32_setting_shows_its_values() {
    let cli = CliFixture::new();
    let arguments = json!({"setting": "offer", "value": "Read"});
    // Over MCP it is offered only by name.
    shows(&cli, "Config", &arguments, &["--tools", "Config"], &["setting offer: null becomes \"Read\""]);
}

#[test]
fn e15_a_resource_that_may_hold_secrets_is_asked_about() {
    let cli = CliFixture::new();
    cli.write(".env", "KEY=needle\n");
    let params = json!({"uri": format!("file://{}", cli.path(".env").display())});
    let (question, response) = Client::start(&cli, &[]).declined("resources/read", &params);
    assert!(question.contains("may hold secrets"), "{question}");
    assert!(response.get("error").is_some() && !response.to_string().contains("needle"), "{response}");
}
