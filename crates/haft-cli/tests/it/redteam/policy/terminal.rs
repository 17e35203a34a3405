//! E27: names and other text from files never reach the terminal raw.

use serde_json::json;

use crate::fixture::cli::CliFixture;
use crate::fixture::terminal::Terminal;

/// A name with a sequence that hides a line, a fake line, a carriage return and a C1 control character.
const NAME: &str = "a\x1b[1A\x1b[2K\nerror: fake\r\u{9b}2J";
const SHOWN: &str = "a\\u{1b}[1A\\u{1b}[2K\\nerror: fake\\u{d}\\u{9b}2J";

/// What the program prints at a terminal, up to its end.
fn printed(cli: &CliFixture, args: &[&str], answer: Option<&str>) -> String {
    let mut terminal = Terminal::run(cli.command(args));
    let mut text = String::new();
    if let Some(answer) = answer {
        text = terminal.text_up_to("[y/N");
        terminal.types(answer);
    }
    text + &terminal.ends().1
}

#[track_caller]
fn has_no_control_characters(text: &str) {
    let text = text.replace("\r\n", "\n");
    let raw: Vec<char> = text.chars().filter(|c| c.is_control() && !"\n\t".contains(*c)).collect();
    assert!(raw.is_empty(), "{text:?}");
}

#[track_caller]
fn is_clean(text: &str) {
    has_no_control_characters(text);
    assert!(!text.lines().any(|line| line.starts_with("error: fake")), "{text:?}");
}

#[test]
fn e27_hostile_names_are_escaped_by_every_command() {
    let cli = CliFixture::new();
    let path = cli.path(NAME);
    let write = json!({"file_path": path, "content": "one\x1b[2Jtwo\n"}).to_string();
    let call = cli.haft(&["call", "Write", &write, "--json"]);
    assert_eq!(call.code, 0, "{}", call.stderr);
    for args in
        [&["show", "1"][..], &["show", "1", "--all"], &["log"], &["log", "--all"], &["undo", "--dry-run"]]
    {
        let text = printed(&cli, args, None);
        is_clean(&text);
        assert!(text.contains("a\\u{1b}[1A"), "{args:?}: {text:?}");
    }
    let text = printed(&cli, &["undo"], Some("n"));
    is_clean(&text);
    assert!(text.contains(SHOWN), "{text:?}");
    let read = json!({"file_path": cli.path(&format!("missing{NAME}"))}).to_string();
    // The text of a result is what the model sees, line breaks included.
    has_no_control_characters(&printed(&cli, &["call", "Read", &read], None));
    let outside = json!({"file_path": format!("/{NAME}"), "content": ""}).to_string();
    let asked = printed(&cli, &["call", "Write", &outside], Some("n"));
    has_no_control_characters(&asked);
    assert!(asked.contains(&format!("create /{SHOWN}")), "{asked:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn e27_what_a_command_names_is_escaped() {
    let cli = CliFixture::new();
    let script = "d=\"$(printf 'd\\033[2K\\nerror: fake')\"; mkdir \"$d\" && mkdir x && touch x/a && \
                  ln -s \"$d\" l && chmod 700 \"$d\" && mv x \"$d/x\"; echo > \"/$d\"";
    let ran = cli.call("Bash", &json!({"command": script}));
    assert!(ran.code <= 1, "{}{}", ran.stdout, ran.stderr);
    for args in [&["show", "1"][..], &["show", "1", "--all"], &["log"], &["undo", "--dry-run"]] {
        is_clean(&printed(&cli, args, None));
    }
    assert!(cli.path("l").is_symlink());
}
