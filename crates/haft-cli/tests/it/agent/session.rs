//! `haft` at a terminal: messages, commands and questions of an interactive session.

use serde_json::{Value, json};

use super::{bash, says, scripted_command, without_models};
use crate::fixture::cli::CliFixture;
use crate::fixture::terminal::Terminal;
use crate::fixture::wait_until;

/// The prompt, as the line editor draws it.
pub(super) const PROMPT: &str = "> \x1b[0m";

/// A session whose model plays a script.
pub(super) fn session(cli: &CliFixture, script: &[Value], columns: u16) -> Terminal {
    let mut terminal = Terminal::with_columns(scripted_command(cli, script, &[]), columns);
    terminal.sees("Ctrl-D leaves");
    terminal.sees(PROMPT);
    terminal
}

/// Says something and waits for the end of the turn; returns all that was written.
pub(super) fn say(terminal: &mut Terminal, message: &str) -> String {
    terminal.press(&format!("{message}\r"));
    let text = terminal.text_up_to("script, context ");
    terminal.sees(PROMPT);
    text
}

fn leave(mut terminal: Terminal) -> String {
    terminal.press("\x04");
    let (code, text) = terminal.ends();
    assert_eq!(code, 0, "{text}");
    text
}

pub(super) fn write(path: &std::path::Path, content: &str) -> Value {
    json!({"calls": [{"name": "Write", "arguments": {"file_path": path, "content": content}}]})
}

