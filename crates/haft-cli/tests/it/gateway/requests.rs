//! What is accepted and what is refused: signatures of webhooks, methods, paths, bodies, settings.

use serde_json::{Value, json};

use super::{Gateway, Replies, SECRET, fixture, now, says, signed};
use crate::fixture::cli::CliFixture;

fn message(id: &str) -> String {
    json!({"message_id": id, "chat_id": "c", "text": "hello"}).to_string()
}

#[test]
fn a_webhook_without_a_fresh_and_fitting_signature_is_refused() {
    let replies = Replies::start();
    let cli = fixture(&replies);
    let gateway = Gateway::start(&cli, &[says("done")], &[]);
    let body = message("m1");
    let good = || signed(SECRET.as_bytes(), "m1", now(), &body);
    let post = |headers: &[(&str, String)], body: &str| {
        let answer = gateway.post("hook", headers, body.as_bytes());
        (answer.status, answer.body["error"].as_str().unwrap_or_default().to_owned())
    };
    for missing in 0..3 {
        let mut headers = good();
        let (name, _) = headers.remove(missing);
        let (status, why) = post(&headers, &body);
        assert!(status == 401 && why.contains(name) && why.contains("missing"), "{status} {why}");
    }
    assert_eq!(post(&signed(b"another secret", "m1", now(), &body), &body).0, 401, "wrong");
    assert_eq!(post(&good(), &message("m2")).0, 401, "another body");
    let mut other_id = good();
    other_id[0].1 = "m2".to_owned();
    assert_eq!(post(&other_id, &body).0, 401, "another id");
    for time in [now() - 301, now() + 400] {
        let (status, why) = post(&signed(SECRET.as_bytes(), "m1", time, &body), &body);
        assert!(status == 401 && why.contains("too old"), "{status} {why}");
    }
    for value in ["", "v1,", "v1,!!", "v2,AAAA", "AAAA"] {
        let mut headers = good();
        headers[2].1 = value.to_owned();
        assert_eq!(post(&headers, &body).0, 401, "{value:?}");
    }
    let mut twice = good();
    twice.push(twice[2].clone());
    assert_eq!(post(&twice, &body).0, 401, "two signatures in two headers");
    let mut both = good();
    both[2].1 = format!("v1,AAAA {}", both[2].1);
    assert_eq!(post(&both, &body).0, 200, "one of several fits");
    assert_eq!(replies.next_text(), ("c".to_owned(), "done".to_owned()));
    // The same request again, byte for byte, is acknowledged and has no effect.
    assert_eq!(post(&both, &body).0, 200);
    gateway.wait_for("message m1 handled");
    assert!(replies.bodies.try_recv().is_err());
    assert_eq!(gateway.stderr.lock().unwrap().matches("handled").count(), 1);
}

#[test]
fn wrong_methods_paths_and_bodies_have_clear_status_codes() {
    let replies = Replies::start();
    let cli = fixture(&replies);
    let gateway = Gateway::start(&cli, &[says("done")], &[]);
    let send = |line: &str| gateway.send(format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    for path in ["/", "/channels", "/channels/", "/channels/unknown", "/channels/hook/x", "/mcp"] {
        assert_eq!(send(&format!("POST {path}")).status, 404, "{path}");
    }
    for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
        let answer = send(&format!("{method} /channels/hook"));
        assert!(answer.status == 405 && answer.head.contains("allow: post"), "{method}: {}", answer.head);
    }
    let post = |body: &str| {
        gateway.post("hook", &signed(SECRET.as_bytes(), "m", now(), body), body.as_bytes()).status
    };
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    for body in ["", "{", "[]", "null", "\u{0}", "{\"text\": 1}", deep.as_str()] {
        assert_eq!(post(body), 400, "{}", &body[..body.len().min(20)]);
    }
    for wrong in [
        json!({"message_id": "m", "chat_id": "c"}),
        json!({"message_id": "m", "chat_id": "c", "text": " "}),
        json!({"message_id": "", "chat_id": "c", "text": "t"}),
        json!({"message_id": "m", "chat_id": "c\n", "text": "t"}),
        json!({"message_id": "m".repeat(201), "chat_id": "c", "text": "t"}),
        json!({"message_id": "m", "chat_id": ["c"], "text": "t"}),
        json!({"message_id": "m", "chat_id": "c", "text": "t", "sender": {}}),
    ] {
        assert_eq!(post(&wrong.to_string()), 400, "{wrong}");
    }
    assert_eq!(post(&"x".repeat(300_000)), 413);
    let head = "POST /channels/hook HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n";
    assert_eq!(gateway.send(head.as_bytes()).status, 413, "refused before it is sent");
    let body = message("m");
    let mut headers = signed(SECRET.as_bytes(), "m", now(), &body);
    headers.push(("Origin", "https://example.com".to_owned()));
    assert_eq!(gateway.post("hook", &headers, body.as_bytes()).status, 403, "a web page");
    assert_eq!(gateway.say("c", "m", "hello").status, 200, "after all that it still works");
    assert_eq!(replies.next_text().1, "done");
}

