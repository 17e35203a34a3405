//! Where questions are asked: at the terminal, on pages, or nowhere.

use haft_ledger::Ledger;
use serde_json::json;

use crate::fixture::serve::{ACT, ServeFixture};
use crate::fixture::stdio_client::ServedClient;
use crate::fixture::terminal::Terminal;
use crate::fixture::wait_until;

#[test]
fn a_question_that_is_too_long_for_a_page_says_so_in_the_denial() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let _page = server.events_as(ACT, None);
    let ledger = Ledger::open(fixture.cli.home()).unwrap();
    wait_until(|| ledger.is_anyone_answering().unwrap());
    let mut client = ServedClient::start(fixture.cli.command(&["mcp", "--permission-mode", "default"]));
    client.initialize(&json!({}));
    let path = fixture.cli.path("a");
    let arguments = json!({"file_path": path, "content": "tea\n".repeat(300_000)});
    let (failed, said) = client.call("Write", &arguments);
    assert!(failed && said.contains("No page showed the question: The question has 1"), "{said}");
    assert!(said.contains("--allowedTools"), "{said}");
    assert!(!path.exists());
}

#[test]
fn a_person_at_the_terminal_is_told_what_the_page_answered() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("a.txt");
    for (answer, told) in [
        (json!({"answer": "deny", "reason": "not there"}), "a person on Haft's page denied it: not there"),
        (json!({"answer": "allow"}), "a person on Haft's page allowed it once"),
    ] {
        let path = format!("file_path={}", file.display());
        let mut terminal = Terminal::run(fixture.cli.command(&["call", "Write", &path, "content=x"]));
        terminal.sees("Run it? [y/N/s/a] ");
        let questions = || server.get("/questions")["questions"].as_array().unwrap().clone();
        wait_until(|| !questions().is_empty());
        server.post(&format!("/questions/{}/answer", questions()[0]["id"]), &answer);
        terminal.sees(told);
        terminal.ends();
    }
    assert!(file.exists());
}

#[test]
fn who_does_not_want_to_be_asked_is_not_asked_on_pages_either() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let _page = server.events_as(ACT, None);
    let ledger = Ledger::open(fixture.cli.home()).unwrap();
    wait_until(|| ledger.is_anyone_answering().unwrap());
    std::fs::create_dir(fixture.cli.path(".claude")).unwrap();
    fixture.cli.write(".claude/settings.json", r#"{"permissions": {"denyInsteadOfPrompting": true}}"#);
    let questions = json!([{"question": "Which?", "header": "Which", "multiSelect": false,
        "options": [{"label": "a", "description": "a"}, {"label": "b", "description": "b"}]}]);
    let arguments = json!({ "questions": questions }).to_string();
    let ran = fixture.cli.haft(&["call", "AskUserQuestion", &arguments]);
    assert_ne!(ran.code, 0);
    assert!(ran.stdout.contains("No one can answer questions here"), "{}{}", ran.stdout, ran.stderr);
    assert!(server.get("/questions")["questions"].as_array().unwrap().is_empty());
}

#[test]
fn a_question_about_a_command_names_the_directory_that_an_earlier_one_went_to() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let mut page = server.events_as(ACT, None);
    let ledger = Ledger::open(fixture.cli.home()).unwrap();
    wait_until(|| ledger.is_anyone_answering().unwrap());
    std::fs::create_dir(fixture.cli.path("sub")).unwrap();
    let mut client = ServedClient::start(fixture.cli.command(&["mcp", "--permission-mode", "default"]));
    client.initialize(&json!({}));
    for (command, is_in_sub) in [("cd sub && touch a", false), ("touch b", true)] {
        let call = client.request("tools/call", &json!({"name": "Bash", "arguments": {"command": command}}));
        let question = page.next_of("question", |question| question["is_open"] == true).data;
        let reason = question["body"]["reason"].as_str().unwrap();
        let sub =
            format!("the shell is in {}", fixture.cli.root().canonicalize().unwrap().join("sub").display());
        assert_eq!(reason.starts_with(&sub), is_in_sub, "{command}: {reason}");
        server.post(&format!("/questions/{}/answer", question["id"]), &json!({"answer": "allow"}));
        assert_eq!(client.response(call)["result"]["isError"], false);
    }
    assert!(fixture.cli.path("sub/b").exists());
}
