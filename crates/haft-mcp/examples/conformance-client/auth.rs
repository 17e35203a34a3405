//! Tokens for the suite's servers: its authorization servers agree at once, so the browser is a loop.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::client::oauth::{Authorizer, Doors, Opener, Options, Registered};
use haft_mcp::client::{Authorize, ClientError};
use haft_tool::{Cancel, HttpRequest, Reach, Redirects, Secret, ToolError, Value};
use haft_world::Web;
use url::Url;

/// The document that the suite knows; nobody fetches it.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Who gets the tokens for `url`, with what the suite says of the scenario. They are kept in `folder`.
pub(crate) fn authorize(
    web: &Arc<Web>,
    url: &str,
    context: &Value,
    folder: &std::path::Path,
) -> Result<Arc<dyn Authorize>, ClientError> {
    let ours = Arc::clone(web);
    let doors: Doors = Arc::new(move |reach, cancel| ours.within(reach, cancel));
    let registered = context["client_id"].as_str().map(|id| Registered {
        id: id.to_owned(),
        secret: context["client_secret"].as_str().map(Secret::new),
        issuer: None,
        redirect: None,
    });
    let options = Options {
        registered,
        document: Url::parse(DOCUMENT).ok(),
        limit: Duration::from_secs(20),
        ..Options::default()
    };
    let browser = Arc::new(Browser(Arc::clone(web)));
    Ok(Arc::new(Authorizer::new(url, doors, browser, folder, options)?))
}

/// Goes where it is sent, and on from there.
struct Browser(Arc<Web>);

impl Opener for Browser {
    fn open(&self, url: &Url) -> Result<(), ToolError> {
        let (web, mut next) = (Arc::clone(&self.0), Some(url.to_string()));
        std::thread::spawn(move || {
            while let Some(url) = next {
                let port = Url::parse(&url).ok().and_then(|url| url.port()).unwrap_or(80);
                let hosts = vec![format!("127.0.0.1:{port}"), format!("[::1]:{port}")];
                let door = web.within(Reach { hosts, ..Reach::default() }, Cancel::new());
                let page = door.fetch(&HttpRequest { redirects: Redirects::Never, ..HttpRequest::get(url) });
                next = page.ok().and_then(|page| page.redirect);
            }
        });
        Ok(())
    }
}
