//! A program that sends what it should not, or goes away.

use serde_json::json;

use super::stream::StreamHost;
use super::turn_model::{TurnModel, call, hangs, text};
use crate::fixture::cli::CliFixture;
use crate::fixture::wait_until;

const ASKS_HOST: [&str; 2] = ["--permission-prompt-tool", "stdio"];

#[test]
fn lines_that_make_no_sense_are_answered_with_an_error_or_ignored() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("Still here.")]]);
    let mut host = StreamHost::start(&cli, &model, &[]);
    let deep = "[".repeat(100_000);
    let long = format!("{{\"type\":\"user\",\"x\":\"{}\"}}", "y".repeat(2 << 20));
    let lines = [
        "",
        "   ",
        "not json",
        "{",
        "[]",
        "null",
        "7",
        "{}",
        "{\"type\":7}",
        "{\"type\":\"user\"}",
        "{\"type\":\"user\",\"message\":[]}",
        "{\"type\":\"control_request\"}",
        "{\"type\":\"control_request\",\"request_id\":\"a\"}",
        "{\"type\":\"control_request\",\"request_id\":{},\"request\":{\"subtype\":\"initialize\"}}",
        "{\"type\":\"control_response\"}",
        "{\"type\":\"control_response\",\"response\":{\"request_id\":\"haft-1\",\"subtype\":\"success\"}}",
        "{\"type\":\"control_cancel_request\",\"request_id\":\"none\"}",
        "{\"type\":\"keep_alive\"}",
        "{\"type\":\"something_new\",\"x\":[1,2]}",
        "\u{feff}{}",
        deep.as_str(),
        long.as_str(),
    ];
    for line in lines {
        host.send_line(line);
    }
    let unknown = host.ask(&json!({"subtype": "seen_in_no_version"}));
    assert_eq!(
        (&unknown["error"], &unknown["error_code"]),
        (&json!("Unsupported control request subtype: seen_in_no_version"), &json!("unsupported_request"))
    );
    let wrong = host.ask(&json!({"subtype": "set_permission_mode", "mode": 7}));
    assert_eq!(wrong["subtype"], "error", "{wrong}");
    let wrong = host.ask(&json!({"subtype": "set_permission_mode", "mode": "everything"}));
    assert_eq!(wrong["subtype"], "error", "{wrong}");
    let wrong = host.ask(&json!({"subtype": "rewind_files"}));
    assert_eq!(wrong["subtype"], "error", "{wrong}");
    host.initialize(&json!({}));
    let again = host.initialize(&json!({}));
    assert_eq!(again["subtype"], "error", "{again}");
    host.say("Go");
    assert_eq!(host.until_result().pop().unwrap()["result"], "Still here.");
    assert_eq!(host.end().1, Some(0));
}

#[test]
fn answers_to_other_calls_and_second_answers_are_ignored() {
    let cli = CliFixture::new();
    let bash = |id: &str, command: &str| call(id, "Bash", &json!({ "command": command }));
    let model = TurnModel::start(vec![
        vec![bash("t1", "echo one > one.txt")],
        vec![bash("t2", "echo two > two.txt")],
        vec![text("End.")],
    ]);
    let mut host = StreamHost::start(&cli, &model, &ASKS_HOST);
    host.say("Go");
    let (first, _) = host.question("can_use_tool");
    host.reply("haft-999", &json!({"behavior": "allow"}));
    host.reply(&first, &json!({"behavior": "allow", "toolUseID": "t2"}));
    host.reply(&first, &json!({"behavior": "deny", "message": "No.", "toolUseID": "t1"}));
    host.reply(&first, &json!({"behavior": "allow"}));
    let (second, _) = host.question("can_use_tool");
    host.reply(&first, &json!({"behavior": "allow"}));
    host.reply(&second, &json!({"behavior": "deny", "message": "No."}));
    let result = host.until_result().pop().unwrap();
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 2, "{result}");
    assert!(!cli.path("one.txt").exists() && !cli.path("two.txt").exists());
}

#[test]
fn answer_that_is_no_clear_permission_is_a_denial() {
    for answer in [
        json!(null),
        json!("allow"),
        json!([]),
        json!({}),
        json!({"behavior": "maybe"}),
        json!({"behavior": "allow", "updatedInput": "rm"}),
    ] {
        let cli = CliFixture::new();
        let bash = call("t1", "Bash", &json!({"command": "echo one > one.txt"}));
        let model = TurnModel::start(vec![vec![bash], vec![text("End.")]]);
        let mut host = StreamHost::start(&cli, &model, &ASKS_HOST);
        host.answer_all("can_use_tool", answer.clone());
        host.say("Go");
        let result = host.until_result().pop().unwrap();
        assert_eq!(result["permission_denials"].as_array().unwrap().len(), 1, "{answer}: {result}");
        assert!(!cli.path("one.txt").exists(), "{answer}");
    }
}

#[test]
fn changed_arguments_are_decided_again() {
    let cli = CliFixture::new();
    let bash = call("t1", "Bash", &json!({"command": "touch one"}));
    let model = TurnModel::start(vec![vec![bash], vec![text("End.")]]);
    let rule = ["--disallowedTools", "Bash(rm *)"];
    let mut host = StreamHost::start(&cli, &model, &[&rule[..], &ASKS_HOST].concat());
    cli.write("kept.txt", "x");
    let input = json!({"command": "rm kept.txt"});
    host.answer_all("can_use_tool", json!({"behavior": "allow", "updatedInput": input}));
    host.say("Go");
    let result = host.until_result().pop().unwrap();
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 1, "{result}");
    assert!(cli.path("kept.txt").exists());
}

