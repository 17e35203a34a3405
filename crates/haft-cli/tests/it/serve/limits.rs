//! Requests that are huge, slow or broken: refused, without harm to others.

use std::io::Write as _;

use serde_json::json;

use crate::fixture::http_client::{answer_of, connect, exchange, request};
use crate::fixture::serve::{ACT, ServeFixture};
use crate::fixture::wait_until;

/// More clients than the server has threads for requests.
const SLOW_CLIENTS: usize = 64;
/// The most memory that a server may have used after all this.
#[cfg(target_os = "linux")]
const MAX_PEAK_KIB: u64 = 150 << 10;

#[test]
fn huge_and_broken_requests_are_refused() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let port = server.port;
    let token = format!("Authorization: Bearer {ACT}");
    let huge = format!("X-Huge: {}", "x".repeat(100_000));
    assert_eq!(server.raw("GET", "/api/v1/meta", &[&token, &huge], b"").status, 431);
    let many: Vec<String> = (0..5_000).map(|number| format!("X-{number}: y")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).chain([token.as_str()]).collect();
    assert_eq!(server.raw("GET", "/api/v1/meta", &many, b"").status, 431);
    let target = format!("/api/v1/sessions?q={}", "x".repeat(100_000));
    assert!(matches!(server.raw("GET", &target, &[&token], b"").status, 414 | 431));
    let target = format!("/api/v1/sessions?q={}", "x".repeat(30_000));
    assert_eq!(server.raw("GET", &target, &[&token], b"").status, 200);

    let json_type = "Content-Type: application/json";
    let length = format!("Content-Length: {}", 33 << 20);
    let too_large =
        exchange(port, &request(port, "POST", "/api/v1/runs", &[&token, json_type, &length], b"{"));
    assert_eq!(too_large.status, 413, "{}", too_large.text());
    let both = [token.as_str(), json_type, "Content-Length: 2", "Transfer-Encoding: chunked"];
    let smuggled = exchange(port, &request(port, "POST", "/api/v1/rules", &both, b"{}"));
    assert_eq!(smuggled.status, 400, "{}", smuggled.text());
    let deep = format!("{{\"what\":{}", "[".repeat(1 << 20));
    for body in ["", "{", "null", "[]", "\"", "{\"what\":{\"calls\":[1e999]}}", deep.as_str(), "\u{0}"] {
        let answer = server.raw("POST", "/api/v1/undo/preview", &[&token, json_type], body.as_bytes());
        let start: String = body.chars().take(40).collect();
        assert_eq!(answer.status, 400, "{start:?}: {}", answer.text());
    }
    let not_text =
        server.raw("POST", "/api/v1/undo/preview", &[&token, json_type], b"{\"what\":\"\xff\xfe\"}");
    assert_eq!(not_text.status, 400);
    for broken in [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], b"GET\r\n\r\n", b"\0\0\0\0\r\n\r\n"]
    {
        assert!(matches!(exchange(port, broken).status, 0 | 400));
    }
    server.get("/meta");
}

