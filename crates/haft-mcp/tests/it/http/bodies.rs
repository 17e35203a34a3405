//! Bodies that are not what they should be.

use std::time::Duration;

use haft_mcp::wire::{INVALID_REQUEST, PARSE_ERROR};
use serde_json::{Value, json};

use crate::fixture::{call, request, stateless};
use crate::http::client::{HttpFixture, RawRequest, server, server_with_limits};

fn list(server: &HttpFixture) -> RawRequest {
    server.post_stateless(&request(1, "tools/list", stateless(json!({}))))
}

#[test]
fn body_must_be_plain_json() {
    let server = server();
    for kind in ["application/json", "Application/JSON; charset=utf-8"] {
        assert_eq!(server.send(&list(&server).with("Content-Type", kind)).status, 200, "{kind}");
    }
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/json-rpc", ""]
    {
        assert_eq!(server.send(&list(&server).with("Content-Type", kind)).status, 415, "{kind}");
    }
    assert_eq!(server.send(&list(&server).without("Content-Type")).status, 415);
    let mut two = list(&server);
    two.add("Content-Type", "text/plain");
    assert_eq!(server.send(&two).status, 415);
    assert_eq!(server.send(&list(&server).with("Content-Encoding", "gzip")).status, 415);
}

#[test]
fn accept_must_include_json_and_event_stream() {
    let server = server();
    for kinds in ["application/json, text/event-stream", "*/*", "application/*;q=0.5, text/event-stream;q=1"]
    {
        assert_eq!(server.send(&list(&server).with("Accept", kinds)).status, 200, "{kinds}");
    }
    for kinds in ["application/json", "text/event-stream", "text/html", "image/*"] {
        assert_eq!(server.send(&list(&server).with("Accept", kinds)).status, 406, "{kinds}");
    }
}

#[test]
fn invalid_message_is_refused_and_the_connection_lives() {
    let server = server();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_params = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"a":{}1{}}}}}"#,
        "{\"a\":".repeat(5000),
        "}".repeat(5000)
    );
    let mut connection = server.connect();
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
        let mut post = list(&server);
        post.body = body.to_vec();
        connection.send(&post.bytes());
        let response = connection.response();
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!((response.status, response.code()), (400, code), "{shown}");
        let id = shown.contains("\"id\":1,").then(|| json!(1));
        assert_eq!(response.json().get("id"), id.as_ref(), "{shown}");
    }
    connection.send(&list(&server).bytes());
    assert_eq!(connection.response().status, 200);
}

#[test]
fn oversized_body_is_refused_early() {
    let server = server_with_limits(|limits| limits.max_body_bytes = 10_000);
    let mut connection = server.connect();
    let mut post = list(&server);
    post.set("Content-Length", "10001");
    connection.send(format!("{}\r\n", post.head()).as_bytes());
    assert_eq!(connection.response().status, 413);
    assert!(connection.is_closed());

    let mut connection = server.connect();
    post.set("Content-Length", "99999999999999999999999999");
    connection.send(format!("{}\r\n", post.head()).as_bytes());
    assert_eq!(connection.response().status, 400);

    let mut connection = server.connect();
    let chunked = list(&server).with("Transfer-Encoding", "chunked");
    connection.send(format!("{}\r\n", chunked.head()).as_bytes());
    // An endless body: the server has enough before the client has.
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    while connection.try_send(chunk.as_bytes()) {}
    assert_eq!(connection.response().status, 413);
}

#[test]
fn large_body_is_read_completely() {
    let server = server();
    let text = "x".repeat(5 << 20);
    let post =
        server.post_stateless(&request(1, "tools/call", stateless(call("echo", json!({"text": text})))));
    let response = server.send(&post);
    assert_eq!(response.status, 200);
    let echoed: Value =
        serde_json::from_str(response.json()["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(echoed["text"].as_str().unwrap().len(), text.len());
}

#[test]
fn slow_body_times_out() {
    let server = server_with_limits(|limits| limits.body_timeout = Duration::from_millis(200));
    let mut connection = server.connect();
    let mut post = list(&server);
    post.set("Content-Length", "1000");
    connection.send(format!("{}\r\n{{", post.head()).as_bytes());
    assert_eq!(connection.response().status, 408);
    assert!(connection.is_closed());

    let mut connection = server.connect();
    connection.send(format!("{}\r\n{{", post.head()).as_bytes());
    connection.half_close();
    assert!(
        connection.is_closed() || connection.response().status == 400,
        "a body that breaks off is no message"
    );
    assert_eq!(server.send(&list(&server)).status, 200);
}

#[test]
fn invalid_http_closes_only_its_connection() {
    let server = server();
    let long = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nX: {}\r\n\r\n", server.host(), "x".repeat(100_000));
    let many: String = (0..500).map(|number| format!("X-{number}: y\r\n")).collect();
    let many = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n{many}\r\n", server.host());
    let smuggled = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        server.host()
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
        let mut connection = server.connect();
        connection.try_send(rude.as_bytes());
        connection.half_close();
        if !connection.is_closed() {
            let status = connection.head().status;
            assert!((400..500).contains(&status), "{status} for {:?}", &rude[..rude.len().min(60)]);
        }
    }
    assert_eq!(server.send(&list(&server)).status, 200);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = server();
    let mut connection = server.connect();
    let all: Vec<u8> = (1..=20)
        .flat_map(|id| {
            server.post_stateless(&request(id, "tools/call", stateless(call("echo", json!({}))))).bytes()
        })
        .collect();
    connection.send(&all);
    for id in 1..=20 {
        let response = connection.response();
        assert_eq!((response.status, response.json()["id"].as_i64()), (200, Some(id)));
    }
}
