//! What `haft call` lets a tool reach.

use serde_json::{Value, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::http_server::{Server, answer, page};

const TOOLS: [(&str, &str); 2] = [("claude", "WebFetch"), ("clawft", "web_fetch")];

fn call(dialect: &str, tool: &str, url: &str, more: &[&str]) -> (i32, Value) {
    let mut arguments = json!({"url": url});
    if dialect == "claude" {
        arguments["prompt"] = json!("anything");
    }
    let arguments = arguments.to_string();
    let args = [&["call", tool, &arguments, "--dialect", dialect, "--json"], more].concat();
    let ran =
        CliFixture::new().command(&args).env_remove("HTTP_PROXY").env_remove("http_proxy").output().unwrap();
    let value = serde_json::from_slice(&ran.stdout);
    assert!(value.is_ok(), "{}", String::from_utf8_lossy(&ran.stderr));
    (ran.status.code().unwrap(), value.unwrap())
}

#[test]
fn no_spelling_of_this_machine_is_reached_by_naming_the_tool() {
    let server = Server::start(|_| page("text/plain", "secret"));
    let port = server.port;
    for (dialect, tool) in TOOLS {
        for host in [
            "127.0.0.1",
            "localhost",
            "2130706433",
            "0x7f.1",
            "0177.1",
            "[::ffff:127.0.0.1]",
            "[::1]",
            "127.0.0.1.",
        ] {
            let (code, value) = call(dialect, tool, &format!("http://{host}:{port}/"), &[]);
            assert_eq!((code, &value["error_kind"]), (3, &json!("permission_denied")), "{host}: {value}");
            assert!(value["content"].as_str().unwrap().contains(&format!("{tool}(domain:")), "{value}");
        }
    }
    let (code, value) = call("claude", "WebFetch", "http://169.254.169.254/latest/meta-data/", &[]);
    assert_eq!(code, 3);
    assert!(value["content"].as_str().unwrap().contains("a cloud's metadata address"), "{value}");
    assert_eq!(server.asked.try_iter().count(), 0);
}

#[test]
fn a_private_address_is_reached_when_it_is_named() {
    let server = Server::start(|_| page("text/plain", "here"));
    let (url, entry) = (server.url("/"), server.entry());
    for (dialect, tool) in TOOLS {
        let rule = format!("{tool}(domain:127.0.0.1)");
        for allow in [["--network", entry.as_str()], ["--allowedTools", rule.as_str()]] {
            let (code, value) = call(dialect, tool, &url, &allow);
            assert_eq!(code, 0, "{value}");
            let (code, _) = call(dialect, tool, &url, &[&allow[..], &["--disallowedTools", &rule]].concat());
            assert_eq!(code, 3, "a rule that denies wins");
        }
    }
}

#[test]
fn a_redirect_does_not_lead_where_the_call_may_not_go() {
    let secret = Server::start(|_| page("text/plain", "secret"));
    let location = secret.url("/");
    let first = Server::start(move |_| answer("302 Found", &format!("Location: {location}\r\n"), ""));
    let (code, value) = call("clawft", "web_fetch", &first.url("/"), &["--network", &first.entry()]);
    assert_eq!((code, &value["error_kind"]), (3, &json!("permission_denied")), "{value}");
    assert!(value["content"].as_str().unwrap().contains(&format!("--network {}", secret.entry())), "{value}");
    assert_eq!(secret.asked.try_iter().count(), 0);
}

#[test]
fn a_proxy_of_the_environment_is_used() {
    let proxy = Server::start(|_| page("text/plain", "by proxy"));
    let arguments = json!({"url": "http://example.com/page"}).to_string();
    let ran = CliFixture::new()
        .command(&["call", "web_fetch", &arguments, "--dialect", "clawft"])
        .env("http_proxy", format!("http://127.0.0.1:{}", proxy.port))
        .env_remove("HTTP_PROXY")
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&ran.stdout).contains("by proxy"),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert!(proxy.asked.recv().unwrap().starts_with("GET http://example.com/page "));
}