#[test]
fn numbers_and_names_that_make_no_sense_are_refused_or_clamped() {
    let fixture = ServeFixture::new();
    fixture.cli.call("Bash", &json!({"command": "echo one > a.txt"}));
    let server = fixture.serve();
    for path in [
        "/calls?limit=0",
        "/calls?limit=18446744073709551615",
        "/sessions?limit=4294967296",
        "/calls?before=-1",
        "/calls?before=9223372036854775807",
        "/calls/1/changes?offset=18446744073709551615",
        "/files?workspace=/nonexistent",
        "/calls?text=%00%ff%25",
        "/calls?workspace=/a&workspace=relative",
    ] {
        server.get(path);
    }
    for (path, wanted) in [
        ("/calls?limit=x", 400),
        ("/calls?limit=99999999999999999999", 400),
        ("/calls?before=1.5", 400),
        ("/calls?workspace=relative", 400),
        ("/calls/one", 404),
        ("/calls/99999999999999999999", 404),
        ("/calls/-1", 404),
        ("/calls/1/output?from=18446744073709551615", 404),
        ("/sessions?before=no-cursor", 400),
        ("/sessions/..%2f..%2fetc", 404),
        ("/sessions/%ff", 400),
        ("/blobs/..%2f..%2fledger.db", 400),
        ("/blobs/zz", 400),
        ("/diff", 400),
        ("/diff?path=relative", 400),
        ("/diff?path=/etc/passwd&after=../../x", 400),
        ("/files", 400),
        ("/rules?workspace=relative", 400),
        ("/tools?dialect=nonexistent", 404),
        ("/events?after=x", 400),
        ("/events?after=-1", 400),
        ("/nothing", 404),
        ("", 404),
        ("/", 404),
        ("/calls//", 404),
    ] {
        let answer = server.api(ACT, "GET", path, None);
        assert_eq!(answer.status, wanted, "{path}: {}", answer.text());
        assert!(!answer.message().is_empty());
    }
    // Paths are not resolved.
    for target in ["/../etc/passwd", "/..%2f..%2fetc%2fpasswd", "//etc/passwd", "/main.js/", "/index.html/.."]
    {
        assert_ne!(server.raw("GET", target, &[], b"").status, 200, "{target}");
    }
}

#[test]
fn slow_clients_do_not_keep_others_waiting() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let port = server.port;
    let whole = request(port, "GET", "/api/v1/meta", &[&format!("Authorization: Bearer {ACT}")], b"");
    let headers = [format!("Authorization: Bearer {ACT}"), "Content-Type: application/json".to_owned()];
    let body = json!({"what": {"redo": fixture.workspace()}}).to_string();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let post = request(port, "POST", "/api/v1/undo/preview", &headers, body.as_bytes());
    let mut waiting = Vec::new();
    for number in 0..SLOW_CLIENTS {
        let bytes = if number % 2 == 0 { &whole } else { &post };
        // Nothing at all, a part of the head, or all but the last byte.
        let sent = [0, 20, bytes.len() - 1][number % 3];
        let mut stream = connect(port);
        stream.write_all(&bytes[..sent]).unwrap();
        waiting.push((stream, bytes[sent..].to_vec()));
    }
    for _ in 0..20 {
        server.get("/meta");
    }
    for (mut stream, rest) in waiting {
        stream.write_all(&rest).unwrap();
        let answer = answer_of(stream);
        assert!(matches!(answer.status, 200 | 404 | 409), "{}", answer.text());
    }
}

/// A client that requests much but reads nothing gets only what fits into its connection's buffers.
#[test]
#[cfg(target_os = "linux")]
fn clients_that_do_not_read_cost_little() {
    let fixture = ServeFixture::new();
    let bytes = "x".repeat(8 << 20);
    fixture.cli.write("big.txt", &bytes);
    fixture.cli.call("Bash", &json!({"command": "cp big.txt copy.txt && cat big.txt"}));
    let server = fixture.serve();
    let token = format!("Authorization: Bearer {ACT}");
    let mut idle = Vec::new();
    for _ in 0..SLOW_CLIENTS {
        let mut stream = connect(server.port);
        let asked =
            request(server.port, "GET", "/api/v1/calls/1/output", &[&token, "Connection: keep-alive"], b"");
        for _ in 0..8 {
            stream.write_all(&asked).unwrap();
        }
        idle.push(stream);
    }
    // The first answer to each client was made and waits to be read.
    wait_until(|| {
        let log = fixture.access_log();
        log.iter().filter(|line| line["path"] == "/api/v1/calls/1/output").count() >= SLOW_CLIENTS
    });
    let peak_kib = server.memory_kib("VmHWM");
    assert!(peak_kib < MAX_PEAK_KIB, "{peak_kib} KiB");
}
