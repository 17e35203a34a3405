//! Loom's tools through the proxies of `haft serve`: the built program asks them over HTTP, and they ask a provider.

use std::sync::Arc;
use std::time::Duration;

use haft_ledger::Ledger;
use haft_model::{HttpModel, MODEL_RETRY, ProviderSettings, Wire};
use haft_net::http::HttpService;
use haft_net::server::{ConnectionLimits, RunningServer, WholeRequest, WholeResponse, serve_requests};
use haft_server::proxy::{
    LoomReply, LoomRequest, MAX_PROXY_BODY_BYTES, Proxies, ProxyModel, ProxyModels, SearchProxy, SearchSource,
};
use haft_tool::{Cancel, RetryPolicy, Secret};
use haft_tools::WebSearch;
use serde_json::{Value, json};

use crate::fixture::cli::{CliFixture, RunOutput};
use crate::fixture::http_responses::{Server, response};

const TOKEN: &str = "t0ken-of-the-server";
const KEY: &str = "sk-of-the-server";

/// A server with the proxies and a token.
struct ProxyServer {
    server: RunningServer,
    _home: tempfile::TempDir,
}

impl ProxyServer {
    fn new(openai: Result<&Server, &str>, search: Result<&Server, &str>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let proxies = proxies(openai, search, Ledger::open(home.path()).unwrap());
        let limits = ConnectionLimits {
            max_connections: 16,
            max_body_bytes: MAX_PROXY_BODY_BYTES,
            header_timeout: Duration::from_mins(1),
            body_timeout: Duration::from_mins(1),
            blocking_threads: 4,
        };
        let address = "127.0.0.1:0".parse().unwrap();
        let server = serve_requests(address, limits, move |request| answer(&proxies, request)).unwrap();
        Self { server, _home: home }
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
        command.env("LOOM_SERVER_URL", format!("http://{}", self.server.address()));
        command.envs(token.map(|token| ("LOOM_SERVER_TOKEN", token)));
        let ran: RunOutput = command.output().unwrap().into();
        let value = serde_json::from_str(&ran.stdout);
        assert!(value.is_ok(), "{}{}", ran.stdout, ran.stderr);
        for secret in [TOKEN, KEY] {
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{}", ran.stdout);
        }
        (ran, value.unwrap())
    }
}

fn proxies(openai: Result<&Server, &str>, search: Result<&Server, &str>, ledger: Ledger) -> Proxies {
    let http: Arc<HttpService> = Arc::default();
    let openai = openai.map_err(str::to_owned).map(|upstream| {
        let settings = ProviderSettings {
            base_url: Some(upstream.url.clone()),
            api_key: Some(Secret::new(KEY)),
            wire: Some(Wire::OpenaiChat),
            ..ProviderSettings::new("openai")
        };
        let endpoint = settings.resolve(&|_| None).unwrap();
        let streams = http.streams_for(vec![endpoint.authority()]);
        let model = HttpModel::new(endpoint, "", streams);
        let model = model.with_retry(RetryPolicy { attempts: 1, ..MODEL_RETRY });
        ProxyModel { model: Arc::new(model), own_model: None }
    });
    let source = search.map_err(str::to_owned).map(|upstream| {
        let google = json!({"google": {"api_key": KEY, "cse_id": "CX", "url": upstream.url}});
        let engine = WebSearch::configured(&serde_json::from_value(google).unwrap()).unwrap().unwrap();
        let http = http.client_for(vec![engine.host()], Cancel::new());
        SearchSource::Engine { engine: Box::new(engine), http }
    });
    let unset = || Err("not here".to_owned());
    let models = ProxyModels { openai, anthropic: unset(), vertex: unset() };
    Proxies::new(models, SearchProxy::new(source, ledger))
}

fn answer(proxies: &Proxies, request: &WholeRequest) -> WholeResponse {
    let refusal = |status: u16, why: &str| WholeResponse {
        status,
        headers: Vec::new(),
        body: json!({"error": why}).to_string(),
    };
    if request.header("authorization") != Some(&format!("Bearer {TOKEN}")) {
        return refusal(401, "the token is missing or wrong");
    }
    let Some(path) = request.path.strip_prefix("/proxy/") else { return refusal(404, "no such path") };
    let request = LoomRequest { method: &request.method, path, body: &request.body };
    match proxies.respond(&request, &Cancel::new(), &mut |_| false) {
        LoomReply::Whole(response) => response,
        LoomReply::Streamed => refusal(500, "no stream was asked for"),
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
    let (cli, server) = (CliFixture::new(), ProxyServer::new(Ok(&upstream), Err("unused")));
    let arguments = json!({"query": "Queue or lock?", "system_prompt": "Be loud.", "max_tokens": 99});
    let (ran, value) = server.call(&cli, Some(TOKEN), "oracle", &arguments);
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
    let (cli, server) = (CliFixture::new(), ProxyServer::new(Err("unused"), Ok(&upstream)));
    for query in ["Rust", " rust "] {
        let (ran, value) = server.call(&cli, Some(TOKEN), "web_search", &json!({"query": query}));
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
    let (cli, server) = (CliFixture::new(), ProxyServer::new(Err("unused"), Err("unused")));
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
    let (cli, server) = (CliFixture::new(), ProxyServer::new(Ok(&upstream), Err("unused")));
    let (ran, value) = server.call(&cli, Some(TOKEN), "oracle", &json!({"query": "x"}));
    assert_eq!((ran.code, upstream.requests().len()), (0, 2), "{value}");
}

#[test]
fn a_server_without_a_search_engine_is_not_asked_again() {
    let (cli, server) = (CliFixture::new(), ProxyServer::new(Err("unused"), Err("Set GOOGLE_API_KEY.")));
    let (ran, value) = server.call(&cli, Some(TOKEN), "web_search", &json!({"query": "x"}));
    assert_ne!(ran.code, 0);
    let text = value["content"].to_string();
    assert!(text.contains("HTTP 500") && text.contains("Set GOOGLE_API_KEY."), "{text}");
}

#[test]
fn commands_do_not_see_the_token() {
    let cli = CliFixture::new();
    let arguments = json!({"command": "env"}).to_string();
    let mut command = cli.command(&["call", "--dialect", "loom", "bash", &arguments]);
    let ran: RunOutput = command.env("LOOM_SERVER_TOKEN", TOKEN).output().unwrap().into();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("PATH=") && !ran.stdout.contains(TOKEN), "{}", ran.stdout);
    let shown =
        cli.command(&["config", "show", "tools.loom"]).env("LOOM_SERVER_TOKEN", TOKEN).output().unwrap();
    let shown: RunOutput = shown.into();
    assert!(shown.stdout.contains("tools.loom.token = \"***\"  # the environment"), "{}", shown.stdout);
}
