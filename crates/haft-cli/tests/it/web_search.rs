//! Searches, the oracle and messages through the built program and the real HTTP door.

use crate::fixture::cli::{CliFixture, RunOutput};
use crate::fixture::http_responses::{Server, response};
use serde_json::{Value, json};

const FOUND: &str = r#"{"query":"rust","results":[{"title":"Rust","url":"https://www.rust-lang.org/","snippet":"A language","content":"A language"}]}"#;

fn call(
    cli: &CliFixture,
    dialect: &str,
    tool: &str,
    arguments: &Value,
    env: &[(&str, &str)],
) -> (RunOutput, Value) {
    let arguments = arguments.to_string();
    let mut command = cli.command(&["call", "--dialect", dialect, "--json", tool, &arguments]);
    for name in [
        "BRAVE_API_KEY",
        "TAVILY_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_CSE_ID",
        "SEARXNG_URL",
        "LOOM_SERVER_URL",
    ] {
        command.env_remove(name);
    }
    let ran: RunOutput = command.envs(env.iter().copied()).output().unwrap().into();
    assert!(ran.stdout.starts_with('{'), "{}{}", ran.stdout, ran.stderr);
    let value = serde_json::from_str(&ran.stdout).unwrap();
    (ran, value)
}

fn configure(cli: &CliFixture, text: &str) {
    std::fs::write(cli.config(), text).unwrap();
}

#[test]
fn the_environment_chooses_who_searches() {
    let (cli, server) = (CliFixture::new(), Server::new(vec![response(200, FOUND)]));
    let (ran, value) =
        call(&cli, "claude", "WebSearch", &json!({"query": "rust"}), &[("SEARXNG_URL", &server.url)]);
    assert_eq!(ran.code, 0, "{value}");
    assert_eq!(value["structured"]["results"][0]["url"], "https://www.rust-lang.org/");
    assert_eq!(server.requests()[0].line, "GET /search?q=rust&format=json");
}

#[test]
fn a_rate_limit_is_waited_for_through_the_real_door() {
    let limited = response(429, r#"{"error":"slow down"}"#).header("Retry-After", "0");
    let (cli, server) = (CliFixture::new(), Server::new(vec![limited, response(200, FOUND)]));
    let arguments = json!({"query": "rust", "max_results": 99});
    let (ran, value) = call(&cli, "loom", "web_search", &arguments, &[("LOOM_SERVER_URL", &server.url)]);
    assert_eq!(ran.code, 0, "{value}");
    assert_eq!(
        value["structured"],
        json!({"results": [{"title": "Rust", "url": "https://www.rust-lang.org/", "snippet": "A language"}]})
    );
    assert_eq!(
        server.requests()[1].json(),
        json!({"query": "rust", "max_results": 10}),
        "clamped, not refused"
    );
}

#[test]
fn the_oracle_asks_the_model_that_the_environment_names() {
    let said = r#"{"message":{"role":"assistant","content":"yes"},"tool_calls":[],"usage":{"prompt_tokens":1,"completion_tokens":2},"finish_reason":"stop"}"#;
    let (cli, server) = (CliFixture::new(), Server::new(vec![response(200, said)]));
    let env = [("LOOM_SERVER_URL", server.url.as_str()), ("LOOM_SERVER_ORACLE_MODEL", "gpt-9")];
    let (ran, value) =
        call(&cli, "loom", "oracle", &json!({"query": "?", "max_tokens": 1, "temperature": 7}), &env);
    assert_eq!(ran.code, 0, "{value}");
    assert_eq!(value["structured"]["usage"], json!({"input_tokens": 1, "output_tokens": 2}));
    let body = server.requests()[0].json();
    assert_eq!(json!([body["model"], body["max_tokens"], body["temperature"]]), json!(["gpt-9", 16, 2.0]));
}

#[test]
fn clawft_searches_at_the_endpoint_of_the_settings() {
    let (cli, server) = (CliFixture::new(), Server::new(vec![response(200, FOUND)]));
    configure(&cli, &format!("[tools.web_search]\nendpoint = \"{}/s\"\n", server.url));
    let (ran, value) = call(&cli, "clawft", "web_search", &json!({"query": "rust", "num_results": 3}), &[]);
    assert_eq!(ran.code, 0, "{value}");
    assert_eq!(value["structured"]["results"][0]["content"], "A language");
    assert_eq!(server.requests()[0].line, "GET /s?q=rust&count=3");
}

#[test]
fn a_message_goes_out_by_the_channel_of_the_settings_before_the_program_ends() {
    let ok = r#"{"ok":true,"result":{"message_id":1}}"#;
    let limited =
        r#"{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":0}}"#;
    let (cli, server) = (CliFixture::new(), Server::new(vec![response(429, limited), response(200, ok)]));
    configure(
        &cli,
        &format!(
            "[channels.telegram]\nkind = \"telegram\"\ntoken = \"${{TG_TOKEN}}\"\nurl = \"{}\"\n",
            server.url
        ),
    );
    let arguments = json!({"channel": "telegram", "chat_id": "12345", "content": "Build is green 🌱"});
    let (ran, value) = call(&cli, "clawft", "message", &arguments, &[("TG_TOKEN", "1:A")]);
    assert_eq!(ran.code, 0, "{value}");
    assert_eq!(
        value["structured"],
        json!({"status": "sent", "channel": "telegram", "chat_id": "12345", "content_length": 19})
    );
    let asked = server.requests();
    assert_eq!((asked.len(), asked[1].line.as_str()), (2, "POST /bot1:A/sendMessage"));
    assert_eq!(asked[1].json()["text"], "Build is green 🌱");
}

#[test]
fn an_unknown_channel_and_one_that_refuses_are_both_told() {
    let (cli, server) =
        (CliFixture::new(), Server::new(vec![response(200, r#"{"ok":false,"error":"channel_not_found"}"#)]));
    configure(
        &cli,
        &format!("[channels.slack]\nkind = \"slack\"\ntoken = \"xoxb-9\"\nurl = \"{}\"\n", server.url),
    );
    let unknown = json!({"channel": "slak", "chat_id": "C1", "content": "hi"});
    let (ran, value) = call(&cli, "clawft", "message", &unknown, &[]);
    assert_ne!(ran.code, 0);
    assert!(value["content"].to_string().contains("did you mean"), "{value}");
    let known = json!({"channel": "slack", "chat_id": "C1", "content": "hi"});
    let (ran, _) = call(&cli, "clawft", "message", &known, &[]);
    assert!(ran.stderr.contains("channel_not_found") && !ran.stderr.contains("xoxb-9"), "{}", ran.stderr);
}
