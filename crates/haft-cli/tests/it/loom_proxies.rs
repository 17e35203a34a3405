//! Loom's tools through the proxies of `haft serve`: one program asks another over HTTP, and that asks a provider.

use serde_json::{Value, json};

use crate::fixture::cli::{CliFixture, RunOutput};
use crate::fixture::http_client::HttpAnswer;
use crate::fixture::http_responses::{Server, response};
use crate::fixture::serve::{ACT, PROXY, ServeFixture, ServeProcess, VIEW};

const KEY: &str = "sk-of-the-server";

/// `haft serve` with these providers.
struct ProxyServer {
    server: ServeProcess,
    _fixture: ServeFixture,
}

impl ProxyServer {
    fn new(openai: Option<&Server>, search: Option<&Server>) -> Self {
        let fixture = ServeFixture::new();
        let mut settings = String::new();
        if let Some(upstream) = openai {
            settings += &format!(
                "[proxy.openai]\nbase_url = \"{}\"\napi_key = \"{KEY}\"\nwire = \"openai-chat\"\n",
                upstream.url
            );
        }
        if let Some(upstream) = search {
            settings += &format!(
                "[tools.web_search.google]\napi_key = \"{KEY}\"\ncse_id = \"CX\"\nurl = \"{}\"\n",
                upstream.url
            );
        }
        std::fs::write(fixture.cli.config(), settings).unwrap();
        Self { server: fixture.serve(), _fixture: fixture }
    }

    /// Calls a tool of the dialect with the server's address in the environment.
    fn call(
        &self,
        cli: &CliFixture,
        token: Option<&str>,
        tool: &str,
        arguments: &Value,
    ) -> (RunOutput, Value) {
        let arguments = arguments.to_string();
        let mut command = cli.command(&["call", "--dialect", "loom", "--json", tool, &arguments]);
        for name in ["LOOM_SERVER_TOKEN", "LOOM_SERVER_ORACLE_MODEL"] {
            command.env_remove(name);
        }
        command.env("LOOM_SERVER_URL", format!("http://127.0.0.1:{}", self.server.port));
        command.envs(token.map(|token| ("LOOM_SERVER_TOKEN", token)));
        let ran: RunOutput = command.output().unwrap().into();
        let value = serde_json::from_str(&ran.stdout);
        assert!(value.is_ok(), "{}{}", ran.stdout, ran.stderr);
        for secret in [PROXY, KEY] {
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{}", ran.stdout);
        }
        (ran, value.unwrap())
    }

    /// Sends a request to a proxy.
    fn post(&self, token: &str, path: &str, body: &Value) -> HttpAnswer {
        let authorization = format!("Authorization: Bearer {token}");
        let headers = [authorization.as_str(), "Content-Type: application/json"];
        self.server.raw("POST", &format!("/proxy/{path}"), &headers, body.to_string().as_bytes())
    }
}

fn chat(text: &str) -> String {
    json!({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 250}})
    .to_string()
}

#[test]
fn the_oracle_answers_through_the_proxy_without_a_key_of_its_own() {
    let upstream = Server::new(vec![response(200, chat("Use a queue."))]);
    let (cli, server) = (CliFixture::new(), ProxyServer::new(Some(&upstream), None));
    let arguments = json!({"query": "Queue or lock?", "system_prompt": "Be loud.", "max_tokens": 99});
    let (ran, value) = server.call(&cli, Some(PROXY), "oracle", &arguments);
    assert_eq!(ran.code, 0, "{value}");
    assert_eq!(
        value["structured"],
        json!({
            "message": {"role": "assistant", "content": "Use a queue."},
            "tool_calls": [],
            "usage": {"input_tokens": 100, "output_tokens": 250},
            "finish_reason": "stop",
        })
    );
    let body = upstream.requests()[0].json();
    assert_eq!(json!([body["model"], body["max_tokens"], body["temperature"]]), json!(["gpt-4o", 99, 0.2]));
    assert_eq!(
        body["messages"],
        json!([{"role": "system", "content": "Be loud."}, {"role": "user", "content": "Queue or lock?"}])
    );
}