#[test]
fn a_turn_shows_text_calls_diffs_and_the_status() {
    let cli = CliFixture::new();
    cli.write("notes.txt", "buy tea\n");
    let edit = json!({"file_path": cli.path("notes.txt"), "old_string": "tea", "new_string": "coffee"});
    let script = [
        json!({"text": "I will **change** it.", "calls": [{"name": "Edit", "arguments": edit}],
            "usage": {"input": 20_000, "output": 10}}),
        bash("echo one; echo two; echo three; echo four"),
        says("Changed."),
    ];
    let mut terminal = session(&cli, &script, 80);
    let text = say(&mut terminal, "Change tea to coffee");
    for shown in
        ["I will \x1b[1mchange\x1b[0m it.", "notes.txt", "call 1, 1 change", "-buy tea", "+buy coffee"]
    {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    for shown in ["echo one; echo two", "call 2", "  \x1b[2mthree", "+ 1 line: /show 2", "Changed."] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    terminal.press("/show\r");
    terminal.sees("  four");
    terminal.sees(PROMPT);
    leave(terminal);
    let stored = cli.haft(&["log", "--json", "-n", "1"]).stdout;
    assert!(stored.contains("\"call_id\""), "{stored}");
}

#[test]
fn the_first_message_may_follow_the_flags() {
    let cli = CliFixture::new();
    let mut terminal = Terminal::with_columns(scripted_command(&cli, &[says("Hello.")], &["say hello"]), 80);
    terminal.sees("say hello");
    terminal.sees("Hello.");
    terminal.sees(PROMPT);
    assert!(leave(terminal).contains("to continue: haft --resume "));
}

#[test]
fn without_a_terminal_haft_prints_its_help() {
    let cli = CliFixture::new();
    let help = cli.haft(&[]);
    assert!(help.code == 2 && help.stderr.contains("Usage: haft"), "{}{}", help.stdout, help.stderr);
}

#[test]
fn without_a_model_the_session_says_how_to_get_one_and_goes_on() {
    let cli = CliFixture::new();
    let mut terminal = Terminal::with_columns(without_models(&cli, &[]), 80);
    for text in
        ["three ways to continue", "ANTHROPIC_API_KEY", "ollama serve", "--base-url URL", "/model PROVIDER"]
    {
        terminal.sees(text);
    }
    terminal.sees(PROMPT);
    terminal.press("hello\r");
    terminal.sees("three ways to continue");
    terminal.sees(PROMPT);
    terminal.press("/exit\r");
    assert_eq!(terminal.ends().0, 0);
}

#[test]
fn undo_takes_back_the_files_and_the_conversation_of_the_last_turn() {
    let cli = CliFixture::new();
    cli.write("a.txt", "old\n");
    let script = [says("First."), bash("rm a.txt; echo new > b.txt"), says("Second."), says("Third.")];
    let mut terminal = session(&cli, &script, 80);
    say(&mut terminal, "one");
    say(&mut terminal, "two");
    assert!(!cli.path("a.txt").exists());
    terminal.press("/undo\r");
    let preview = terminal.text_up_to("[y/N] ");
    assert!(preview.contains("a.txt") && preview.contains("b.txt"), "{preview}");
    terminal.press("n");
    terminal.sees("nothing was changed");
    terminal.sees(PROMPT);
    assert!(!cli.path("a.txt").exists());
    terminal.press("/undo\r");
    terminal.sees("[y/N] ");
    terminal.press("y");
    terminal.sees("as it was before turn 2");
    terminal.sees(PROMPT);
    assert_eq!((cli.read("a.txt").as_str(), cli.path("b.txt").exists()), ("old\n", false));
    // The run goes on behind the first turn.
    let text = say(&mut terminal, "three");
    assert!(text.contains("Third."), "{text}");
    let text = leave(terminal);
    let run = text.rsplit("--resume ").next().unwrap().split(['\x1b', '\n']).next().unwrap();
    let mut resumed = Terminal::with_columns(scripted_command(&cli, &[], &["--resume", run]), 80);
    resumed.sees("2 turns so far");
    resumed.sees("three");
    resumed.sees(PROMPT);
    leave(resumed);
}

#[test]
fn commands_of_a_session_work_and_unknown_ones_are_errors() {
    let cli = CliFixture::new();
    let script = [bash("echo made > made.txt"), says("Done."), says("Never asked.")];
    let mut terminal = session(&cli, &script, 120);
    say(&mut terminal, "make it");
    for (line, texts) in [
        ("/udno", &["There is no command /udno. Did you mean /undo?"][..]),
        ("/log", &["done", "echo made"]),
        ("/diff", &["made.txt", "+made"]),
        ("/show 1", &["echo made > made.txt"]),
        ("/show 99", &["99"]),
        ("/log --nonsense", &["--nonsense"]),
        ("/model", &["script"]),
        ("/model nothing x", &["is no provider", "anthropic"]),
        ("/tools", &["Edit", "Bash"]),
        ("/mcp", &["no MCP servers"]),
        ("/resume", &["make it"]),
        ("/resume zzzzzzzz", &["zzzzzzzz"]),
        ("/compact", &["script, context "]),
        ("/help", &["/undo", "/resume", "Alt-Enter"]),
        ("!echo from-the-shell; echo x > shell.txt", &["from-the-shell", "1 change"]),
        ("/new", &["script"]),
    ] {
        terminal.press(&format!("{line}\r"));
        terminal.sees(line);
        for text in texts {
            terminal.sees(text);
        }
        terminal.sees(PROMPT);
    }
    leave(terminal);
    assert_eq!(cli.read("shell.txt"), "x\n");
}

#[test]
fn the_user_is_asked_in_their_own_words() {
    let cli = CliFixture::new();
    let option = |label: &str| json!({"label": label, "description": "a colour"});
    let questions = json!([{"question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [option("Red"), option("Blue")]}]);
    let script = [
        json!({"calls": [{"name": "AskUserQuestion", "arguments": {"questions": questions}}]}),
        json!({"expect": {"contains": "dark green"}, "text": "Green it is."}),
    ];
    let mut terminal = session(&cli, &script, 80);
    terminal.press("paint it\r");
    terminal.sees("or your own answer: ");
    terminal.press("dark green\r");
    terminal.sees("Green it is.");
    terminal.sees(PROMPT);
    leave(terminal);
}

#[test]
fn a_killed_session_is_continued_where_it_was() {
    let cli = CliFixture::new();
    let script = [bash("touch started; sleep 1000"), says("Went on.")];
    let mut terminal = session(&cli, &script, 80);
    terminal.press("begin\r");
    wait_until(|| cli.path("started").exists());
    terminal.kill();
    let mut terminal = Terminal::with_columns(scripted_command(&cli, &script, &["--continue"]), 80);
    terminal.sees("The last turn was interrupted. /continue goes on with it.");
    terminal.sees(PROMPT);
    terminal.press("/continue\r");
    terminal.sees("interrupted: Haft ended while this call ran.");
    terminal.sees("Went on.");
    terminal.sees(PROMPT);
    leave(terminal);
}

#[test]
fn plain_sessions_write_no_escape_sequences() {
    let cli = CliFixture::new();
    let script = [
        json!({"text": "# Title\nSome **bold** text.\n", "calls": [{"name": "Bash",
        "arguments": {"command": "echo out; false"}}]}),
        says("Over."),
    ];
    let mut terminal = Terminal::with_columns(scripted_command(&cli, &script, &["--plain"]), 80);
    let mut all = terminal.text_up_to("\n> ");
    terminal.press("go\\\n");
    terminal.press("on\n");
    all.push_str(&terminal.text_up_to("script, context "));
    all.push_str(&terminal.text_up_to("> "));
    terminal.press("/log\n");
    all.push_str(&terminal.text_up_to("echo out"));
    all.push_str(&terminal.text_up_to("> "));
    terminal.press("/exit\n");
    let (code, rest) = terminal.ends();
    all.push_str(&rest);
    assert_eq!(code, 0);
    assert!(!all.contains('\x1b') && !all.replace("\r\n", "\n").contains('\r'), "{all:?}");
    for text in ["# Title", "Some **bold** text.", "Bash failed: echo out; false (", "Over."] {
        assert!(all.contains(text), "{text}: {all}");
    }
    let prompts = std::fs::read_to_string(cli.home().join("prompts.jsonl")).unwrap();
    assert!(prompts.contains(r#""go\non""#), "{prompts}");
}
