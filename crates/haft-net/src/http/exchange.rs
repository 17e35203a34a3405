//! One request to one checked address, and as much of the answer as is wanted.

use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use haft_tool::{HttpResponse, ToolError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, redirect};

use super::address::Address;
use super::failure;
use super::limits::{Limits, Way};
use super::proxies::{Via, via};
use super::web::Web;

/// How much of an answer is read when less is kept: its true size is worth something, but not everything.
const MOST_READ: u64 = 64 << 20;
/// How long one address of a name may stay silent before the next one is tried.
const CONNECT: Duration = Duration::from_secs(10);
const NAME: &str = concat!("haft/", env!("CARGO_PKG_VERSION"));
/// The door's own business, or what stands between two neighbours only.
const NOT_YOURS: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "te",
    "trailer",
    "proxy-authorization",
    "proxy-connection",
];

/// One request on its way.
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) address: Address,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

/// An answer of which the body is still to be read.
pub(super) struct Answer {
    response: reqwest::Response,
    proxy: Option<String>,
}

/// The headers of a request.
pub(super) fn headers(given: &[(String, String)]) -> Result<HeaderMap, ToolError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    let mut fresh = HeaderMap::new();
    for (name, value) in given {
        let wrong =
            |why: &str| ToolError::invalid_arguments(format!("the header {name:?} cannot be sent: {why}"));
        let key = HeaderName::try_from(name.as_str()).map_err(|_| wrong("it is no header's name"))?;
        let value = HeaderValue::try_from(value.as_str())
            .map_err(|_| wrong("its value has characters that headers have not"))?;
        if NOT_YOURS.contains(&key.as_str()) {
            return Err(wrong("Haft sets it itself"));
        }
        // Answers are decompressed here, so what this machine can decompress is said here.
        if key != reqwest::header::ACCEPT_ENCODING {
            fresh.append(key, value);
        }
    }
    headers.extend(fresh);
    Ok(headers)
}

/// A client, and the proxy that is on its way.
#[derive(Clone)]
pub(super) struct Reached {
    pub(super) client: Client,
    pub(super) proxy: Option<String>,
}

/// Sends the request, if `limits` let it. Its connection is not kept for later requests, whose addresses would have been
/// checked for another call.
pub(super) async fn send(web: &Web, limits: &Limits, ask: &Ask) -> Result<Answer, ToolError> {
    let reached = reach(web, limits, &ask.address, 0).await?;
    let response = ask.send(&reached).await?;
    Ok(Answer { response, proxy: reached.proxy })
}

impl Ask {
    pub(super) async fn send(&self, reached: &Reached) -> Result<reqwest::Response, ToolError> {
        let Self { method, address, headers, body } = self;
        let mut request =
            reached.client.request(method.clone(), address.url.clone()).headers(headers.clone());
        if let Some(body) = body {
            request = request.body(body.clone());
        }
        let sent = request.send().await;
        sent.map_err(|error| failure::of(&error, &address.place(), reached.proxy.as_deref()))
    }
}

/// A client for this address, if `limits` let anybody reach it, that keeps as many connections as that.
pub(super) async fn reach(
    web: &Web,
    limits: &Limits,
    address: &Address,
    keep: usize,
) -> Result<Reached, ToolError> {
    let way = limits.judge(address)?;
    let via = via(web.proxies(), address)?;
    let proxy = via.as_ref().map(|via| format!("{}:{}", via.host, via.port));
    let pinned = match (&via, way) {
        (Some(Via { host, port, .. }), _) => {
            let found = look_up(web, host).await;
            let found = found.map_err(|error| {
                ToolError::failed(format!(
                    "the proxy {host}:{port} was not found: {error}; look at HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
                ))
            })?;
            Pinned { name: host.clone(), addresses: at(*port, found) }
        }
        (None, Way::Addresses(addresses)) => {
            Pinned { name: address.peer.to_string(), addresses: at(address.port, addresses) }
        }
        (None, Way::Name(name)) => {
            let none = || io::Error::new(io::ErrorKind::NotFound, "it has no address");
            let found = look_up(web, &name)
                .await
                .and_then(|found| if found.is_empty() { Err(none()) } else { Ok(found) });
            let found = found.map_err(|error| failure::not_found(&address.place(), &error))?;
            Pinned { name, addresses: at(address.port, limits.sift(address, found)?) }
        }
    };
    let client = client(web, address, pinned, via, keep)?;
    Ok(Reached { client, proxy })
}

impl Answer {
    /// Where the server sends the caller.
    pub(super) fn location(&self) -> Option<String> {
        let moved = matches!(self.response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        let location = self.response.headers().get(LOCATION).filter(|_| moved)?;
        Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
    }

    pub(super) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Reads the body, bounded in what is kept and in what is read at all.
    pub(super) async fn read(mut self, address: &Address, keep: usize) -> Result<HttpResponse, ToolError> {
        let status = self.response.status();
        let headers = pairs(self.response.headers());
        let most = MOST_READ.max(keep as u64);
        let (mut body, mut total_bytes, mut more) = (Vec::new(), 0_u64, false);
        loop {
            let chunk = self.response.chunk().await;
            let chunk =
                chunk.map_err(|error| failure::of(&error, &address.place(), self.proxy.as_deref()))?;
            let Some(chunk) = chunk else { break };
            if total_bytes >= most {
                more = true;
                break;
            }
            total_bytes += chunk.len() as u64;
            let room = keep.saturating_sub(body.len()).min(chunk.len());
            body.extend_from_slice(&chunk[..room]);
        }
        Ok(HttpResponse {
            status: status.as_u16(),
            status_text: status.canonical_reason().unwrap_or_default().to_owned(),
            url: address.url.to_string(),
            headers,
            body,
            total_bytes,
            more,
            redirect: None,
        })
    }
}

/// The headers of an answer.
pub(super) fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// A client that knows the addresses that were checked and no others.
fn client(
    web: &Web,
    address: &Address,
    pinned: Pinned,
    via: Option<Via>,
    keep: usize,
) -> Result<Client, ToolError> {
    let mut builder = Client::builder()
        .user_agent(NAME)
        .redirect(redirect::Policy::none())
        .referer(false)
        .pool_max_idle_per_host(keep)
        .connect_timeout(CONNECT)
        .dns_resolver(Arc::new(pinned))
        .tls_backend_preconfigured(web.tls()?)
        .no_proxy();
    if let Some(via) = via {
        builder = builder.proxy(via.proxy);
    }
    builder.build().map_err(|error| failure::of(&error, &address.place(), None))
}

async fn look_up(web: &Web, name: &str) -> io::Result<Vec<std::net::IpAddr>> {
    if let Ok(literal) = name.parse() {
        return Ok(vec![literal]);
    }
    let (lookup, name) = (Arc::clone(&web.lookup), name.to_owned());
    tokio::task::spawn_blocking(move || lookup(&name))
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn at(port: u16, addresses: Vec<std::net::IpAddr>) -> Vec<SocketAddr> {
    addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect()
}

/// The one name that may be looked up, and what was found.
struct Pinned {
    name: String,
    addresses: Vec<SocketAddr>,
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        let known = name.as_str().trim_end_matches('.').eq_ignore_ascii_case(&self.name);
        let addresses = self.addresses.clone();
        Box::pin(ready(if known {
            Ok(Box::new(addresses.into_iter()) as Addrs)
        } else {
            Err(format!("the name {} was not checked", name.as_str()).into())
        }))
    }
}
