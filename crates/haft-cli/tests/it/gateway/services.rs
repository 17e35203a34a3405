//! The formats and signatures of Telegram, Slack and Discord.

use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::{Answer, Gateway, Replies, SECRET, hex, hmac_sha256, now, says};
use crate::fixture::cli::CliFixture;

fn start(replies: &Replies, settings: &str) -> (CliFixture, Gateway) {
    let cli = CliFixture::new();
    let url = replies.url();
    let all = format!("[channels.chat]\n{settings}\ntoken = \"bot-token\"\nurl = \"{url}\"\n");
    std::fs::write(cli.config(), all).unwrap();
    let gateway = Gateway::start(&cli, &[says("one"), says("two")], &[]);
    (cli, gateway)
}

fn slack(gateway: &Gateway, body: &Value, time: u64, secret: &str, retry: Option<u32>) -> Answer {
    let body = body.to_string();
    let signature = hex(&hmac_sha256(secret.as_bytes(), &format!("v0:{time}:{body}")));
    let mut headers = vec![
        ("X-Slack-Request-Timestamp", time.to_string()),
        ("X-Slack-Signature", format!("v0={signature}")),
    ];
    headers.extend(retry.map(|retry| ("X-Slack-Retry-Num", retry.to_string())));
    gateway.post("chat", &headers, body.as_bytes())
}

#[test]
fn slack_events_are_verified_deduplicated_and_never_the_bots_own() {
    let replies = Replies::start();
    let settings = "kind = \"slack\"\nsigning_secret = \"${HOOK_SECRET}\"\nallow_from = [\"U1\"]";
    let (_cli, gateway) = start(&replies, settings);
    let challenge = json!({"type": "url_verification", "challenge": "abc", "token": "x"});
    assert_eq!(slack(&gateway, &challenge, now(), "wrong", None).status, 401);
    let answer = slack(&gateway, &challenge, now(), SECRET, None);
    assert_eq!((answer.status, &answer.body["challenge"]), (200, &json!("abc")));
    let event = |event: Value| json!({"type": "event_callback", "event_id": "Ev1", "event": event});
    let message =
        event(json!({"type": "message", "channel": "C1", "user": "U1", "ts": "17.1", "text": "a &lt;b&gt;"}));
    assert_eq!(slack(&gateway, &message, now() - 400, SECRET, None).status, 401, "old");
    let unsigned = gateway.post("chat", &[], message.to_string().as_bytes());
    assert_eq!(unsigned.status, 401, "missing");
    for ignored in [
        json!({"type": "message", "channel": "C1", "bot_id": "B1", "user": "U1", "ts": "1.1", "text": "own"}),
        json!({"type": "message", "subtype": "message_changed", "channel": "C1", "user": "U1", "ts": "1.2"}),
        json!({"type": "message", "channel": "C1", "user": "U2", "ts": "1.3", "text": "a stranger"}),
        json!({"type": "reaction_added", "user": "U1"}),
    ] {
        let answer = slack(&gateway, &event(ignored.clone()), now(), SECRET, None);
        assert_eq!((answer.status, &answer.body["status"]), (200, &json!("ignored")), "{ignored}");
    }
    assert_eq!(slack(&gateway, &message, now(), SECRET, None).status, 200);
    let posted = replies.next();
    assert_eq!((&posted["channel"], &posted["text"]), (&json!("C1"), &json!("one")));
    assert_eq!(slack(&gateway, &message, now(), SECRET, Some(1)).status, 200, "a retry");
    let mention =
        event(json!({"type": "app_mention", "channel": "C1", "user": "U1", "ts": "17.1", "text": "a"}));
    assert_eq!(slack(&gateway, &mention, now(), SECRET, None).status, 200, "the same message as a mention");
    gateway.wait_for("chat:C1: message C1 17.1 handled");
    assert!(replies.bodies.try_recv().is_err());
}

