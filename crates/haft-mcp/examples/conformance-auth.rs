//! The official suite's authorization scenarios, one per run: `conformance-auth URL`.
#![expect(clippy::print_stderr, reason = "the suite shows what the client says")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use haft_mcp::client::Authorize as _;
use haft_mcp::client::oauth::{Authorizer, Doors, Opener, Options, Registered};
use haft_tool::{Cancel, Http, HttpRequest, HttpResponse, Reach, Redirects, Secret, ToolError, Value, json};
use haft_world::Web;
use url::Url;

/// Goes where it is sent and says yes, as the suite's authorization server does at once.
struct Browser(Arc<Web>);

impl Opener for Browser {
    fn open(&self, url: &Url) -> Result<(), ToolError> {
        let (web, url) = (Arc::clone(&self.0), url.to_string());
        std::thread::spawn(move || {
            let mut at = Some(url);
            while let Some(url) = at {
                eprintln!("browser: {url}");
                at = open(&web, &url)
                    .fetch(&HttpRequest { redirects: Redirects::Never, ..HttpRequest::get(url) })
                    .ok()
                    .and_then(|r| r.redirect);
            }
        });
        Ok(())
    }
}

fn open(web: &Arc<Web>, url: &str) -> Arc<dyn Http> {
    let port = Url::parse(url).ok().and_then(|url| url.port()).unwrap_or(80);
    let hosts = vec![format!("127.0.0.1:{port}"), format!("[::1]:{port}")];
    web.within(Reach { inner: hosts.clone(), hosts, ..Reach::default() }, Cancel::new())
}

struct Client {
    web: Arc<Web>,
    url: String,
    modern: bool,
    authorizer: Authorizer,
    next: u64,
}

impl Client {
    fn send(&mut self, method: &str, mut params: Value) -> Result<Value, String> {
        let mut headers = vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ];
        let version = if self.modern { "2026-07-28" } else { "2025-11-25" };
        headers.push(("MCP-Protocol-Version".to_owned(), version.to_owned()));
        if self.modern {
            headers.push(("Mcp-Method".to_owned(), method.to_owned()));
            if let Some(name) = params["name"].as_str() {
                headers.push(("Mcp-Name".to_owned(), name.to_owned()));
            }
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "haft", "version": "0"},
            });
        }
        let mut body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if !method.starts_with("notifications/") {
            self.next += 1;
            body["id"] = self.next.into();
        }
        let mut token = self.authorizer.token();
        let (mut unknown, mut raised) = (0, 0);
        loop {
            let response = self.post(&headers, &body, token.as_deref())?;
            let challenges: Vec<String> = response
                .headers
                .iter()
                .filter(|(name, _)| name == "www-authenticate")
                .map(|(_, v)| v.clone())
                .collect();
            match response.status {
                401 if unknown == 0 => unknown += 1,
                403 if raised < 2 => raised += 1,
                200..300 => return Ok(read(&response)),
                status => return Err(format!("{method}: {status}")),
            }
            token = Some(
                self.authorizer
                    .renew(token.as_deref(), response.status, &challenges)
                    .map_err(|e| e.message)?,
            );
        }
    }

    fn post(
        &self,
        headers: &[(String, String)],
        body: &Value,
        token: Option<&str>,
    ) -> Result<HttpResponse, String> {
        let mut headers = headers.to_vec();
        if let Some(token) = token {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        let request = HttpRequest {
            method: "POST".to_owned(),
            headers,
            body: Some(body.to_string().into_bytes()),
            timeout: Duration::from_secs(20),
            redirects: Redirects::Never,
            ..HttpRequest::get(&self.url)
        };
        open(&self.web, &self.url).fetch(&request).map_err(|error| error.message)
    }
}

fn read(response: &HttpResponse) -> Value {
    let text = String::from_utf8_lossy(&response.body).into_owned();
    let data: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let text = if data.is_empty() { text } else { data.concat() };
    serde_json::from_str(&text).unwrap_or_default()
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let url = std::env::args().next_back().ok_or("which server?")?;
    let context: Value = std::env::var("MCP_CONFORMANCE_CONTEXT")
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let modern =
        std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").is_ok_and(|version| version == "2026-07-28");
    let web = Arc::new(Web::default());
    let within = Arc::clone(&web);
    let doors: Doors = Arc::new(move |reach| within.within(reach, Cancel::new()));
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let registered = context["client_id"].as_str().map(|id| Registered {
        id: id.to_owned(),
        secret: context["client_secret"].as_str().map(Secret::new),
        issuer: None,
        redirect: None,
    });
    let options = Options {
        registered,
        document: Url::parse("https://conformance-test.local/client-metadata.json").ok(),
        limit: Duration::from_secs(20),
        ..Options::default()
    };
    let browser = Arc::new(Browser(Arc::clone(&web)));
    let authorizer =
        Authorizer::new(&url, doors, browser, folder.path(), options).map_err(|error| error.message)?;
    let mut client = Client { web, url, modern, authorizer, next: 0 };
    if modern {
        client.send("server/discover", json!({}))?;
    } else {
        client.send(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "haft", "version": "0"}}),
        )?;
        client.send("notifications/initialized", json!({}))?;
    }
    client.send("tools/list", json!({}))?;
    client.send("tools/call", json!({"name": "test-tool", "arguments": {}}))?;
    Ok(())
}
