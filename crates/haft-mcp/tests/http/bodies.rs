//! Bodies that are not what they should be.

use std::time::Duration;

use haft_mcp::wire::{INVALID_REQUEST, PARSE_ERROR};
use serde_json::{Value, json};

use crate::client::{ClientRequest, House, house, house_within};
use crate::support::{call, modern, request};

fn list(house: &House) -> ClientRequest {
    house.post_modern(&request(1, "tools/list", modern(json!({}))))
}

#[test]
fn a_body_must_say_that_it_is_json_and_be_sent_as_it_is() {
    let house = house();
    for kind in ["application/json", "Application/JSON; charset=utf-8"] {
        assert_eq!(house.ask(&list(&house).with("Content-Type", kind)).status, 200, "{kind}");
    }
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/json-rpc", ""]
    {
        assert_eq!(house.ask(&list(&house).with("Content-Type", kind)).status, 415, "{kind}");
    }
    assert_eq!(house.ask(&list(&house).without("Content-Type")).status, 415);
    let mut two = list(&house);
    two.add("Content-Type", "text/plain");
    assert_eq!(house.ask(&two).status, 415);
    assert_eq!(house.ask(&list(&house).with("Content-Encoding", "gzip")).status, 415);
}

#[test]
fn a_client_must_take_both_kinds_of_answers() {
    let house = house();
    for kinds in ["application/json, text/event-stream", "*/*", "application/*;q=0.5, text/event-stream;q=1"]
    {
        assert_eq!(house.ask(&list(&house).with("Accept", kinds)).status, 200, "{kinds}");
    }
    for kinds in ["application/json", "text/event-stream", "text/html", "image/*"] {
        assert_eq!(house.ask(&list(&house).with("Accept", kinds)).status, 406, "{kinds}");
    }
}

#[test]
fn what_is_no_message_is_refused_and_the_connection_goes_on() {
    let house = house();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_params = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"a":{}1{}}}}}"#,
        "{\"a\":".repeat(5000),
        "}".repeat(5000)
    );
    let mut line = house.connect();
    for (body, code) in [
        (&b""[..], PARSE_ERROR),
        (b"{", PARSE_ERROR),
        (b"nonsense", PARSE_ERROR),
        (b"\xff\xfe{}", PARSE_ERROR),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", PARSE_ERROR),
        (deep.as_bytes(), PARSE_ERROR),
        (deep_params.as_bytes(), PARSE_ERROR),
        (b"{}", INVALID_REQUEST),
        (b"1", INVALID_REQUEST),
        (b"null", INVALID_REQUEST),
        (b"[]", INVALID_REQUEST),
        (br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":1,"method":7}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST),
    ] {
        let mut ask = list(&house);
        ask.body = body.to_vec();
        line.send(&ask.bytes());
        let reply = line.reply();
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!((reply.status, reply.code()), (400, code), "{shown}");
        assert_eq!(reply.json().get("id"), None, "{shown}");
    }
    line.send(&list(&house).bytes());
    assert_eq!(line.reply().status, 200);
}

#[test]
fn a_body_that_is_too_large_is_refused_before_it_has_come() {
    let house = house_within(|limits| limits.max_body_bytes = 10_000);
    let mut line = house.connect();
    let mut ask = list(&house);
    ask.set("Content-Length", "10001");
    line.send(format!("{}\r\n", ask.head()).as_bytes());
    assert_eq!(line.reply().status, 413);
    assert!(line.is_closed());

    let mut line = house.connect();
    ask.set("Content-Length", "99999999999999999999999999");
    line.send(format!("{}\r\n", ask.head()).as_bytes());
    assert_eq!(line.reply().status, 400);

    let mut line = house.connect();
    let chunked = list(&house).with("Transfer-Encoding", "chunked");
    line.send(format!("{}\r\n", chunked.head()).as_bytes());
    // An endless body: the server has enough before the client has.
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    while line.try_send(chunk.as_bytes()) {}
    assert_eq!(line.reply().status, 413);
}

#[test]
fn a_large_body_within_the_limit_is_read_whole() {
    let house = house();
    let text = "x".repeat(5 << 20);
    let ask = house.post_modern(&request(1, "tools/call", modern(call("echo", json!({"text": text})))));
    let reply = house.ask(&ask);
    assert_eq!(reply.status, 200);
    let echoed: Value =
        serde_json::from_str(reply.json()["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(echoed["text"].as_str().unwrap().len(), text.len());
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for_forever() {
    let house = house_within(|limits| limits.body_timeout = Duration::from_millis(200));
    let mut line = house.connect();
    let mut ask = list(&house);
    ask.set("Content-Length", "1000");
    line.send(format!("{}\r\n{{", ask.head()).as_bytes());
    assert_eq!(line.reply().status, 408);
    assert!(line.is_closed());

    let mut line = house.connect();
    line.send(format!("{}\r\n{{", ask.head()).as_bytes());
    line.half_close();
    assert!(line.is_closed() || line.reply().status == 400, "a body that breaks off is no message");
    assert_eq!(house.ask(&list(&house)).status, 200);
}

#[test]
fn what_is_no_http_ends_the_connection_and_nothing_else() {
    let house = house();
    let long = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nX: {}\r\n\r\n", house.host(), "x".repeat(100_000));
    let many: String = (0..500).map(|number| format!("X-{number}: y\r\n")).collect();
    let many = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n{many}\r\n", house.host());
    let smuggled = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        house.host()
    );
    for rude in [
        "\r\n\r\n\r\n".to_owned(),
        "hello\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}".to_owned() + &"\0".repeat(500) + "\r\n\r\n",
        "GET /mcp HTTP/9.9\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "POST /mcp HTTP/1.1\r\nHost : x\r\n\r\n".to_owned(),
        "POST /mcp HTTP/1.1\r\nHo st: x\r\n\r\n".to_owned(),
        long,
        many,
        smuggled,
    ] {
        let mut line = house.connect();
        line.try_send(rude.as_bytes());
        line.half_close();
        if !line.is_closed() {
            let status = line.head().status;
            assert!((400..500).contains(&status), "{status} for {:?}", &rude[..rude.len().min(60)]);
        }
    }
    assert_eq!(house.ask(&list(&house)).status, 200);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let house = house();
    let mut line = house.connect();
    let all: Vec<u8> = (1..=20)
        .flat_map(|id| house.post_modern(&request(id, "tools/call", modern(call("echo", json!({}))))).bytes())
        .collect();
    line.send(&all);
    for id in 1..=20 {
        let reply = line.reply();
        assert_eq!((reply.status, reply.json()["id"].as_i64()), (200, Some(id)));
    }
}