#[test]
fn telegram_updates_need_the_secret_token_and_are_handled_once() {
    let replies = Replies::start();
    let settings = "kind = \"telegram\"\nsecret_token = \"${HOOK_SECRET}\"\nallow_from = [\"9\", \"8\", \"bob\", \"@bob\"]";
    let (_cli, gateway) = start(&replies, settings);
    let update = |number: u64, from: Value| {
        let message =
            json!({"message_id": 5, "from": from, "chat": {"id": -7, "type": "group"}, "text": "hi"});
        json!({"update_id": number, "message": message})
    };
    let post = |body: &Value, token: Option<&str>| {
        let header = token.map(|token| ("X-Telegram-Bot-Api-Secret-Token", token.to_owned()));
        gateway.post("chat", header.as_slice(), body.to_string().as_bytes())
    };
    let ann = update(1, json!({"id": 9, "is_bot": false, "username": "ann"}));
    assert_eq!(post(&ann, None).status, 401);
    for wrong in ["", "a", "a secret of the test", "a secret of the tests "] {
        let status = post(&ann, Some(wrong)).status;
        // White space around a header is not a part of it.
        assert_eq!(status, if wrong.trim_end() == SECRET { 200 } else { 401 }, "{wrong:?}");
    }
    let sent = replies.next();
    assert_eq!((&sent["chat_id"], &sent["text"]), (&json!("-7"), &json!("one")));
    assert_eq!(post(&ann, Some(SECRET)).status, 200, "a second delivery");
    for ignored in [
        update(2, json!({"id": 10, "is_bot": false, "username": "bob"})),
        update(3, json!({"id": 8, "is_bot": true})),
        json!({"update_id": 4, "edited_message": {"text": "edited"}}),
        json!({"update_id": 5, "message": {"chat": {"id": -7}, "from": {"id": 8}, "photo": []}}),
    ] {
        let answer = post(&ignored, Some(SECRET));
        assert_eq!((answer.status, &answer.body["status"]), (200, &json!("ignored")), "{ignored}");
    }
    assert_eq!(post(&json!({"message": {}}), Some(SECRET)).status, 400);
    assert_eq!(post(&update(6, json!({"id": 8})), Some(SECRET)).status, 200);
    assert_eq!(replies.next()["text"], "two");
    gateway.wait_for("chat:-7: message 6 handled");
    assert!(replies.bodies.try_recv().is_err());
}

#[test]
fn discord_interactions_are_verified_by_the_public_key() {
    let replies = Replies::start();
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let other = Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap();
    let key = hex(pair.public_key().as_ref());
    let settings = format!("kind = \"discord\"\npublic_key = \"{key}\"\nallow_from = [\"11\"]");
    let (_cli, gateway) = start(&replies, &settings);
    let post = |body: &Value, pair: &Ed25519KeyPair, time: u64| {
        let body = body.to_string();
        let signature = hex(pair.sign(format!("{time}{body}").as_bytes()).as_ref());
        let headers = [("X-Signature-Ed25519", signature), ("X-Signature-Timestamp", time.to_string())];
        gateway.post("chat", &headers, body.as_bytes())
    };
    let ping = json!({"type": 1, "id": "1"});
    assert_eq!(post(&ping, &other, now()).status, 401, "wrong");
    assert_eq!(post(&ping, &pair, now() - 400).status, 401, "old");
    assert_eq!(gateway.post("chat", &[], b"{\"type\":1}").status, 401, "missing");
    assert_eq!(post(&ping, &pair, now()).body, json!({"type": 1}));
    let command = |id: &str, user: &str| {
        json!({
            "type": 2, "id": id, "channel_id": "42", "member": {"user": {"id": user, "username": "ann"}},
            "data": {"name": "ask", "options": [{"name": "question", "type": 3, "value": "What?"}]},
        })
    };
    let stranger = post(&command("2", "12"), &pair, now());
    assert!(
        stranger.status == 200 && stranger.body["data"]["content"].as_str().unwrap().contains("not allowed")
    );
    let accepted = post(&command("3", "11"), &pair, now());
    assert_eq!(
        (accepted.status, &accepted.body["type"], &accepted.body["data"]["flags"]),
        (200, &json!(4), &json!(64))
    );
    assert_eq!(replies.next()["content"], "one");
    assert_eq!(post(&command("3", "11"), &pair, now()).status, 200);
    gateway.wait_for("chat:42: message 3 handled");
    assert!(replies.bodies.try_recv().is_err());
}
