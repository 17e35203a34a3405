//! What becomes of an accepted message: handled once, in order, also after a kill; replies; full queues; the end.

use serde_json::json;

use super::{Gateway, Replies, fixture, says};
use crate::fixture::wait_until;

#[test]
fn a_chat_is_one_run_which_a_restart_continues() {
    let replies = Replies::start();
    let cli = fixture(&replies);
    let script = [says("first"), says("second"), says("third")];
    let mut gateway = Gateway::start(&cli, &script, &[]);
    assert_eq!(gateway.say("c1", "1", "one").status, 200);
    assert_eq!(replies.next_text(), ("c1".to_owned(), "first".to_owned()));
    assert_eq!(gateway.say("c1", "2", "two").status, 200);
    assert_eq!(replies.next_text(), ("c1".to_owned(), "second".to_owned()));
    assert_eq!(gateway.terminate(), Some(0), "{}", gateway.stderr.lock().unwrap());
    let gateway = Gateway::start(&cli, &script, &[]);
    assert_eq!(gateway.say("c1", "3", "three").status, 200);
    assert_eq!(replies.next_text(), ("c1".to_owned(), "third".to_owned()));
    assert_eq!(gateway.say("c2", "4", "one").status, 200);
    assert_eq!(replies.next_text(), ("c2".to_owned(), "first".to_owned()), "another chat has its own run");
    gateway.wait_for("hook:c2: message 4 handled");
    let script = cli.config().with_file_name("script.jsonl");
    let more = ["-p", "more", "--resume", "hook:c2", "--provider", "script", "--script"];
    let run = cli.haft(&[&more[..], &[script.to_str().unwrap()]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (0, "second\n"), "the key names the session: {}", run.stderr);
}

#[test]
fn a_message_that_was_accepted_before_a_kill_is_answered_once_after_it() {
    let replies = Replies::start();
    let cli = fixture(&replies);
    assert!(std::process::Command::new("mkfifo").arg(cli.path("gate")).status().unwrap().success());
    let begin = json!({"calls": [{"name": "Bash", "arguments": {"command": "touch begun; cat gate"}}]});
    let script = [begin, says("answered"), says("next")];
    let gateway = Gateway::start(&cli, &script, &[]);
    assert_eq!(gateway.say("c", "1", "hello").status, 200);
    wait_until(|| cli.path("begun").exists());
    assert_eq!(gateway.say("c", "2", "more").status, 200, "it waits behind the first");
    gateway.kill();
    let gateway = Gateway::start(&cli, &script, &[]);
    assert_eq!(replies.next_text(), ("c".to_owned(), "answered".to_owned()));
    assert_eq!(replies.next_text(), ("c".to_owned(), "next".to_owned()));
    gateway.wait_for("message 2 handled");
    for id in ["1", "2"] {
        assert_eq!(gateway.say("c", id, "hello").status, 200, "a second delivery is acknowledged");
    }
    assert!(replies.bodies.try_recv().is_err());
    let log = cli.haft(&["log", "--json"]);
    assert_eq!(log.stdout.lines().count(), 1, "the call was made once: {}", log.stdout);
}

#[test]
fn a_reply_that_a_kill_has_cut_is_sent_again_without_asking_the_model() {
    let replies = Replies::start();
    let cli = fixture(&replies);
    replies.open(false);
    let gateway = Gateway::start(&cli, &[says("the answer"), says("asked twice")], &[]);
    assert_eq!(gateway.say("c", "1", "hello").status, 200);
    assert_eq!(replies.next_text().1, "the answer");
    gateway.kill();
    replies.open(true);
    let gateway = Gateway::start(&cli, &[says("the answer"), says("asked twice")], &[]);
    gateway.wait_for("message 1 handled");
    assert_eq!(replies.next_text().1, "the answer");
    assert!(replies.bodies.try_recv().is_err());
}

#[test]
fn full_queues_refuse_messages_that_can_be_sent_again() {
    let replies = Replies::start();
    let cli = fixture(&replies);
    replies.open(false);
    let answers: Vec<_> = (0..20).map(|number| says(&format!("answer {number}"))).collect();
    let gateway = Gateway::start(&cli, &answers, &["--workers", "1"]);
    assert_eq!(gateway.say("c", "0", "hello").status, 200);
    // The worker is busy with the delivery from here on.
    assert_eq!(replies.next_text().1, "answer 0");
    for number in 1..=16 {
        assert_eq!(gateway.say("c", &number.to_string(), "hello").status, 200, "{number}");
    }
    let full = gateway.say("c", "17", "hello");
    assert!(full.status == 429 && full.head.contains("retry-after: "), "{} {}", full.status, full.head);
    assert_eq!(gateway.say("c", "3", "hello").status, 200, "a known message is acknowledged all the same");
    for number in 0..240 {
        let (chat, id) = (format!("chat {number}"), format!("other {number}"));
        assert_eq!(gateway.say(&chat, &id, "hello").status, 200, "{number}");
    }
    let full = gateway.say("one more", "one more", "hello");
    assert!(full.status == 503 && full.head.contains("retry-after: "), "{} {}", full.status, full.head);
    replies.open(true);
    gateway.wait_for("hook:c: message 16 handled");
    assert_eq!(gateway.say("c", "17", "hello").status, 200);
    gateway.wait_for("hook:c: message 17 handled");
    let of_chat: Vec<String> = replies
        .bodies
        .try_iter()
        .filter(|(_, body)| body["chat_id"] == "c")
        .map(|(_, body)| body["content"].to_string())
        .collect();
    let expected: Vec<String> = (1..=17).map(|number| format!("\"answer {number}\"")).collect();
    assert_eq!(of_chat, expected, "in the order of the messages");
}

#[test]
fn two_chats_are_answered_side_by_side() {
    let replies = Replies::start();
    let cli = fixture(&replies);
    replies.open(false);
    let gateway = Gateway::start(&cli, &[says("done")], &["--workers", "2"]);
    for chat in ["a", "b"] {
        assert_eq!(gateway.say(chat, chat, "hello").status, 200);
    }
    // Neither delivery ends before both have begun.
    let mut chats = [replies.next_text().0, replies.next_text().0];
    chats.sort();
    assert_eq!(chats, ["a", "b"]);
    replies.open(true);
    gateway.wait_for("hook:a: message a handled");
    gateway.wait_for("hook:b: message b handled");
}

#[test]
fn messages_of_the_tool_precede_the_reply_and_questions_are_denials() {
    let replies = Replies::start();
    let cli = fixture(&replies);
    let send = json!({"channel": "hook", "chat_id": "other", "content": "by the tool"});
    let outside = json!({"path": "/etc/haft-test", "content": "x"});
    let script = [
        json!({"calls": [{"name": "message", "arguments": send}, {"name": "write_file", "arguments": outside}]}),
        json!({"text": "the reply", "expect": [{"tool": "message", "contains": "sent"}, {"is_error": true}]}),
    ];
    let flags = ["--dialect", "clawft", "--allowedTools", "message"];
    let gateway = Gateway::start(&cli, &script, &flags);
    assert_eq!(gateway.say("c", "1", "tell the other").status, 200);
    assert_eq!(replies.next_text(), ("other".to_owned(), "by the tool".to_owned()));
    assert_eq!(replies.next_text(), ("c".to_owned(), "the reply".to_owned()));
}

#[test]
fn a_failed_turn_is_answered_with_its_reason() {
    let replies = Replies::start();
    let cli = fixture(&replies);
    let error = json!({"error": {"kind": "refused", "message": "no such thing"}});
    let gateway = Gateway::start(&cli, &[error, says("later")], &[]);
    assert_eq!(gateway.say("c", "1", "hello").status, 200);
    let (_, text) = replies.next_text();
    assert!(text.contains("no such thing"), "{text}");
}

#[test]
fn a_workspace_has_one_gateway_and_a_signal_lets_turns_end() {
    let replies = Replies::start();
    let cli = fixture(&replies);
    let script = cli.config().with_file_name("script.jsonl");
    let mut gateway = Gateway::start(&cli, &[says("done")], &[]);
    let flags =
        ["gateway", "--http", "127.0.0.1:0", "--provider", "script", "--script", script.to_str().unwrap()];
    let mut second = cli.command(&flags);
    let second = second.env("HOOK_SECRET", super::SECRET).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && said.contains("another process receives the messages"), "{said}");
    assert_eq!(gateway.say("c", "1", "hello").status, 200);
    assert_eq!(replies.next_text().1, "done");
    assert_eq!(gateway.terminate(), Some(0), "{}", gateway.stderr.lock().unwrap());
    let gateway = Gateway::start(&cli, &[says("done")], &[]);
    assert_eq!(gateway.say("c", "1", "hello").status, 200);
    assert!(replies.bodies.try_recv().is_err(), "it was finished before");
}
