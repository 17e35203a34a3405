//! Each channel against a server that implements its API.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_bus::{Bus, Channel, ChannelSettings, Discord, Slack, Telegram, Webhook};
use haft_tool::{ErrorKind, Http, Message, Secret, ToolError, json};

use crate::http_fixture::{PlainHttp, Response, Server, response};

fn message(chat_id: &str, content: &str) -> Message {
    Message { channel: "c".to_owned(), chat_id: chat_id.to_owned(), content: content.to_owned() }
}

fn http() -> Arc<dyn Http> {
    Arc::new(PlainHttp)
}

/// Delivers without waiting, and returns the delays before the retries.
fn deliver(channel: &dyn Channel, message: &Message) -> (Result<(), ToolError>, Vec<Duration>) {
    let mut waits = Vec::new();
    let result = channel.deliver(message, &mut |pause| {
        waits.push(pause.wait);
        Ok(())
    });
    (result, waits)
}

fn secret(text: &str) -> Secret {
    Secret::new(text)
}

fn telegram_ok() -> Response {
    response(
        200,
        r#"{"ok":true,"result":{"message_id":7,"chat":{"id":42,"type":"private"},"date":1,"text":"hi"}}"#,
    )
}

#[test]
fn telegram_uses_the_bot_api() {
    let server = Server::new(vec![telegram_ok()]);
    let telegram = Telegram::new(http(), secret("123:TOKEN"), Some(&server.url));
    deliver(&telegram, &message("42", "hi & <b>")).0.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /bot123:TOKEN/sendMessage");
    assert_eq!(
        request.json(),
        json!({"chat_id": "42", "text": "hi & <b>", "link_preview_options": {"is_disabled": true}})
    );
}

#[test]
fn telegram_waits_for_retry_after() {
    let limited = response(
        429,
        r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 5","parameters":{"retry_after":5}}"#,
    );
    let server = Server::new(vec![limited, telegram_ok()]);
    let telegram = Telegram::new(http(), secret("t"), Some(&server.url));
    let (result, waits) = deliver(&telegram, &message("42", "hi"));
    result.unwrap();
    assert_eq!(waits, [Duration::from_secs(5)]);
}

#[test]
fn telegram_follows_a_migrated_group_once() {
    let moved = || {
        response(
            400,
            r#"{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001}}"#,
        )
    };
    let server = Server::new(vec![moved(), telegram_ok()]);
    let telegram = Telegram::new(http(), secret("t"), Some(&server.url));
    deliver(&telegram, &message("-9", "hi")).0.unwrap();
    assert_eq!(server.requests()[1].json()["chat_id"], "-1001");

    let server = Server::new(vec![moved(), moved()]);
    let telegram = Telegram::new(http(), secret("t"), Some(&server.url));
    assert!(deliver(&telegram, &message("-9", "hi")).0.is_err());
}

