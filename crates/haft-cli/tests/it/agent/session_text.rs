//! What an interactive session writes: within the columns of the terminal, and without foreign control characters.

use serde_json::json;

use super::session::{PROMPT, say, session};
use super::{bash, says};
use crate::fixture::cli::CliFixture;

const PROSE: &str = "# The heading\n\nA paragraph with **bold words** and `code`, which is longer than two hundred columns, so that it \
    has to be wrapped between its words wherever the terminal ends, also with wide characters such as 日本語日本語日本語 in it, and \
    it goes on for a while.\n\n- an item of a list that is long enough to be wrapped at eighty columns, and is indented then\n";

/// Text without escape sequences, as rows: what a carriage return or a newline separates.
fn rows(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\x1b' {
            plain.push(c);
            continue;
        }
        if chars.next() == Some('[') {
            let _ = chars.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    plain.split(['\r', '\n']).map(str::to_owned).collect()
}

/// The columns of a row of the characters that are used here.
fn width(row: &str) -> usize {
    row.chars().map(|c| if c >= '\u{2e80}' { 2 } else { 1 }).sum()
}

fn fits(text: &str, columns: usize) {
    for row in rows(text) {
        assert!(width(&row) < columns, "{} columns of {columns}: {row:?}", width(&row));
    }
}

#[test]
fn text_is_wrapped_between_words_at_80_and_200_columns() {
    for columns in [80, 200] {
        let cli = CliFixture::new();
        let long = format!("echo {}", "long ".repeat(100));
        let script = [
            json!({"text": PROSE, "calls": [{"name": "Bash", "arguments": {"command": long}}]}),
            says("Over."),
        ];
        let mut terminal = session(&cli, &script, columns);
        let text = say(&mut terminal, "go");
        fits(&text, columns.into());
        let words = rows(&text).join(" ");
        assert!(words.contains("The heading") && words.contains("Over."), "{words}");
        let longest = rows(&text).iter().map(|row| width(row)).max().unwrap();
        assert!(longest > usize::from(columns) - 30, "the width is used: {longest} of {columns}");
    }
}

#[test]
fn a_resized_terminal_is_wrapped_at_its_new_width() {
    let cli = CliFixture::new();
    let mut terminal = session(&cli, &[says(PROSE), says(PROSE)], 200);
    fits(&say(&mut terminal, "wide"), 200);
    terminal.resize(60);
    let text = say(&mut terminal, "narrow");
    fits(&text, 60);
}

#[test]
fn control_characters_of_the_model_and_of_tools_never_reach_the_terminal() {
    let cli = CliFixture::new();
    let evil = "a\u{1b}]0;title\u{7}b\u{1b}[2Jc\u{9b}31md\u{202e}e\rf";
    let script = [
        json!({"text": format!("{evil}\n"), "calls": [{"name": "Bash",
            "arguments": {"command": "printf 'x\\033]52;c;aGk=\\007y\\033[?1049hz\\n'", "description": evil}}]}),
        json!({"calls": [{"name": "Bash", "arguments": {"command": format!("echo {evil}; false")}}]}),
        json!({"calls": [{"name": evil, "arguments": {}}]}),
        says(evil),
    ];
    let mut terminal = session(&cli, &script, 80);
    let text = say(&mut terminal, "go");
    for bad in ["\x1b]", "\x1b[2J", "\x1b[?1049h", "\u{7}", "\u{9b}", "\u{202e}"] {
        assert!(!text.contains(bad), "{bad:?}: {text:?}");
    }
    assert!(text.contains("a\\u{1b}]0;title\\u{7}b"), "{text:?}");
    terminal.press("/log\r");
    let log = terminal.text_up_to(PROMPT);
    assert!(!log.contains("\x1b]") && !log.contains('\u{7}'), "{log:?}");
}

#[test]
fn running_calls_show_their_time_and_last_line() {
    let cli = CliFixture::new();
    let command = "echo first line; echo newest line; while [ ! -e go ]; do sleep 0.05; done";
    let mut terminal = session(&cli, &[bash(command), says("Over.")], 120);
    terminal.press("go\r");
    terminal.sees("s  newest line");
    cli.write("go", "");
    let text = terminal.text_up_to("Over.");
    assert!(text.contains("call 1"), "{text}");
}