#[test]
fn stream_closed_in_a_question_is_a_denial_and_the_program_ends() {
    let cli = CliFixture::new();
    let bash = call("t1", "Bash", &json!({"command": "echo one > one.txt"}));
    let model = TurnModel::start(vec![vec![bash], vec![hangs()]]);
    let mut host = StreamHost::start(&cli, &model, &ASKS_HOST);
    host.say("Go");
    host.question("can_use_tool");
    let (rest, code, errors) = host.end();
    assert_eq!(rest.last().unwrap()["type"], "result", "{rest:#?}");
    assert_eq!((code, cli.path("one.txt").exists()), (Some(1), false), "{errors}");
    let log = cli.haft(&["log", "--json"]).stdout;
    assert!(log.contains("\"Bash\""), "{log}");
}

#[test]
fn program_that_is_killed_leaves_no_turn_behind() {
    let cli = CliFixture::new();
    let waits = call("t1", "Bash", &json!({"command": "touch ready; until [ -e go ]; do sleep 0.02; done"}));
    let model = TurnModel::start(vec![vec![waits], vec![text("End.")]]);
    let mut host = StreamHost::start(&cli, &model, &["--permission-mode", "bypassPermissions"]);
    host.say("Go");
    wait_until(|| cli.path("ready").exists());
    host.vanish();
    assert_eq!(model.requests().len(), 1, "the turn did not go on");
}

#[test]
fn message_before_the_end_of_the_stream_is_still_answered() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("Yes.")]]);
    let mut host = StreamHost::start(&cli, &model, &[]);
    host.say("Go");
    let (messages, code, errors) = host.end();
    assert_eq!(messages.last().unwrap()["result"], "Yes.");
    assert_eq!(code, Some(0), "{errors}");
    let host = StreamHost::start(&cli, &model, &[]);
    let (messages, code, errors) = host.end();
    assert_eq!((messages, code), (vec![], Some(0)), "{errors}");
}

#[test]
fn lines_stay_below_the_limit_of_readers() {
    let cli = CliFixture::new();
    let content = "0123456789abcdef\n".repeat(150_000);
    let write = json!({"file_path": cli.path("big.txt"), "content": content});
    let model = TurnModel::start(vec![vec![call("t1", "Write", &write)], vec![text(&content)]]);
    let mut host = StreamHost::start(&cli, &model, &["--permission-mode", "acceptEdits"]);
    host.say("Go");
    // Each line is checked where it is read.
    let result = host.until_result().pop().unwrap();
    assert!(result["result"].as_str().unwrap().len() > 100_000);
    assert_eq!(cli.read("big.txt").len(), content.len(), "only lines are cut");
}

#[test]
fn call_that_is_too_long_for_a_question_is_denied() {
    let cli = CliFixture::new();
    let write = json!({"file_path": cli.path("big.txt"), "content": "x".repeat(2 << 20)});
    let model = TurnModel::start(vec![vec![call("t1", "Write", &write)], vec![text("End.")]]);
    let mut host = StreamHost::start(&cli, &model, &ASKS_HOST);
    host.answer_all("can_use_tool", json!({"behavior": "allow"}));
    host.say("Go");
    let result = host.until_result().pop().unwrap();
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 1);
    assert!(!cli.path("big.txt").exists());
}

#[test]
fn message_that_is_interrupted_at_once_is_named_or_its_turn_is_stopped() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![hangs()], vec![text("Next.")]]);
    let mut host = StreamHost::start(&cli, &model, &[]);
    host.initialize(&json!({}));
    let message = json!({"type": "user", "message": {"role": "user", "content": "Go"}});
    let request = json!({"subtype": "interrupt"});
    let interrupt = json!({"type": "control_request", "request_id": "stop", "request": request});
    host.send_line(&format!("{message}\n{interrupt}"));
    let mut seen = host.until(|message| message["response"]["request_id"] == "stop");
    let queued = seen.pop().unwrap()["response"]["response"]["still_queued"].clone();
    let waits = !queued.as_array().unwrap().is_empty();
    if waits {
        // The turn of the message that was named begins now.
        host.until(|message| message["subtype"] == "init");
        host.request(&request);
    }
    let result = host.until_result().pop().unwrap();
    assert_eq!(result["subtype"], "error_during_execution", "{queued}: {result}");
    host.end();
}

#[test]
fn rewind_is_refused_while_a_message_waits_for_its_turn() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![hangs()]]);
    let mut host = StreamHost::start(&cli, &model, &[]);
    host.initialize(&json!({}));
    let uuid = "0b6e3f0e-1111-4111-8111-000000000000";
    host.say_as(uuid, "Go");
    let answer = host.ask(&json!({"subtype": "rewind_files", "user_message_id": uuid}));
    assert_eq!(answer["error"], "A turn is under way. Interrupt it, or wait for its end.", "{answer}");
    host.request(&json!({"subtype": "interrupt", "cancel_queued": true}));
    host.end();
}

#[test]
fn signal_ends_a_run_whose_messages_are_not_read() {
    let cli = CliFixture::new();
    let long = text(&"x".repeat(300_000));
    let model = TurnModel::start(vec![vec![long]]);
    let mut host = StreamHost::start(&cli, &model, &[]);
    host.say("Go");
    // The result is stored, and the messages about it do not fit into the pipe.
    wait_until(|| cli.haft(&["sessions", "export", "--format", "jsonl"]).stdout.contains("xxxx"));
    host.terminate_unread();
}