#[test]
fn the_search_is_made_once_for_two_calls() {
    let found = r#"{"kind":"customsearch#search","items":[{"title":"Rust","link":"https://www.rust-lang.org/","snippet":"A language"}]}"#;
    let upstream = Server::new(vec![response(200, found)]);
    let (cli, server) = (CliFixture::new(), ProxyServer::new(None, Some(&upstream)));
    for query in ["Rust", " rust "] {
        let (ran, value) = server.call(&cli, Some(PROXY), "web_search", &json!({"query": query}));
        assert_eq!(ran.code, 0, "{value}");
        assert_eq!(
            value["structured"],
            json!({"results": [{"title": "Rust", "url": "https://www.rust-lang.org/", "snippet": "A language"}]})
        );
    }
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn without_the_token_the_tools_say_what_to_set() {
    let (cli, server) = (CliFixture::new(), ProxyServer::new(None, None));
    for (tool, token) in [("oracle", None), ("web_search", None), ("oracle", Some("wrong"))] {
        let (ran, value) = server.call(&cli, token, tool, &json!({"query": "x"}));
        assert_ne!(ran.code, 0);
        let text = value["content"].to_string();
        assert!(text.contains("HTTP 401") && text.contains("LOOM_SERVER_TOKEN"), "{text}");
    }
}

#[test]
fn a_rate_limit_of_the_provider_is_waited_for_by_the_client() {
    let limited = response(429, r#"{"error":{"message":"slow down"}}"#).header("Retry-After", "0");
    let upstream = Server::new(vec![limited, response(200, chat("yes"))]);
    let (cli, server) = (CliFixture::new(), ProxyServer::new(Some(&upstream), None));
    let (ran, value) = server.call(&cli, Some(PROXY), "oracle", &json!({"query": "x"}));
    assert_eq!((ran.code, upstream.requests().len()), (0, 2), "{value}");
}

#[test]
fn failures_of_the_provider_have_the_statuses_of_a_loom_server() {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
    let assert_fails = |server: &ProxyServer, token, path, status| {
        let answer = server.post(token, path, &request);
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(answer.json()["error"].is_string(), "{}", answer.text());
    };
    for (upstream, status) in [(500, 502), (504, 504), (429, 503)] {
        let failing = Server::new(vec![response(upstream, r#"{"error":{"message":"no"}}"#)]);
        assert_fails(&ProxyServer::new(Some(&failing), None), PROXY, "openai/complete", status);
    }
    let server = ProxyServer::new(None, None);
    assert_fails(&server, PROXY, "anthropic/complete", 503);
    // What the server itself refuses has the same form.
    assert_fails(&server, VIEW, "openai/complete", 403);
    assert_fails(&server, "wrong", "openai/complete", 401);
}

#[test]
fn an_answer_is_streamed_as_events() {
    let upstream = Server::new(vec![response(200, chat("Use a queue."))]);
    let server = ProxyServer::new(Some(&upstream), None);
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
    let answer = server.post(ACT, "openai/stream", &request);
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    assert!(
        text.contains("event: llm\ndata: {\"type\":\"text_delta\",\"content\":\"Use a queue.\"}"),
        "{text}"
    );
    assert!(text.contains("\"type\":\"completed\""), "{text}");
}

#[test]
fn a_server_without_a_search_engine_is_not_asked_again() {
    let (cli, server) = (CliFixture::new(), ProxyServer::new(None, None));
    let (ran, value) = server.call(&cli, Some(PROXY), "web_search", &json!({"query": "x"}));
    assert_ne!(ran.code, 0);
    let text = value["content"].to_string();
    assert!(text.contains("HTTP 500") && text.contains("GOOGLE_API_KEY"), "{text}");
}

#[test]
fn commands_do_not_see_the_token() {
    let cli = CliFixture::new();
    let arguments = json!({"command": "env"}).to_string();
    let mut command = cli.command(&["call", "--dialect", "loom", "bash", &arguments]);
    let ran: RunOutput = command.env("LOOM_SERVER_TOKEN", PROXY).output().unwrap().into();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("PATH=") && !ran.stdout.contains(PROXY), "{}", ran.stdout);
    let shown =
        cli.command(&["config", "show", "tools.loom"]).env("LOOM_SERVER_TOKEN", PROXY).output().unwrap();
    let shown: RunOutput = shown.into();
    assert!(shown.stdout.contains("tools.loom.token = \"***\"  # the environment"), "{}", shown.stdout);
}
