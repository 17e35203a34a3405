//! Getting tokens from authorization servers that behave and from those that do not.

mod discovery;
mod login;
mod renewal;
mod sockets;
mod store;

use std::collections::{HashMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_tool::{Cancel, Http, HttpRequest, HttpResponse, Reach, Redirects, ToolError, Value, json};
use tempfile::TempDir;
use url::Url;

use haft_mcp::client::oauth::{Authorizer, BrowserOpener, HttpFactory, OAuthOptions};
use haft_mcp::client::{ClientError, TokenProvider as _};

const SERVER: &str = "https://mcp.example.com/mcp";
const ISSUER: &str = "https://auth.example.org";

/// One request as an authorization server saw it.
#[derive(Debug, Clone)]
struct ReceivedRequest {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl ReceivedRequest {
    fn form(&self) -> HashMap<String, String> {
        url::form_urlencoded::parse(self.body.as_bytes()).into_owned().collect()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

type Answer = Box<dyn Fn(&ReceivedRequest) -> (u16, String) + Send>;

/// Every host that can be asked, and what each was asked.
#[derive(Default)]
struct TestNetwork {
    answers: Mutex<HashMap<String, Answer>>,
    asked: Mutex<Vec<ReceivedRequest>>,
    reaches: Mutex<Vec<Reach>>,
}

impl TestNetwork {
    /// A server and its authorization server, both as they should be.
    fn new() -> Arc<Self> {
        let network = Arc::new(Self::default());
        network.respond_json(
            "GET https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
            json!({"resource": SERVER, "authorization_servers": [ISSUER]}),
        );
        network.add_issuer(ISSUER);
        network
    }

    /// An authorization server with that name: its tokens are `token-1`, `token-2`, … and so are the ones to renew them.
    fn add_issuer(&self, issuer: &str) {
        self.respond_json(&format!("GET {issuer}/.well-known/oauth-authorization-server"), metadata(issuer));
        self.respond_json(
            &format!("POST {issuer}/register"),
            json!({"client_id": format!("client-of-{issuer}")}),
        );
        let count = Mutex::new(0);
        self.respond_with(&format!("POST {issuer}/token"), move |_| {
            let mut count = count.lock().unwrap();
            *count += 1;
            (200, token(&format!("token-{count}"), Some(&format!("refresh-{count}"))).to_string())
        });
    }

    fn respond_with(&self, line: &str, answer: impl Fn(&ReceivedRequest) -> (u16, String) + Send + 'static) {
        self.answers.lock().unwrap().insert(line.to_owned(), Box::new(answer));
    }

    fn respond_json(&self, line: &str, document: Value) {
        self.respond_with(line, move |_| (200, document.to_string()));
    }

    fn respond_status(&self, line: &str, status: u16, document: Value) {
        self.respond_with(line, move |_| (status, document.to_string()));
    }

    /// What was asked at places whose line begins so.
    fn received(&self, line: &str) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.line.starts_with(line)).cloned().collect()
    }

    fn lines(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|asked| asked.line.clone()).collect()
    }
}

struct NetworkClient(Arc<TestNetwork>);

impl Http for NetworkClient {
    fn fetch(&self, request: &HttpRequest) -> Result<HttpResponse, ToolError> {
        assert_eq!(request.redirects, Redirects::Never, "redirects are judged one by one");
        let asked = ReceivedRequest {
            line: format!("{} {}", request.method, request.url),
            headers: request.headers.clone(),
            body: String::from_utf8(request.body.clone().unwrap_or_default()).unwrap(),
        };
        self.0.asked.lock().unwrap().push(asked.clone());
        let answer = self.0.answers.lock().unwrap().get(&asked.line).map(|answer| answer(&asked));
        let (status, body) = answer.unwrap_or_else(|| (404, "nothing".to_owned()));
        if status == 1 {
            return Err(ToolError::denied("it leads to 10.0.0.1; to allow it: --network 10.0.0.1"));
        }
        if status == 0 {
            return Err(ToolError::failed(format!("{} was not reached", request.url)));
        }
        Ok(HttpResponse {
            status,
            status_text: String::new(),
            url: request.url.clone(),
            headers: Vec::new(),
            redirect: (300..400).contains(&status).then(|| body.clone()),
            total_bytes: body.len() as u64,
            body: body.into_bytes(),
            more: false,
        })
    }
}

fn http_factory(network: &Arc<TestNetwork>) -> HttpFactory {
    let network = Arc::clone(network);
    Arc::new(move |reach, _cancel| {
        network.reaches.lock().unwrap().push(reach);
        Arc::new(NetworkClient(Arc::clone(&network)))
    })
}

fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn token(access: &str, refresh: Option<&str>) -> Value {
    json!({"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh})
}

type Query = HashMap<String, String>;
type Answers = dyn Fn(&Query) -> Vec<String> + Send + Sync;

/// A user who goes wherever he is sent, and a browser that goes back with `answers`, one after the other.
struct TestBrowser {
    opened: Mutex<Vec<Url>>,
    answers: Box<Answers>,
    pages: Arc<Mutex<VecDeque<String>>>,
}

impl TestBrowser {
    fn new(answers: impl Fn(&Query) -> Vec<String> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { opened: Mutex::default(), answers: Box::new(answers), pages: Arc::default() })
    }

    /// One who says yes.
    fn accepting() -> Arc<Self> {
        Self::new(|query| vec![format!("code=the-code&state={}&iss={ISSUER}", query["state"])])
    }

    fn opened(&self) -> Vec<Query> {
        self.opened.lock().unwrap().iter().map(|url| url.query_pairs().into_owned().collect()).collect()
    }
}

impl BrowserOpener for TestBrowser {
    fn open(&self, url: &Url) -> Result<(), ToolError> {
        self.opened.lock().unwrap().push(url.clone());
        let query: Query = url.query_pairs().into_owned().collect();
        let answers = (self.answers)(&query);
        let redirect = Url::parse(&query["redirect_uri"]).unwrap();
        let pages = Arc::clone(&self.pages);
        std::thread::spawn(move || {
            for answer in answers {
                pages.lock().unwrap().push_back(visit(&redirect, &answer));
            }
        });
        Ok(())
    }
}

/// Goes to the redirect with `query`.
fn visit(redirect: &Url, query: &str) -> String {
    let (host, port) = (redirect.host_str().unwrap(), redirect.port().unwrap());
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let path = redirect.path();
    write!(stream, "GET {path}?{query} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// A server's tokens, with all who have a say in them.
struct Fixture {
    network: Arc<TestNetwork>,
    browser: Arc<TestBrowser>,
    folder: TempDir,
    options: OAuthOptions,
}

impl Fixture {
    fn new() -> Self {
        Self::with(TestBrowser::accepting())
    }

    fn with(browser: Arc<TestBrowser>) -> Self {
        // A safety net: what should be heard is heard at once.
        let options = OAuthOptions { limit: Duration::from_mins(1), ..OAuthOptions::default() };
        Self { network: TestNetwork::new(), browser, folder: tempfile::tempdir().unwrap(), options }
    }

    /// One more that shares the folder, as another process would.
    fn authorizer(&self) -> Authorizer {
        let opener: Arc<dyn BrowserOpener> = Arc::clone(&self.browser) as _;
        Authorizer::new(
            SERVER,
            http_factory(&self.network),
            opener,
            self.folder.path().join("haft"),
            self.options.clone(),
        )
        .unwrap()
    }

    /// A first token, or why there is none.
    fn first_token(&self) -> Result<String, ClientError> {
        renew(&self.authorizer(), None, 401, &[])
    }

    /// Why there is no first token.
    fn login_error(&self) -> String {
        self.first_token().unwrap_err().message
    }

    fn forms(&self) -> Vec<Query> {
        self.network.received(&format!("POST {ISSUER}/token")).iter().map(ReceivedRequest::form).collect()
    }

    fn stored(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.folder.path().join("haft/oauth.json")).unwrap()).unwrap()
    }
}

fn challenge(message: &str) -> Vec<String> {
    vec![format!("Bearer {message}")]
}

/// Another token for one that was turned down.
fn renew(
    authorizer: &Authorizer,
    used: Option<&str>,
    status: u16,
    challenges: &[String],
) -> Result<String, ClientError> {
    authorizer.challenged(used, status, challenges, &Cancel::new())
}
