//! A person at a terminal: questions that store rules, Ctrl-Z, completion and manual pages.

use std::process::Command;

use crate::fixture::cli::CliFixture;
use crate::fixture::terminal::Terminal;
use serde_json::Value;

fn write_outside(cli: &CliFixture, path: &str, session: Option<&str>) -> Terminal {
    let path = format!("file_path={path}");
    let mut args = vec!["call", "Write", &path, "content=x"];
    args.extend(session.iter().flat_map(|session| ["--session", session]));
    Terminal::run(cli.command(&args))
}

#[test]
fn a_question_offers_once_this_session_and_always() {
    let cli = CliFixture::new();
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a.txt");
    let path = path.to_str().unwrap();
    let mut once = write_outside(&cli, path, None);
    let question = once.text_up_to("Run it? [y/N/s/a] ");
    assert!(question.contains(&format!("The rule Write(/{path})")), "{question}");
    assert!(question.contains(cli.config().to_str().unwrap()), "{question}");
    once.types("y");
    assert_eq!(once.ends().0, 0);

    let mut session = write_outside(&cli, path, None);
    session.sees("[y/N/s/a] ");
    session.types("s");
    assert_eq!(session.ends().0, 0);
    let newest = cli.haft(&["log", "--json", "-n", "1"]);
    let receipt: Value = serde_json::from_str(&newest.stdout).unwrap();
    let id = receipt["session"].as_str().unwrap().to_owned();
    assert_eq!(write_outside(&cli, path, Some(&id)).ends().0, 0, "the session goes on without a question");

    let mut always = write_outside(&cli, path, None);
    always.sees("[y/N/s/a] ");
    always.types("a");
    assert_eq!(always.ends().0, 0);
    let settings = std::fs::read_to_string(cli.config()).unwrap();
    assert!(settings.contains(&format!("allow = [\"Write(/{path})\"]")), "{settings}");
    assert_eq!(write_outside(&cli, path, None).ends().0, 0);
    assert_eq!(cli.haft(&["undo", "--yes"]).code, 0);
}

#[test]
fn an_added_rule_keeps_the_comments_of_the_others() {
    let cli = CliFixture::new();
    let settings = "[permissions]\nallow = [\n    # the tests\n    \"Bash(make *)\",\n]\n";
    std::fs::write(cli.config(), settings).unwrap();
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a.txt");
    let mut always = write_outside(&cli, path.to_str().unwrap(), None);
    always.sees("[y/N/s/a] ");
    always.types("a");
    assert_eq!(always.ends().0, 0);
    let settings = std::fs::read_to_string(cli.config()).unwrap();
    assert!(settings.contains("# the tests") && settings.contains("Bash(make *)"), "{settings}");
    assert!(settings.contains(&format!("Write(/{})", path.display())), "{settings}");
}

#[test]
fn a_file_with_wildcards_in_its_name_does_not_become_a_broad_rule() {
    let cli = CliFixture::new();
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("**");
    let mut always = write_outside(&cli, path.to_str().unwrap(), None);
    let question = always.text_up_to("[y/N/s/a] ");
    assert!(question.contains(&format!("Write(/{}/[*][*])", outside.path().display())), "{question}");
    always.types("a");
    assert_eq!(always.ends().0, 0);
    let other = outside.path().join("other");
    let ran = cli.haft(&["call", "Write", &format!("file_path={}", other.display()), "content=x"]);
    assert_eq!((ran.code, other.exists()), (3, false));
}

#[test]
fn a_no_is_remembered_nowhere() {
    let cli = CliFixture::new();
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a.txt");
    let mut no = write_outside(&cli, path.to_str().unwrap(), None);
    no.sees("[y/N/s/a] ");
    no.types("");
    assert_eq!(no.ends().0, 3);
    assert!(!path.exists() && !cli.config().exists());
}

/// An interactive shell in the workspace.
fn shell(cli: &CliFixture) -> Terminal {
    let mut command = Command::new("bash");
    command.args(["--norc", "--noprofile", "-i"]).current_dir(cli.root()).env("PS1", "ready> ");
    command.env("HAFT_HOME", cli.home()).env("HAFT_CONFIG", cli.config());
    let mut terminal = Terminal::run(command);
    terminal.sees("ready> ");
    terminal
}

#[test]
fn ctrl_z_stops_a_sandboxed_command_and_fg_continues_it() {
    let cli = CliFixture::new();
    let haft = crate::fixture::haft_program();
    let mut shell = shell(&cli);
    // The quotes keep the echo of the typed line from being taken for the output.
    shell.types(&format!(
        "{} sandbox sh -c 'echo star\"\"ted; read a; echo \"got $a\" > new; echo go\"\"t $a'",
        haft.display()
    ));
    shell.sees("started");
    shell.press("\x1a");
    shell.sees("Stopped");
    shell.sees("ready> ");
    shell.types("fg");
    shell.sees("sandbox sh -c");
    shell.types("this");
    shell.sees("got this");
    shell.sees("ready> ");
    shell.types("exit");
    assert_eq!(shell.ends().0, 0);
    assert_eq!(cli.read("new"), "got this\n");
    assert!(cli.haft(&["log"]).stdout.contains("1 changed"));
}

