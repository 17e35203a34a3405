//! `LineSplitter` that are not what they should be.

use haft_mcp::wire::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, UNSUPPORTED_VERSION};
use serde_json::{Value, json};

use super::client::{connect, initialized};
use crate::fixture::{call, initialize, request, stateless};

#[test]
fn invalid_line_is_reported_and_the_next_is_served() {
    let mut client = initialized("2025-11-25");
    let deep = "[".repeat(100_000);
    for (line, code) in [
        (&b"nonsense"[..], PARSE_ERROR),
        (b"{", PARSE_ERROR),
        (b"\xff\xfe\xfd", PARSE_ERROR),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}", PARSE_ERROR),
        (deep.as_bytes(), PARSE_ERROR),
        (b"{} {}", PARSE_ERROR),
        (b"1", INVALID_REQUEST),
        (b"\"text\"", INVALID_REQUEST),
        (b"null", INVALID_REQUEST),
        (b"{}", INVALID_REQUEST),
        (b"[]", INVALID_REQUEST),
        (b"[1, 2]", INVALID_REQUEST),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, INVALID_REQUEST),
        (br#"{"id":1,"method":"ping"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":0.5,"method":"ping"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":1,"method":null}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"none"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","result":{}}"#, INVALID_REQUEST),
    ] {
        client.raw(line);
        client.raw(b"\n");
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        assert_eq!(client.next()["error"]["code"], code, "{shown}");
    }
    client.send(&request("after", "ping", json!({})));
    assert_eq!(client.response("after")["result"], json!({}));
    assert_eq!(client.close(), Vec::<Value>::new());
}

