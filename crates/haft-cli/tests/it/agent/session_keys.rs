//! The keys of an interactive session: Ctrl-C, Ctrl-D, Ctrl-Z, several lines, completion, and answers.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::session::{PROMPT, say, session, write};
use super::{bash, says, scripted_command};
use crate::fixture::cli::CliFixture;
use crate::fixture::terminal::Terminal;
use crate::fixture::wait_until;

/// A command that runs until it is let go on.
const WAITS: &str = "touch started; while [ ! -e go ]; do sleep 0.05; done";

#[test]
fn an_approval_is_one_key() {
    let cli = CliFixture::new();
    let outside = tempfile::tempdir().unwrap();
    let path = |name: &str| outside.path().join(name);
    let script = [
        write(&path("yes"), "x"),
        says("One."),
        write(&path("no"), "x"),
        says("Two."),
        write(&path("enter"), "x"),
        says("3."),
    ];
    let mut terminal = session(&cli, &script, 80);
    for (keys, name, is_there) in [("y", "yes", true), ("n", "no", false), ("\r", "enter", false)] {
        terminal.press("write it\r");
        terminal.sees("[y/N/s/a] ");
        terminal.press(keys);
        terminal.sees("script, context ");
        terminal.sees(PROMPT);
        assert_eq!(path(name).exists(), is_there, "{name}");
    }
}

#[test]
fn what_was_typed_before_a_question_is_no_answer() {
    let cli = CliFixture::new();
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a.txt");
    let mut terminal = session(&cli, &[bash(WAITS), write(&path, "x"), says("Over.")], 80);
    terminal.press("go\r");
    wait_until(|| cli.path("started").exists());
    terminal.press("yyyy");
    cli.write("go", "");
    terminal.sees("[y/N/s/a] ");
    terminal.press("n");
    terminal.sees("Over.");
    terminal.sees(PROMPT);
    assert!(!path.exists());
}

#[test]
fn what_is_typed_during_a_turn_is_the_next_message() {
    let cli = CliFixture::new();
    let mut terminal = session(&cli, &[bash(WAITS), says("One."), says("Two."), says("Three.")], 80);
    terminal.press("go\r");
    wait_until(|| cli.path("started").exists());
    terminal.press("second message\rthird message\r");
    cli.write("go", "");
    terminal.sees("One.");
    terminal.sees("second message");
    terminal.sees("Two.");
    terminal.sees("third message");
    terminal.sees("Three.");
}

#[test]
fn ctrl_o_expands_the_last_call_and_keeps_what_was_typed() {
    let cli = CliFixture::new();
    let mut terminal = session(&cli, &[bash("seq 101 120"), says("One."), says("Two.")], 80);
    terminal.press("go\r");
    terminal.sees("One.");
    terminal.sees(PROMPT);
    terminal.press("half a message\x0f");
    terminal.sees("120");
    terminal.sees("half a message");
    terminal.press(" and the rest\r");
    terminal.sees("Two.");
    let ledger = haft_ledger::Ledger::open(cli.home()).unwrap();
    let run = ledger.sessions(1).unwrap().remove(0);
    let state = haft_agent::read_run(&ledger, &run.id).unwrap().unwrap();
    let conversation = serde_json::to_string(&state.conversation).unwrap();
    assert!(conversation.contains("half a message and the rest"), "{conversation}");
}

#[test]
fn ctrl_c_stops_the_turn_and_keeps_the_run() {
    let cli = CliFixture::new();
    let script = [bash("touch started; sleep 1000"), says("Never."), says("Later.")];
    let mut terminal = session(&cli, &script, 80);
    terminal.press("begin\r");
    wait_until(|| cli.path("started").exists());
    terminal.press("\x03");
    terminal.sees("Stopped. The conversation is kept");
    terminal.sees(PROMPT);
    let text = say(&mut terminal, "go on");
    assert!(text.contains("Never."), "the script goes on: {text}");
    terminal.press("\x03");
    terminal.sees("Ctrl-C again leaves");
    terminal.sees(PROMPT);
    terminal.press("\x03");
    assert_eq!(terminal.ends().0, 130);
    let log = cli.haft(&["log"]).stdout;
    assert!(log.contains("interrupted"), "{log}");
}

#[test]
fn ctrl_c_cancels_a_question() {
    let cli = CliFixture::new();
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a.txt");
    let mut terminal = session(&cli, &[write(&path, "x"), says("Next.")], 80);
    terminal.press("write\r");
    terminal.sees("[y/N/s/a] ");
    terminal.press("\x03");
    terminal.sees("Stopped.");
    terminal.sees(PROMPT);
    let text = say(&mut terminal, "yes");
    assert!(text.contains("Next."), "no key is lost to the question: {text}");
    assert!(!path.exists());
}

