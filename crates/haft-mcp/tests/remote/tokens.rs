//! Servers that do not answer everybody.

use std::sync::Arc;
use std::sync::Mutex;

use haft_mcp::client::{ClientError, ClientOptions, McpClient, McpError, ServerTransport, TokenProvider};
use haft_tool::{Cancel, Secret};

use super::server::{Server, answer, json_answer, plain, said};
use super::{connect, echo, endpoint, limits};

/// The token that was turned down, with which status, and what was said.
type Told = (Option<String>, u16, Vec<String>);

/// Gives out `token-1`, `token-2`, …, and remembers what it was told.
#[derive(Default)]
struct Tokens(Mutex<Vec<Told>>);

impl Tokens {
    fn told(&self) -> Vec<Told> {
        self.0.lock().unwrap().clone()
    }
}

impl TokenProvider for Tokens {
    fn token(&self) -> Option<String> {
        let count = self.told().len();
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
        Ok(format!("token-{}", self.told().len()))
    }
}

/// A server that takes the token of that number.
fn taking(number: usize, status: u16, challenge: &'static str) -> Server {
    let wanted = format!("Bearer token-{number}");
    Server::new(move |asked, stream| {
        if asked.header("Authorization") != Some(&wanted) {
            return answer(stream, status, &[("WWW-Authenticate", challenge)], "");
        }
        let result = match asked.method() {
            "server/discover" => serde_json::json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}),
            "tools/list" => serde_json::json!({"tools": []}),
            _ => said("hi"),
        };
        json_answer(stream, &asked.result(&result))
    })
}

fn logged_in(server: &Server, tokens: &Arc<Tokens>) -> Result<McpClient, ClientError> {
    let authorize: Arc<dyn TokenProvider> = Arc::clone(tokens) as Arc<dyn TokenProvider>;
    let endpoint = endpoint(&server.url(), Some(authorize));
    McpClient::connect(
        ServerTransport::Http(endpoint),
        ClientOptions { limits: limits(), ..ClientOptions::default() },
    )
}

#[test]
fn a_server_that_wants_a_token_gets_one_and_keeps_getting_it() {
    let (server, tokens) = (taking(1, 401, "Bearer scope=\"a\""), Arc::new(Tokens::default()));
    let client = logged_in(&server, &tokens).unwrap();
    echo(&client).unwrap();
    assert_eq!(tokens.told(), [(None, 401, vec!["Bearer scope=\"a\"".to_owned()])]);
}

#[test]
fn a_server_that_takes_no_token_is_not_asked_for_ever() {
    let (server, tokens) = (taking(99, 401, "Bearer"), Arc::new(Tokens::default()));
    assert_eq!(logged_in(&server, &tokens).err().unwrap().kind, McpError::Unauthorized);
    assert_eq!(tokens.told().len(), 1);
    let (server, tokens) =
        (taking(99, 403, "Bearer error=\"insufficient_scope\""), Arc::new(Tokens::default()));
    assert_eq!(logged_in(&server, &tokens).err().unwrap().kind, McpError::Unauthorized);
    let told = tokens.told();
    assert_eq!(told.len(), 2);
    assert_eq!((told[1].0.as_deref(), told[1].1), (Some("token-1"), 403));
    let (server, tokens) = (taking(99, 403, "Bearer error=\"invalid_token\""), Arc::new(Tokens::default()));
    assert_eq!(logged_in(&server, &tokens).err().unwrap().kind, McpError::Unauthorized);
    assert_eq!(tokens.told().len(), 0);
}

#[test]
fn without_a_token_the_error_says_what_to_do() {
    let server = Server::new(|_, stream| plain(stream, 401, "go away"));
    let error = connect(&server.url(), limits()).err().unwrap();
    assert_eq!(error.kind, McpError::Unauthorized);
    assert!(error.message.contains("Log in") && error.message.contains("go away"), "{error}");
}

#[test]
fn headers_of_the_configuration_go_along_and_a_token_goes_before_them() {
    let server = taking(7, 401, "Bearer");
    let mut own = endpoint(&server.url(), None);
    own.headers = vec![
        ("Authorization".to_owned(), Secret::new("Bearer token-7")),
        ("X-Own".to_owned(), Secret::new("yes")),
    ];
    let options = ClientOptions { limits: limits(), ..ClientOptions::default() };
    let client = McpClient::connect(ServerTransport::Http(own), options).unwrap();
    echo(&client).unwrap();
    assert!(server.heard().iter().all(|asked| asked.header("X-Own") == Some("yes")));
}