#[test]
fn ctrl_z_stops_a_call_and_fg_continues_it() {
    let cli = CliFixture::new();
    let haft = crate::fixture::haft_program();
    let mut shell = shell(&cli);
    let command = "touch started; while [ ! -e go ]; do sleep 0.05; done; echo do''ne";
    shell.types(&format!("{} call Bash command=\"{command}\"", haft.display()));
    crate::fixture::wait_until(|| cli.path("started").exists());
    shell.press("\x1a");
    shell.sees("Stopped");
    shell.sees("ready> ");
    cli.write("go", "");
    shell.types("fg");
    shell.sees("done");
    shell.sees("ready> ");
    shell.types("exit");
    assert_eq!(shell.ends().0, 0);
}

#[test]
fn question_is_shown_again_after_ctrl_z_and_fg() {
    let cli = CliFixture::new();
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a.txt");
    let haft = crate::fixture::haft_program();
    let mut shell = shell(&cli);
    shell.types(&format!("{} call Write file_path={} content=x", haft.display(), path.display()));
    shell.sees("Run it? [y/N/s/a] ");
    shell.press("\x1a");
    shell.sees("Stopped");
    shell.sees("ready> ");
    shell.types("fg");
    shell.sees("Run it? [y/N/s/a] ");
    shell.types("y");
    shell.sees("ready> ");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "x");
    shell.types(&format!("{} undo", haft.display()));
    shell.sees("Undo call 1? [y/N] ");
    shell.press("\x1a");
    shell.sees("Stopped");
    shell.sees("ready> ");
    shell.types("fg");
    shell.sees("Undo call 1? [y/N] ");
    shell.types("y");
    shell.sees("ready> ");
    shell.types("exit");
    assert_eq!(shell.ends().0, 0);
    assert!(!path.exists());
}

fn completed(cli: &CliFixture, words: &[&str]) -> Vec<String> {
    let mut command = cli.command(&["--", "haft"]);
    command
        .args(words)
        .env("HAFT_COMPLETE", "bash")
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_COMP_TYPE", "9");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn completion_knows_tools_arguments_calls_sessions_and_servers() {
    let cli = CliFixture::new();
    std::fs::write(cli.config(), "[tools.mcp_servers.notes]\ncommand = \"notes\"\n").unwrap();
    assert_eq!(cli.haft(&["call", "Write", "file_path=a.txt", "content=x"]).code, 0);
    let has = |words: &[&str], expected: &str| {
        let all = completed(&cli, words);
        assert!(all.iter().any(|candidate| candidate == expected), "{words:?}: {all:?}");
    };
    has(&["ca"], "call");
    has(&["call", "Re"], "Read");
    has(&["call", "--dialect", "loom", "read"], "read_file");
    has(&["call", "Read", "fi"], "file_path=");
    has(&["show", ""], "1");
    has(&["undo", ""], "1");
    has(&["man", "sa"], "sandbox");
    has(&["mcp", "get", "no"], "notes");
    let receipt: Value = serde_json::from_str(&cli.haft(&["log", "--json"]).stdout).unwrap();
    has(&["call", "--session", ""], receipt["session"].as_str().unwrap());
    for shell in ["bash", "zsh", "fish"] {
        assert!(cli.haft(&["completion", shell]).stdout.contains("HAFT_COMPLETE"), "{shell}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let cli = CliFixture::new();
    for (args, title) in [
        (&["man"][..], ".TH haft 1"),
        (&["man", "call"], ".TH haft-call 1"),
        (&["man", "sandbox"], ".TH haft-sandbox 1"),
        (&["man", "mcp", "add"], ".TH haft-mcp-add 1"),
    ] {
        let page = cli.haft(args).stdout;
        assert!(page.contains(title), "{args:?}: {}", &page[..200.min(page.len())]);
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "\"EXIT STATUS\"", "\"ENVIRONMENT\"", "\"FILES\""] {
            assert!(page.contains(&format!(".SH {section}")), "{args:?} {section}");
        }
        assert!(page.contains("HAFT_HOME") && page.contains("HAFT_DIALECT"), "{args:?}");
    }
    assert!(cli.haft(&["man", "sandbox"]).stdout.contains("fB125"));
    let unknown = cli.haft(&["man", "nothing"]);
    assert!(unknown.code == 4 && unknown.stderr.contains("there are: run"), "{}", unknown.stderr);
}