#[test]
fn several_lines_come_by_backslash_alt_enter_and_paste() {
    let cli = CliFixture::new();
    let mut terminal = session(&cli, &[says("One."), says("Two.")], 80);
    say(&mut terminal, "first\\\rsecond\x1b\rthird");
    say(&mut terminal, "\x1b[200~pasted\rlines\r\x1b[201~end");
    terminal.press("\x04");
    assert_eq!(terminal.ends().0, 0);
    let file = cli.home().join("prompts.jsonl");
    let prompts = std::fs::read_to_string(&file).unwrap();
    assert_eq!(prompts, "\"first\\nsecond\\nthird\"\n\"pasted\\nlines\\nend\"\n");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // The next session has the history.
    let mut terminal = session(&cli, &[says("Again.")], 80);
    terminal.press("\x1b[A");
    terminal.sees("lines");
    let text = say(&mut terminal, "");
    assert!(text.contains("Again."), "{text}");
}

#[test]
fn tab_completes_commands_and_files_that_are_not_ignored() {
    let cli = CliFixture::new();
    std::fs::create_dir_all(cli.path("src/deep")).unwrap();
    std::fs::create_dir_all(cli.path(".git")).unwrap();
    cli.write("src/deep/module.rs", "");
    cli.write("module-ignored.rs", "");
    cli.write(".gitignore", "module-ignored.rs\n");
    let mut terminal = session(&cli, &[says("Read.")], 80);
    terminal.press("/und\t\r");
    terminal.sees("/undo");
    terminal.sees("Nothing was said yet");
    terminal.sees(PROMPT);
    say(&mut terminal, "look at @modu\t now");
    terminal.press("\x04");
    assert_eq!(terminal.ends().0, 0);
    let prompts = std::fs::read_to_string(cli.home().join("prompts.jsonl")).unwrap();
    assert!(prompts.contains("look at @src/deep/module.rs now"), "{prompts}");
}

/// The modes of the terminal, as `stty` names them, after a command that a shell has run.
fn modes_after(terminal: &mut Terminal) -> String {
    terminal.sees("speed");
    terminal.text_up_to("extproc")
}

fn are_restored(modes: &str) -> bool {
    ["-icanon", "-echo ", "-isig", "-icrnl"].iter().all(|mode| !modes.contains(mode))
}

/// A shell that says its number, becomes the program, and shows the terminal's modes afterwards.
fn inside_shell(cli: &CliFixture, script: &[serde_json::Value]) -> Terminal {
    let haft = scripted_command(cli, script, &[]);
    let words: Vec<String> = std::iter::once(haft.get_program())
        .chain(haft.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let inner = format!("sh -c 'echo \"pid $$ .\"; exec \"$0\" \"$@\"' {}; stty -a", words.join(" "));
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(inner).current_dir(cli.root());
    for (name, value) in haft.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    Terminal::with_columns(shell, 200)
}

#[test]
fn the_terminal_is_restored_however_the_session_ends() {
    for signal in ["TERM", "HUP"] {
        for during_turn in [false, true] {
            let cli = CliFixture::new();
            let mut terminal = inside_shell(&cli, &[bash("touch started; sleep 1000"), says("Never.")]);
            terminal.sees("pid ");
            let id = terminal.text_up_to(" .").trim_end_matches(" .").to_owned();
            terminal.sees(PROMPT);
            if during_turn {
                terminal.press("go\r");
                wait_until(|| cli.path("started").exists());
            }
            assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
            let modes = modes_after(&mut terminal);
            assert!(are_restored(&modes), "{signal} {during_turn}: {modes}");
        }
    }
}

#[test]
fn ctrl_z_restores_the_terminal_and_fg_goes_on() {
    let cli = CliFixture::new();
    let haft = scripted_command(&cli, &[bash(WAITS), says("Over.")], &[]);
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]).current_dir(cli.root()).env("PS1", "ready$ ");
    let mut line = vec![haft.get_program().to_str().unwrap().to_owned()];
    line.extend(haft.get_args().map(|word| word.to_str().unwrap().to_owned()));
    for (name, value) in haft.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let mut terminal = Terminal::with_columns(shell, 200);
    terminal.sees("ready$ ");
    terminal.types(&line.join(" "));
    terminal.sees(PROMPT);
    terminal.press("go\r");
    wait_until(|| cli.path("started").exists());
    terminal.press("\x1a");
    terminal.sees("Stopped");
    terminal.sees("ready$ ");
    terminal.types("stty -a");
    let modes = modes_after(&mut terminal);
    assert!(are_restored(&modes), "{modes}");
    terminal.sees("ready$ ");
    cli.write("go", "");
    terminal.types("fg");
    terminal.sees("Over.");
    terminal.sees(PROMPT);
    // At the prompt the line editor stops the process.
    terminal.press("\x1a");
    terminal.sees("Stopped");
    terminal.sees("ready$ ");
    terminal.types("fg");
    terminal.sees(PROMPT);
    terminal.press("\x04");
    terminal.sees("ready$ ");
}