#[test]
fn an_unsigned_channel_is_named_as_such_and_reached_from_this_machine_only() {
    let replies = Replies::start();
    let cli = CliFixture::new();
    let settings =
        format!("[channels.local]\nkind = \"webhook\"\nurl = \"{}\"\nunsigned = true\n", replies.url());
    std::fs::write(cli.config(), &settings).unwrap();
    let gateway = Gateway::start(&cli, &[says("done")], &[]);
    let body = message("m");
    let send = |host: &str, kind: &str| {
        let length = body.len();
        let head = format!("POST /channels/local HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\n");
        gateway.send(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes()).status
    };
    let own = gateway.address.clone();
    assert_eq!(send("rebound.example.com", "application/json"), 403);
    assert_eq!(send(&own, "text/plain"), 415);
    assert_eq!(send(&own, "application/json"), 200);
    assert_eq!(replies.next_text().1, "done");
    let refused = cli.haft(&["gateway", "--http", "0.0.0.0:0", "--provider", "script"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("channels.local is unsigned"), "{}", refused.stderr);
}

#[test]
fn settings_that_would_let_anyone_in_are_refused_at_the_start() {
    let cases = [
        ("kind = \"webhook\"\nurl = \"http://127.0.0.1:1\"", "no channel receives messages"),
        (
            "kind = \"webhook\"\nurl = \"http://127.0.0.1:1\"\nsigning_secret = \"\"",
            "signing_secret is empty",
        ),
        ("kind = \"webhook\"\nurl = \"http://127.0.0.1:1\"\nsigning_secret = \"whsec_!\"", "not base64"),
        (
            "kind = \"webhook\"\nurl = \"http://127.0.0.1:1\"\nsigning_secret = \"${HAFT_UNSET}\"",
            "is not set",
        ),
        (
            "kind = \"webhook\"\nurl = \"http://127.0.0.1:1\"\nsigning_secret = \"s\"\nunsigned = true",
            "remove one",
        ),
        ("kind = \"telegram\"\ntoken = \"t\"\nsecret_token = \"s\"", "set allow_from"),
        ("kind = \"slack\"\ntoken = \"t\"\nsigning_secret = \"s\"", "set allow_from"),
        ("kind = \"discord\"\ntoken = \"t\"\npublic_key = \"12\"\nallow_from = []", "64 hexadecimal digits"),
        (
            "kind = \"discord\"\nurl = \"http://127.0.0.1:1\"\npublic_key = \"12\"\nallow_from = []",
            "token of the bot",
        ),
    ];
    let cli = CliFixture::new();
    for (settings, expected) in cases {
        std::fs::write(cli.config(), format!("[channels.one]\n{settings}\n")).unwrap();
        let refused = cli.haft(&["gateway", "--http", "127.0.0.1:0", "--provider", "script"]);
        assert!(refused.code != 0 && refused.stderr.contains(expected), "{settings}: {}", refused.stderr);
    }
    for flags in [&["hello"][..], &["--continue"], &["--output-format", "json"]] {
        let refused = cli.haft(&[&["gateway"], flags].concat());
        assert!(refused.code == 2 && refused.stderr.contains("takes no prompt"), "{}", refused.stderr);
    }
}

#[test]
fn only_listed_senders_are_accepted() {
    let replies = Replies::start();
    let cli = fixture(&replies);
    let settings = std::fs::read_to_string(cli.config()).unwrap() + "allowFrom = [\"ann\"]\n";
    std::fs::write(cli.config(), settings).unwrap();
    let gateway = Gateway::start(&cli, &[says("done")], &[]);
    let post = |id: &str, sender: Value| {
        let body = json!({"message_id": id, "chat_id": "c", "text": "hi", "sender": sender}).to_string();
        gateway.post("hook", &signed(SECRET.as_bytes(), id, now(), &body), body.as_bytes()).status
    };
    assert_eq!((post("1", json!("bob")), post("2", Value::Null)), (403, 403));
    assert_eq!(post("3", json!("ann")), 200);
    assert_eq!(replies.next_text().1, "done");
    gateway.wait_for("the sender bob is not in allow_from");
}
