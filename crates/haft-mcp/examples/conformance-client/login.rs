//! Logging in where the suite wants it.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::client::TokenProvider;
use haft_mcp::client::oauth::{Authorizer, BrowserOpener, HttpFactory, OAuthOptions, RegisteredClient};
use haft_net::http::HttpService;
use haft_tool::{Cancel, Http, HttpRequest, Reach, Redirects, Secret, ToolError};
use serde_json::Value;
use tempfile::TempDir;
use url::Url;

use crate::Done;

/// Goes where it is sent and says yes, as the suite's authorization server does at once.
struct Browser(Arc<HttpService>);

impl BrowserOpener for Browser {
    fn open(&self, url: &Url) -> Result<(), ToolError> {
        let (web, url) = (Arc::clone(&self.0), url.to_string());
        std::thread::spawn(move || {
            let mut at = Some(url);
            while let Some(url) = at {
                eprintln!("browser: {url}");
                let request = HttpRequest { redirects: Redirects::Never, ..HttpRequest::get(url) };
                at = open(&web, &request.url).fetch(&request).ok().and_then(|response| response.redirect);
            }
        });
        Ok(())
    }
}

/// The entries that let a server on this machine through.
pub(crate) fn hosts(url: &str) -> Vec<String> {
    let port = Url::parse(url).ok().and_then(|url| url.port()).unwrap_or(80);
    vec![format!("127.0.0.1:{port}"), format!("[::1]:{port}")]
}

fn open(web: &Arc<HttpService>, url: &str) -> Arc<dyn Http> {
    let hosts = hosts(url);
    web.client_within(Reach { inner: hosts.clone(), hosts, ..Reach::default() }, Cancel::new())
}

/// Who gets tokens for the server at `url`, and where they are kept for as long as this run.
pub(crate) fn authorize(
    web: &Arc<HttpService>,
    url: &str,
    context: &Value,
) -> Done<(Arc<dyn TokenProvider>, TempDir)> {
    let within = Arc::clone(web);
    let doors: HttpFactory = Arc::new(move |reach, cancel| within.client_within(reach, cancel));
    let registered = context["client_id"].as_str().map(|id| RegisteredClient {
        id: id.to_owned(),
        secret: context["client_secret"].as_str().map(Secret::new),
        issuer: None,
        redirect: None,
    });
    let options = OAuthOptions {
        registered,
        document: Url::parse("https://conformance-test.local/client-metadata.json").ok(),
        limit: Duration::from_secs(20),
        ..OAuthOptions::default()
    };
    let folder = tempfile::tempdir()?;
    let browser = Arc::new(Browser(Arc::clone(web)));
    let authorizer = Authorizer::new(url, doors, browser, folder.path(), options)?;
    Ok((Arc::new(authorizer), folder))
}
