//! Getting tokens from authorization servers that behave and from those that do not.
#![expect(
    clippy::disallowed_methods,
    reason = "the browser and the authorization server of these tests use sockets"
)]

mod asking;
mod finding;
mod keeping;
mod renewing;
mod sockets;

use std::collections::{HashMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_tool::{Cancel, Http, HttpRequest, HttpResponse, Reach, Redirects, ToolError, Value, json};
use tempfile::TempDir;
use url::Url;

use super::{Authorizer, BrowserOpener, HttpFactory, OAuthOptions};
use crate::client::{ClientError, TokenProvider as _};

const SERVER: &str = "https://mcp.example.com/mcp";
const ISSUER: &str = "https://auth.example.org";

/// One request as an authorization server saw it.
#[derive(Debug, Clone)]
struct Asked {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Asked {
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

type Answer = Box<dyn Fn(&Asked) -> (u16, String) + Send>;

/// Every host that can be asked, and what each was asked.
#[derive(Default)]
struct Town {
    answers: Mutex<HashMap<String, Answer>>,
    asked: Mutex<Vec<Asked>>,
    reaches: Mutex<Vec<Reach>>,
}

impl Town {
    /// A server and its authorization server, both as they should be.
    fn new() -> Arc<Self> {
        let town = Arc::new(Self::default());
        town.says(
            "GET https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
            json!({"resource": SERVER, "authorization_servers": [ISSUER]}),
        );
        town.settle(ISSUER);
        town
    }

    /// An authorization server with that name: its tokens are `token-1`, `token-2`, … and so are the ones to renew them.
    fn settle(&self, issuer: &str) {
        self.says(&format!("GET {issuer}/.well-known/oauth-authorization-server"), metadata(issuer));
        self.says(&format!("POST {issuer}/register"), json!({"client_id": format!("client-of-{issuer}")}));
        let count = Mutex::new(0);
        self.answers(&format!("POST {issuer}/token"), move |_| {
            let mut count = count.lock().unwrap();
            *count += 1;
            (200, token(&format!("token-{count}"), Some(&format!("refresh-{count}"))).to_string())
        });
    }

    fn answers(&self, line: &str, answer: impl Fn(&Asked) -> (u16, String) + Send + 'static) {
        self.answers.lock().unwrap().insert(line.to_owned(), Box::new(answer));
    }

    fn says(&self, line: &str, document: Value) {
        self.answers(line, move |_| (200, document.to_string()));
    }

    fn fails(&self, line: &str, status: u16, document: Value) {
        self.answers(line, move |_| (status, document.to_string()));
    }

    /// What was asked at places whose line begins so.
    fn asked(&self, line: &str) -> Vec<Asked> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.line.starts_with(line)).cloned().collect()
    }

    fn lines(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|asked| asked.line.clone()).collect()
    }
}

struct Door(Arc<Town>);

impl Http for Door {
    fn fetch(&self, request: &HttpRequest) -> Result<HttpResponse, ToolError> {
        assert_eq!(request.redirects, Redirects::Never, "redirects are judged one by one");
        let asked = Asked {
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

fn doors(town: &Arc<Town>) -> HttpFactory {
    let town = Arc::clone(town);
    Arc::new(move |reach, _cancel| {
        town.reaches.lock().unwrap().push(reach);
        Arc::new(Door(Arc::clone(&town)))
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
struct Browser {
    opened: Mutex<Vec<Url>>,
    answers: Box<Answers>,
    pages: Arc<Mutex<VecDeque<String>>>,
}

impl Browser {
    fn new(answers: impl Fn(&Query) -> Vec<String> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { opened: Mutex::default(), answers: Box::new(answers), pages: Arc::default() })
    }

    /// One who says yes.
    fn willing() -> Arc<Self> {
        Self::new(|query| vec![format!("code=the-code&state={}&iss={ISSUER}", query["state"])])
    }

    fn opened(&self) -> Vec<Query> {
        self.opened.lock().unwrap().iter().map(|url| url.query_pairs().into_owned().collect()).collect()
    }
}

impl BrowserOpener for Browser {
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
struct Scene {
    town: Arc<Town>,
    browser: Arc<Browser>,
    folder: TempDir,
    options: OAuthOptions,
}

impl Scene {
    fn new() -> Self {
        Self::with(Browser::willing())
    }

    fn with(browser: Arc<Browser>) -> Self {
        // A safety net: what should be heard is heard at once.
        let options = OAuthOptions { limit: Duration::from_mins(1), ..OAuthOptions::default() };
        Self { town: Town::new(), browser, folder: tempfile::tempdir().unwrap(), options }
    }

    /// One more that shares the folder, as another process would.
    fn authorizer(&self) -> Authorizer {
        let opener: Arc<dyn BrowserOpener> = Arc::clone(&self.browser) as _;
        Authorizer::new(
            SERVER,
            doors(&self.town),
            opener,
            self.folder.path().join("haft"),
            self.options.clone(),
        )
        .unwrap()
    }

    /// A first token, or why there is none.
    fn first(&self) -> Result<String, ClientError> {
        renew(&self.authorizer(), None, 401, &[])
    }

    /// Why there is no first token.
    fn refusal(&self) -> String {
        self.first().unwrap_err().message
    }

    fn forms(&self) -> Vec<Query> {
        self.town.asked(&format!("POST {ISSUER}/token")).iter().map(Asked::form).collect()
    }

    fn stored(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.folder.path().join("haft/oauth.json")).unwrap()).unwrap()
    }
}

fn challenge(words: &str) -> Vec<String> {
    vec![format!("Bearer {words}")]
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
