//! E33: network effects are on record before they happen.

use serde_json::{Value, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::http_server::{Server, page};

#[test]
fn e33_request_is_on_record_before_it_is_sent() {
    let cli = CliFixture::new();
    let (home, root, config) = (cli.home().to_owned(), cli.root().to_owned(), cli.config());
    let server = Server::start(move |_| {
        let mut log = std::process::Command::new(crate::fixture::haft_program());
        log.args(["log", "--json"]).current_dir(&root).env("HAFT_HOME", &home).env("HAFT_CONFIG", &config);
        page("text/plain", log.output().unwrap().stdout)
    });
    let arguments = json!({"url": server.url("/"), "prompt": "x"}).to_string();
    let ran = cli.haft(&["call", "WebFetch", &arguments, "--network", &server.entry()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let logged = ran.stdout.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let logged = logged.unwrap_or_else(|| panic!("nothing was on record: {}", ran.stdout));
    assert_eq!((&logged["tool"], &logged["state"]), (&json!("WebFetch"), &json!("running")));
}

#[test]
fn e33_unknown_session_is_an_error_before_anything_is_done() {
    let cli = CliFixture::new();
    let server = Server::start(|_| page("text/plain", "answer"));
    let entry = json!({"mcpServers": {"s": {"type": "http", "url": server.url("/mcp")}}});
    cli.write("servers.json", &entry.to_string());
    let fetch = json!({"url": server.url("/"), "prompt": "x"}).to_string();
    let write = json!({"file_path": cli.path("new"), "content": ""}).to_string();
    let servers = ["--mcp-config", "servers.json"];
    for (tool, arguments) in [("WebFetch", fetch), ("Write", write), ("mcp__s__x", "{}".to_owned())] {
        let network = ["--network", &server.entry()];
        let args = [&["call", tool, &arguments, "--session", "zzzzzzz9"], &network[..], &servers].concat();
        let ran = cli.haft(&args);
        assert_eq!(ran.code, 4, "{tool}: {}{}", ran.stdout, ran.stderr);
    }
    assert!(server.asked.try_recv().is_err(), "a request was sent");
    assert!(!cli.path("new").exists());
}