#[test]
fn invalid_requests_are_answered_with_their_id() {
    let mut client = initialized("2025-11-25");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (params, code) in [
        (r#"{"name": "\ud800"}"#, PARSE_ERROR),
        (r#"{"name": 1e999}"#, PARSE_ERROR),
        (&deep, PARSE_ERROR),
        ("{\"name\": ", PARSE_ERROR),
        ("[1]", INVALID_REQUEST),
        ("\"none\"", INVALID_REQUEST),
    ] {
        client.raw(
            format!("{{\"jsonrpc\":\"2.0\",\"id\":\"odd\",\"method\":\"tools/call\",\"params\":{params}}}\n")
                .as_bytes(),
        );
        assert_eq!(client.response("odd")["error"]["code"], code, "{params:.60}");
    }
    let mut batches = initialized("2025-03-26");
    batches.raw(b"[{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":1},{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\"}]\n");
    assert_eq!(batches.response(7)["error"]["code"], INVALID_REQUEST);
    assert_eq!(batches.response(8)["result"], json!({}));
}

#[test]
fn overlong_line_is_reported_once() {
    let mut client = initialized("2025-11-25");
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..70 {
        client.raw(&piece);
    }
    client.raw(b"\n");
    client.send(&request(1, "ping", json!({})));
    assert_eq!(client.error_code(), PARSE_ERROR);
    assert_eq!(client.next()["id"], 1);
}

#[test]
fn blank_lines_crlf_and_bom_are_accepted() {
    let mut client = connect();
    client.raw(b"\n\r\n   \n");
    client.raw(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n");
    assert_eq!(client.next()["id"], 1);
    client.raw(b"{\"jsonrpc\":\"2.0\",");
    client.raw(b"\"id\":2,\"method\":\"ping\"");
    client.raw(b"}\n{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}");
    assert_eq!(client.next()["id"], 2);
    let last = client.close();
    assert_eq!(last[0]["id"], 3, "the last line needs no line feed");
}

#[test]
fn only_stateless_requests_are_served_before_the_handshake() {
    let mut client = connect();
    for method in ["tools/list", "tools/call", "resources/list", "subscriptions/listen", "no/such/method"] {
        client.send(&request(1, method, json!({})));
        assert_eq!(client.response(1)["error"]["code"], INVALID_REQUEST, "{method}");
    }
    client.send(&request(1, "server/discover", json!({})));
    assert_eq!(client.response(1)["error"]["code"], INVALID_PARAMS);
    client.send(&request(2, "ping", json!({})));
    assert_eq!(client.response(2)["result"], json!({}));
    client.send(&request(3, "tools/list", stateless(json!({}))));
    assert_eq!(client.response(3)["result"]["resultType"], "complete");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client.send(&request(4, "tools/list", json!({})));
    assert_eq!(
        client.response(4)["error"]["code"],
        INVALID_REQUEST,
        "the notification alone is no handshake"
    );
}

#[test]
fn both_families_are_served_on_one_stdio_connection() {
    let mut client = connect();
    client.send(&request(1, "server/discover", stateless(json!({}))));
    assert_eq!(client.response(1)["result"]["supportedVersions"].as_array().unwrap().len(), 5);
    client.send(&initialize(2, "2024-11-05"));
    assert_eq!(client.response(2)["result"]["protocolVersion"], "2024-11-05");
    client.send(&request(3, "tools/call", call("echo", json!({"a": 1}))));
    assert_eq!(client.response(3)["result"].get("resultType"), None);
    client.send(&request(4, "tools/call", stateless(call("echo", json!({"a": 1})))));
    assert_eq!(client.response(4)["result"]["resultType"], "complete");
    client.send(&request(5, "ping", stateless(json!({}))));
    assert_eq!(client.response(5)["error"]["code"], METHOD_NOT_FOUND);
    let mut params = stateless(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(7);
    client.send(&request(6, "tools/list", params));
    assert_eq!(client.response(6)["error"]["code"], UNSUPPORTED_VERSION);
}

#[test]
fn unknown_methods_and_invalid_params_are_errors() {
    let mut client = initialized("2025-11-25");
    for (method, params, code) in [
        ("no/such/method", json!({}), METHOD_NOT_FOUND),
        ("", json!({}), METHOD_NOT_FOUND),
        ("completion/complete", json!({}), METHOD_NOT_FOUND),
        ("server/discover", json!({}), INVALID_PARAMS),
        ("tools/call", json!({}), INVALID_PARAMS),
        ("tools/call", json!({"name": 7}), INVALID_PARAMS),
        ("tools/call", json!({"name": "no such tool"}), INVALID_PARAMS),
        ("tools/call", json!({"name": "echo", "arguments": [1]}), INVALID_PARAMS),
        ("tools/list", json!({"cursor": "99"}), INVALID_PARAMS),
        ("tools/list", json!({"cursor": 1}), INVALID_PARAMS),
        ("logging/setLevel", json!({"level": "loud"}), INVALID_PARAMS),
        ("resources/read", json!({}), INVALID_PARAMS),
        ("resources/read", json!({"uri": "test://none"}), -32002),
        ("resources/subscribe", json!({"uri": "test://none"}), -32002),
        ("prompts/get", json!({"name": "none", "arguments": 1}), INVALID_PARAMS),
    ] {
        client.send(&request("x", method, params.clone()));
        let answer = client.response("x");
        assert_eq!(answer["error"]["code"], code, "{method} {params}");
    }
    client.send(&request("x", "tools/call", call("panic", json!({}))));
    assert!(client.response("x")["error"]["message"].as_str().unwrap().contains("fault"));
    client.send(&request("x", "ping", json!({})));
    assert_eq!(client.response("x")["result"], json!({}));
}

#[test]
fn batches_are_served_in_version_2025_03_26() {
    let mut client = initialized("2025-03-26");
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    client.send(&json!([request(1, "ping", json!({})), told, {"x": 1}, request(2, "ping", json!({}))]));
    assert_eq!(client.next()["id"], 1);
    assert_eq!(client.error_code(), INVALID_REQUEST);
    assert_eq!(client.next()["id"], 2);
}

#[test]
fn unexpected_responses_are_ignored() {
    let mut client = initialized("2025-11-25");
    client.send(&json!({"jsonrpc": "2.0", "id": "haft-1", "result": {}}));
    client.send(&json!({"jsonrpc": "2.0", "id": "haft-1", "error": {"code": 1, "message": "no"}}));
    client.send(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "no"}}));
    client.send(&json!({"jsonrpc": "2.0", "id": 7, "error": "nonsense"}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/no/such", "params": {}}));
    client.send(&request(1, "ping", json!({})));
    assert_eq!(client.next()["id"], 1);
}
