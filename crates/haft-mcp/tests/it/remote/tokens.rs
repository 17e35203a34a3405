//! Servers that require tokens.

use std::sync::Arc;
use std::sync::Mutex;

use haft_mcp::client::{ClientError, ClientOptions, McpClient, McpError, ServerTransport, TokenProvider};
use haft_tool::{Cancel, Secret};

use super::server::{ScriptedServer, respond, respond_json, respond_text, text_result};
use super::{connect, echo, endpoint, limits};

/// The rejected token, the status and the challenges.
type Challenged = (Option<String>, u16, Vec<String>);

/// Provides `token-1`, `token-2`, … and records its calls.
#[derive(Default)]
struct TestTokens(Mutex<Vec<Challenged>>);

impl TestTokens {
    fn challenges(&self) -> Vec<Challenged> {
        self.0.lock().unwrap().clone()
    }
}

impl TokenProvider for TestTokens {
    fn token(&self) -> Option<String> {
        let count = self.challenges().len();
        (count > 0).then(|| format!("token-{count}"))
    }

    fn challenged(
        &self,
        used: Option<&str>,
        status: u16,
        challenges: &[String],
        _cancel: &Cancel,
    ) -> Result<String, ClientError> {
        self.0.lock().unwrap().push((used.map(str::to_owned), status, challenges.to_vec()));
        Ok(format!("token-{}", self.challenges().len()))
    }
}

/// A server that accepts the token of that number.
fn server_accepting(number: usize, status: u16, challenge: &'static str) -> ScriptedServer {
    let wanted = format!("Bearer token-{number}");
    ScriptedServer::new(move |request, stream| {
        if request.header("Authorization") != Some(&wanted) {
            return respond(stream, status, &[("WWW-Authenticate", challenge)], "");
        }
        let result = match request.method() {
            "server/discover" => serde_json::json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}),
            "tools/list" => serde_json::json!({"tools": []}),
            _ => text_result("hi"),
        };
        respond_json(stream, &request.result(&result))
    })
}

fn connect_with(server: &ScriptedServer, tokens: &Arc<TestTokens>) -> Result<McpClient, ClientError> {
    let authorize: Arc<dyn TokenProvider> = Arc::clone(tokens) as Arc<dyn TokenProvider>;
    let endpoint = endpoint(&server.url(), Some(authorize));
    McpClient::connect(
        ServerTransport::Http(endpoint),
        ClientOptions { limits: limits(), ..ClientOptions::default() },
    )
}

#[test]
fn token_is_obtained_once_and_reused() {
    let (server, tokens) = (server_accepting(1, 401, "Bearer scope=\"a\""), Arc::new(TestTokens::default()));
    let client = connect_with(&server, &tokens).unwrap();
    echo(&client).unwrap();
    assert_eq!(tokens.challenges(), [(None, 401, vec!["Bearer scope=\"a\"".to_owned()])]);
}

#[test]
fn number_of_new_tokens_is_limited() {
    let (server, tokens) = (server_accepting(99, 401, "Bearer"), Arc::new(TestTokens::default()));
    assert_eq!(connect_with(&server, &tokens).err().unwrap().kind, McpError::Unauthorized);
    assert_eq!(tokens.challenges().len(), 1);
    let (server, tokens) =
        (server_accepting(99, 403, "Bearer error=\"insufficient_scope\""), Arc::new(TestTokens::default()));
    assert_eq!(connect_with(&server, &tokens).err().unwrap().kind, McpError::Unauthorized);
    let challenged = tokens.challenges();
    assert_eq!(challenged.len(), 2);
    assert_eq!((challenged[1].0.as_deref(), challenged[1].1), (Some("token-1"), 403));
    let (server, tokens) =
        (server_accepting(99, 403, "Bearer error=\"invalid_token\""), Arc::new(TestTokens::default()));
    assert_eq!(connect_with(&server, &tokens).err().unwrap().kind, McpError::Unauthorized);
    assert_eq!(tokens.challenges().len(), 0);
}

#[test]
fn missing_token_error_says_what_to_do() {
    let server = ScriptedServer::new(|_, stream| respond_text(stream, 401, "go away"));
    let error = connect(&server.url(), limits()).err().unwrap();
    assert_eq!(error.kind, McpError::Unauthorized);
    assert!(error.message.contains("Log in") && error.message.contains("go away"), "{error}");
}

#[test]
fn configured_headers_are_sent() {
    let server = server_accepting(7, 401, "Bearer");
    let mut own = endpoint(&server.url(), None);
    own.headers = vec![
        ("Authorization".to_owned(), Secret::new("Bearer token-7")),
        ("X-Own".to_owned(), Secret::new("yes")),
    ];
    let options = ClientOptions { limits: limits(), ..ClientOptions::default() };
    let client = McpClient::connect(ServerTransport::Http(own), options).unwrap();
    echo(&client).unwrap();
    assert!(server.received().iter().all(|request| request.header("X-Own") == Some("yes")));
}
