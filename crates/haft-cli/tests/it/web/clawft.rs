//! `web_fetch` of the `clawft` dialect.

use serde_json::{Value, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::http_server::{Server, answer, page};

fn fetch(server: &Server, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    let entry = server.entry();
    let ran = CliFixture::new().haft(&[
        "call",
        "web_fetch",
        &arguments,
        "--dialect",
        "clawft",
        "--json",
        "--network",
        &entry,
    ]);
    let value = serde_json::from_str(&ran.stdout);
    assert!(value.is_ok(), "{}{}", ran.stdout, ran.stderr);
    value.unwrap()
}

#[test]
fn the_answer_has_the_documented_fields_and_no_others() {
    let server = Server::start(|_| page("text/html; charset=utf-8", "<!DOCTYPE html><p>hi"));
    let result = fetch(&server, &json!({"url": server.url("/")}));
    let expected = json!({
        "status": 200, "content_type": "text/html; charset=utf-8", "body": "<!DOCTYPE html><p>hi", "url": server.url("/"),
        "bytes": 20,
    });
    assert_eq!(result["structured"], expected);
    assert_eq!(serde_json::from_str::<Value>(result["content"].as_str().unwrap()).unwrap(), expected);
}

#[test]
fn method_and_headers_are_sent_and_any_status_is_an_answer() {
    let server = Server::start(|_| answer("418 I'm a teapot", "", "short and stout"));
    let arguments = json!({"url": server.url("/tea"), "method": "DELETE", "headers": {"X-Cup": "two"}});
    let result = fetch(&server, &arguments);
    assert_eq!((&result["is_error"], &result["structured"]["status"]), (&json!(false), &json!(418)));
    let head = server.asked.recv().unwrap().to_lowercase();
    assert!(head.starts_with("delete /tea ") && head.contains("x-cup: two"), "{head}");
}

#[test]
fn a_body_is_cut_at_one_megabyte() {
    let server = Server::start(|_| page("text/plain", "x".repeat(3 << 20)));
    let result = fetch(&server, &json!({"url": server.url("/")}));
    let structured = result["structured"].to_string();
    assert!(
        structured.contains("3145728") || structured.contains("_truncated_json"),
        "{}",
        &structured[..200]
    );
}

#[test]
fn other_schemes_are_invalid_arguments() {
    let server = Server::start(|_| page("text/plain", "x"));
    for url in ["ftp://example.com/", "file:///etc/passwd", "example.com"] {
        let result = fetch(&server, &json!({"url": url}));
        assert_eq!(result["error_kind"], "invalid_arguments", "{result}");
    }
}
