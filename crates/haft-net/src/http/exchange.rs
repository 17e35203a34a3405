//! One request to one checked target, and as much of the response as is wanted.

use std::future::ready;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use haft_tool::{HttpResponse, ToolError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, redirect};

use super::error;
use super::proxy_env::{EnvProxy, PROXY_VARIABLES, proxy_for};
use super::reach::{HostRoute, ReachCheck};
use super::service::HttpService;
use super::target::HttpTarget;

/// How much of a response is read to learn its size, when less is kept.
const MAX_READ_BYTES: u64 = 64 << 20;
/// How long one address of a name may take before the next one is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const USER_AGENT: &str = concat!("haft/", env!("CARGO_PKG_VERSION"));
/// Headers that this client sets itself, or that apply to one connection only.
const RESERVED_HEADERS: [&str; 9] = [
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

/// A request ready to be sent.
pub(super) struct CheckedRequest {
    pub(super) method: Method,
    pub(super) target: HttpTarget,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

/// A response whose body has not been read.
pub(super) struct IncomingResponse {
    response: reqwest::Response,
    proxy: Option<String>,
}

/// A client that connects to checked addresses only.
#[derive(Clone)]
pub(super) struct PinnedClient {
    client: Client,
    /// The proxy in between, for error messages.
    pub(super) proxy: Option<String>,
}

pub(super) fn method(name: &str) -> Result<Method, ToolError> {
    match Method::from_bytes(name.as_bytes()) {
        Ok(method @ (Method::CONNECT | Method::TRACE)) => Err(ToolError::invalid_arguments(format!(
            "the method {method} is not supported; use GET or POST"
        ))),
        Ok(method) => Ok(method),
        Err(_) => Err(ToolError::invalid_arguments(format!("{name:?} is not an HTTP method"))),
    }
}

pub(super) fn request_headers(given: &[(String, String)]) -> Result<HeaderMap, ToolError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    let mut own = HeaderMap::new();
    for (name, value) in given {
        let invalid =
            |why: &str| ToolError::invalid_arguments(format!("the header {name:?} cannot be sent: {why}"));
        let key = HeaderName::try_from(name.as_str()).map_err(|_| invalid("the name is invalid"))?;
        let value = HeaderValue::try_from(value.as_str()).map_err(|_| invalid("the value is invalid"))?;
        if RESERVED_HEADERS.contains(&key.as_str()) {
            return Err(invalid("Haft sets it itself"));
        }
        // Set by the client, which decompresses the response.
        if key != ACCEPT_ENCODING {
            own.append(key, value);
        }
    }
    headers.extend(own);
    Ok(headers)
}

pub(super) fn response_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// Sends the request if `check` allows it. The connection is not reused: another call would need another check.
pub(super) async fn send(
    service: &HttpService,
    check: &ReachCheck,
    request: &CheckedRequest,
) -> Result<IncomingResponse, ToolError> {
    let client = PinnedClient::connect(service, check, &request.target, 0).await?;
    let response = client.send(request).await?;
    Ok(IncomingResponse { response, proxy: client.proxy })
}

impl PinnedClient {
    /// A client for `target`, if `check` allows it, that keeps at most `idle_connections` for later requests.
    pub(super) async fn connect(
        service: &HttpService,
        check: &ReachCheck,
        target: &HttpTarget,
        idle_connections: usize,
    ) -> Result<Self, ToolError> {
        let route = check.check(target)?;
        let env_proxy = proxy_for(service.proxies(), target)?;
        let proxy = env_proxy.as_ref().map(|proxy| format!("{}:{}", proxy.host, proxy.port));
        let resolver = match (&env_proxy, route) {
            (Some(EnvProxy { host, port, .. }), _) => {
                let addresses = resolve(service, host).await.map_err(|error| {
                    ToolError::failed(format!(
                        "the proxy {host}:{port} was not found: {error}; check {PROXY_VARIABLES}"
                    ))
                })?;
                PinnedResolver::new(host.clone(), addresses, *port)
            }
            (None, HostRoute::Addresses(addresses)) => {
                PinnedResolver::new(target.peer.to_string(), addresses, target.port)
            }
            (None, HostRoute::Name(name)) => {
                let addresses = resolve(service, &name)
                    .await
                    .map_err(|error| error::name_not_found(&target.authority(), &error))?;
                let allowed = check.allowed_addresses(target, addresses)?;
                PinnedResolver::new(name, allowed, target.port)
            }
        };
        let mut builder = Client::builder()
            .user_agent(USER_AGENT)
            .redirect(redirect::Policy::none())
            .referer(false)
            .pool_max_idle_per_host(idle_connections)
            .connect_timeout(CONNECT_TIMEOUT)
            .dns_resolver(Arc::new(resolver))
            .tls_backend_preconfigured(service.tls()?)
            .no_proxy();
        if let Some(env_proxy) = env_proxy {
            builder = builder.proxy(env_proxy.proxy);
        }
        let client = builder.build();
        let client = client.map_err(|error| error::request_failed(&error, &target.authority(), None))?;
        Ok(Self { client, proxy })
    }

    pub(super) async fn send(&self, request: &CheckedRequest) -> Result<reqwest::Response, ToolError> {
        let CheckedRequest { method, target, headers, body } = request;
        let mut builder = self.client.request(method.clone(), target.url.clone()).headers(headers.clone());
        if let Some(body) = body {
            builder = builder.body(body.clone());
        }
        let sent = builder.send().await;
        sent.map_err(|error| error::request_failed(&error, &target.authority(), self.proxy.as_deref()))
    }
}

impl IncomingResponse {
    /// The target of a redirect.
    pub(super) fn location(&self) -> Option<String> {
        let is_redirect = matches!(self.status(), 301 | 302 | 303 | 307 | 308);
        let location = self.response.headers().get(LOCATION).filter(|_| is_redirect)?;
        Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
    }

    pub(super) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Reads the body: keeps the first `keep_bytes`, and counts up to [`MAX_READ_BYTES`].
    pub(super) async fn read(
        mut self,
        target: &HttpTarget,
        keep_bytes: usize,
    ) -> Result<HttpResponse, ToolError> {
        let status = self.response.status();
        let headers = response_headers(self.response.headers());
        let max_bytes = MAX_READ_BYTES.max(keep_bytes as u64);
        let (mut body, mut total_bytes, mut more) = (Vec::new(), 0_u64, false);
        let failed = |error| error::request_failed(&error, &target.authority(), self.proxy.as_deref());
        while let Some(chunk) = self.response.chunk().await.map_err(failed)? {
            if total_bytes >= max_bytes {
                more = true;
                break;
            }
            total_bytes += chunk.len() as u64;
            let kept = keep_bytes.saturating_sub(body.len()).min(chunk.len());
            body.extend_from_slice(&chunk[..kept]);
        }
        Ok(HttpResponse {
            status: status.as_u16(),
            status_text: status.canonical_reason().unwrap_or_default().to_owned(),
            url: target.url.to_string(),
            headers,
            body,
            total_bytes,
            more,
            redirect: None,
        })
    }
}

async fn resolve(service: &HttpService, name: &str) -> io::Result<Vec<IpAddr>> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    let (lookup, name) = (Arc::clone(&service.lookup), name.to_owned());
    let found = tokio::task::spawn_blocking(move || lookup(&name)).await.map_err(io::Error::other)??;
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
    }
    Ok(found)
}

/// Resolves one name, to addresses that were checked.
struct PinnedResolver {
    name: String,
    addresses: Vec<SocketAddr>,
}

impl PinnedResolver {
    fn new(name: String, addresses: Vec<IpAddr>, port: u16) -> Self {
        let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect();
        Self { name, addresses }
    }
}

impl Resolve for PinnedResolver {
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