#[test]
fn telegram_errors_have_kinds_and_no_token() {
    for (status, body, kind) in [
        (
            400,
            r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#,
            ErrorKind::InvalidArguments,
        ),
        (401, r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#, ErrorKind::PermissionDenied),
        (
            403,
            r#"{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}"#,
            ErrorKind::PermissionDenied,
        ),
        (
            404,
            r#"{"ok":false,"error_code":404,"description":"no bot123:TOKEN here"}"#,
            ErrorKind::InvalidArguments,
        ),
        (200, "<html>a proxy's page</html>", ErrorKind::ExecutionFailed),
    ] {
        let server = Server::new(vec![response(status, body)]);
        let telegram = Telegram::new(http(), secret("123:TOKEN"), Some(&server.url));
        let error = deliver(&telegram, &message("42", "hi")).0.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(!error.message.contains("TOKEN"), "{error}");
    }
    let telegram = Telegram::new(http(), secret("123:TOKEN"), Some("http://127.0.0.1:1"));
    let (error, waits) = deliver(&telegram, &message("42", "hi"));
    let error = error.unwrap_err();
    assert_eq!((error.kind, waits.len()), (ErrorKind::Io, 4), "five attempts, four waits");
    assert!(error.message.contains("/bot***/sendMessage"), "{error}");
}

#[test]
fn long_messages_are_sent_in_parts() {
    let text = "wörter und 😀 ".repeat(700);
    let server = Server::new(vec![telegram_ok(), telegram_ok(), telegram_ok()]);
    let telegram = Telegram::new(http(), secret("t"), Some(&server.url));
    deliver(&telegram, &message("42", &text)).0.unwrap();
    let parts: Vec<String> =
        server.requests().iter().map(|request| request.json()["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(parts.len(), 3);
    assert!(parts.iter().all(|part| part.encode_utf16().count() <= 4_096));
    let words = |text: &str| text.split_whitespace().count();
    assert_eq!(parts.iter().map(|part| words(part)).sum::<usize>(), words(&text));

    let server = Server::new(vec![telegram_ok(), response(403, r#"{"ok":false,"description":"Forbidden"}"#)]);
    let telegram = Telegram::new(http(), secret("t"), Some(&server.url));
    let error = deliver(&telegram, &message("42", &text)).0.unwrap_err();
    assert!(error.message.ends_with("(sent 1 of 3 parts)"), "{error}");
}

#[test]
fn slack_escapes_mentions() {
    let server =
        Server::new(vec![response(200, r#"{"ok":true,"channel":"C024BE91L","ts":"1503435956.000247"}"#)]);
    let slack = Slack::new(http(), secret("xoxb-1"), Some(&format!("{}/api", server.url)));
    deliver(&slack, &message("C024BE91L", "<!channel> a & b")).0.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /api/chat.postMessage");
    assert_eq!(request.header("authorization"), Some("Bearer xoxb-1"));
    assert_eq!(request.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(
        request.json(),
        json!({"channel": "C024BE91L", "text": "&lt;!channel&gt; a &amp; b", "unfurl_links": false, "unfurl_media": false})
    );
}

#[test]
fn slack_waits_for_retry_after_up_to_a_limit() {
    let limited =
        |wait: &str| response(429, r#"{"ok":false,"error":"ratelimited"}"#).header("Retry-After", wait);
    let server = Server::new(vec![limited("30"), response(200, r#"{"ok":true}"#)]);
    let slack = Slack::new(http(), secret("x"), Some(&server.url));
    let (result, waits) = deliver(&slack, &message("C1", "hi"));
    result.unwrap();
    assert_eq!(waits, [Duration::from_secs(30)]);

    let server = Server::new(vec![limited("3600")]);
    let slack = Slack::new(http(), secret("x"), Some(&server.url));
    let (result, waits) = deliver(&slack, &message("C1", "hi"));
    let error = result.unwrap_err();
    assert!(waits.is_empty() && error.message.contains("ratelimited; try again in 3600 s"), "{error}");
    assert_eq!(error.details, Some(json!({"status": 429, "retryAfterSeconds": 3600.0})));
}

#[test]
fn slack_errors_with_http_200_have_kinds() {
    for (word, kind) in [
        ("channel_not_found", ErrorKind::InvalidArguments),
        ("invalid_auth", ErrorKind::PermissionDenied),
        ("not_in_channel", ErrorKind::PermissionDenied),
        ("fatal_error", ErrorKind::ExecutionFailed),
    ] {
        let server = Server::new(vec![response(200, json!({"ok": false, "error": word}).to_string())]);
        let slack = Slack::new(http(), secret("x"), Some(&server.url));
        let error = deliver(&slack, &message("C1", "hi")).0.unwrap_err();
        assert_eq!((error.kind, error.message), (kind, format!("Slack rejected the message: {word}")));
    }
}

#[test]
fn discord_retries_use_one_nonce() {
    let limited =
        response(429, r#"{"message":"You are being rate limited.","retry_after":0.65,"global":false}"#)
            .header("Retry-After", "1")
            .header("X-RateLimit-Reset-After", "0.7");
    let server = Server::new(vec![
        limited,
        response(502, "bad gateway"),
        response(200, r#"{"id":"9","content":"hi"}"#),
    ]);
    let discord = Discord::bot(http(), secret("TOKEN"), Some(&format!("{}/api/v10", server.url)));
    let (result, waits) = deliver(&discord, &message("123456789012345678", "hi @everyone"));
    result.unwrap();
    assert_eq!((waits[0], waits.len()), (Duration::from_millis(650), 2), "the body takes precedence");
    let requests = server.requests();
    assert_eq!(requests[0].line, "POST /api/v10/channels/123456789012345678/messages");
    assert_eq!(requests[0].header("authorization"), Some("Bot TOKEN"));
    assert!(requests[0].header("user-agent").unwrap().starts_with("DiscordBot ("));
    let body = requests[2].json();
    assert_eq!(body["content"], "hi @everyone");
    assert_eq!(body["allowed_mentions"], json!({"parse": ["users"]}));
    assert_eq!((&body["enforce_nonce"], &body["nonce"]), (&json!(true), &requests[0].json()["nonce"]));
    assert!(body["nonce"].as_str().unwrap().len() <= 25);
}

#[test]
fn discord_rate_limit_header_and_errors_are_read() {
    let limited = response(429, "error code: 1015").header("X-RateLimit-Reset-After", "2.5");
    let unknown = response(404, r#"{"message":"Unknown Channel","code":10003}"#);
    let server = Server::new(vec![limited, unknown]);
    let discord = Discord::bot(http(), secret("TOKEN"), Some(&server.url));
    let (result, waits) = deliver(&discord, &message("1", "hi"));
    assert_eq!(waits, [Duration::from_millis(2_500)]);
    let error = result.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::InvalidArguments, "Discord returned HTTP 404 Status: Unknown Channel")
    );
}

#[test]
fn discord_webhook_errors_have_no_key() {
    let server = Server::new(vec![
        response(200, r#"{"id":"9"}"#),
        response(200, r#"{"id":"10"}"#),
        response(401, r#"{"message":"Invalid Webhook Token KEY","code":50027}"#),
    ]);
    let discord = Discord::webhook(http(), &secret(&format!("{}/api/webhooks/1/KEY", server.url))).unwrap();
    deliver(&discord, &message("default", "hi")).0.unwrap();
    deliver(&discord, &message("77", "hi")).0.unwrap();
    let error = deliver(&discord, &message("default", "hi")).0.unwrap_err();
    assert_eq!((error.kind, error.message.contains("KEY")), (ErrorKind::PermissionDenied, false), "{error}");
    let requests = server.requests();
    assert_eq!(requests[0].line, "POST /api/webhooks/1/KEY?wait=true");
    assert_eq!(requests[1].line, "POST /api/webhooks/1/KEY?wait=true&thread_id=77");
    assert_eq!(requests[0].header("authorization"), None);
}

#[test]
fn discord_parts_have_at_most_2000_characters() {
    let server = Server::new(vec![response(200, "{}"), response(200, "{}"), response(200, "{}")]);
    let discord = Discord::bot(http(), secret("T"), Some(&server.url));
    deliver(&discord, &message("1", &"ä".repeat(4_500))).0.unwrap();
    let lengths: Vec<usize> = server
        .requests()
        .iter()
        .map(|request| request.json()["content"].as_str().unwrap().chars().count())
        .collect();
    assert_eq!(lengths, [2_000, 2_000, 500]);
}

#[test]
fn webhook_posts_json_and_redacts_path_and_token() {
    let server = Server::new(vec![
        response(503, "").header("Retry-After", "2"),
        response(204, ""),
        response(404, "Cannot POST /hook/KEY?k=1 with TOKEN"),
    ]);
    let url = secret(&format!("{}/hook/KEY?k=1", server.url));
    let webhook = Webhook::new(http(), url, Some(secret("TOKEN"))).unwrap();
    let (result, waits) = deliver(&webhook, &message("chat", "häi"));
    result.unwrap();
    assert_eq!(waits, [Duration::from_secs(2)]);
    let request = &server.requests()[1];
    assert_eq!(
        (request.line.as_str(), request.header("authorization")),
        ("POST /hook/KEY?k=1", Some("Bearer TOKEN"))
    );
    assert_eq!(request.json(), json!({"channel": "c", "chat_id": "chat", "content": "häi"}));
    let error = deliver(&webhook, &message("chat", "hi")).0.unwrap_err();
    assert_eq!(error.message, "The webhook returned HTTP 404 Status: Cannot POST *** with ***");
}

#[test]
fn delivery_ends_after_five_attempts() {
    let server = Server::new(vec![response(500, "down"); 5]);
    let webhook = Webhook::new(http(), secret(&server.url), None).unwrap();
    let (result, waits) = deliver(&webhook, &message("c", "hi"));
    assert_eq!(
        (result.unwrap_err().kind, waits.len(), server.requests().len()),
        (ErrorKind::ExecutionFailed, 4, 5)
    );
    assert!(
        waits.windows(2).all(|two| two[1] > two[0] / 4)
            && waits.iter().all(|wait| *wait <= Duration::from_secs(30))
    );
}

#[test]
fn malformed_chat_id_or_content_is_an_error_for_the_sender() {
    let channels: [(Box<dyn Channel>, &str, &str); 3] = [
        (Box::new(Telegram::new(http(), secret("t"), None)), "-100200300", "general"),
        (Box::new(Slack::new(http(), secret("t"), None)), "C1", " "),
        (Box::new(Discord::bot(http(), secret("t"), None)), "12", "#general"),
    ];
    for (channel, good, bad) in channels {
        channel.check(&message(good, "hi")).unwrap();
        let error = channel.check(&message(bad, "hi")).unwrap_err();
        assert!(
            error.kind == ErrorKind::InvalidArguments && error.message.starts_with("chat_id: expected"),
            "{error}"
        );
        assert!(channel.check(&message(good, " \n")).unwrap_err().message.starts_with("content:"));
    }
}

#[test]
fn settings_create_channels() {
    let server = Server::new(vec![telegram_ok(), response(200, r#"{"ok":true}"#), response(200, "{}")]);
    let settings: BTreeMap<String, ChannelSettings> = serde_json::from_value(json!({
        "notes": {"kind": "log"},
        "tg": {"kind": "telegram", "token": "${TG}", "url": server.url},
        "slack": {"kind": "slack", "token": "xoxb", "url": server.url},
        "hook": {"kind": "discord", "url": format!("{}/w/1/k", server.url)},
    }))
    .unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&seen);
    let log = move |message: &Message| {
        received.lock().unwrap().push(message.content.clone());
        Ok(())
    };
    let var = |name: &str| (name == "TG").then(|| "1:A".to_owned());
    let bus = Bus::open(&settings, &http(), log.clone(), &var).unwrap();
    assert_eq!(bus.channels(), ["hook", "notes", "slack", "tg"]);
    // One after the other, so that each channel gets its own response.
    for (done, (channel, chat)) in [("tg", "1"), ("slack", "C1"), ("hook", "default")].iter().enumerate() {
        bus.send(&Message { channel: (*channel).into(), chat_id: (*chat).into(), content: "hi".into() })
            .unwrap();
        while server.requests().len() <= done {
            std::thread::yield_now();
        }
    }
    bus.send(&Message { channel: "notes".into(), chat_id: String::new(), content: "note".into() }).unwrap();
    bus.close(Duration::from_mins(1));
    assert_eq!(bus.undelivered(), (Vec::new(), 0));
    assert_eq!(*seen.lock().unwrap(), ["note"]);
    assert_eq!(server.requests()[0].line, "POST /bot1:A/sendMessage");

    let error = Bus::open(&settings, &http(), log, &|_| None).unwrap_err();
    assert_eq!(error.message, "channels.tg: the environment variable ${TG} is not set");
    assert!(!format!("{settings:?}").contains("xoxb"));
    assert_eq!(settings["tg"].endpoint(&var).unwrap(), server.url.trim_start_matches("http://"));
}
