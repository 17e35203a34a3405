//! HTTP as a tool sees it: one request, one bounded response.

use std::time::Duration;

use crate::ToolError;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_KEEP_BYTES: usize = 5 << 20;

/// What to do with a redirect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Redirects {
    /// Follow it if the scope allows the call to reach its target.
    #[default]
    Follow,
    /// Follow it to the same host; otherwise return its target.
    SameHost,
    /// Return its target.
    Never,
}

/// One request.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// `GET`, `POST`, ….
    pub method: String,
    /// An `http://` or `https://` URL.
    pub url: String,
    /// Header names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// The time limit, redirects included.
    pub timeout: Duration,
    /// How many bytes of the decoded body are kept. Further bytes are counted, up to a limit, and dropped.
    pub keep_bytes: usize,
    /// What to do with redirects.
    pub redirects: Redirects,
    /// Whether a response of the last 15 minutes to the same request may be returned.
    pub cached: bool,
}

impl HttpRequest {
    /// A plain `GET` with 30 seconds and 5 MiB.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: "GET".to_owned(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
            timeout: DEFAULT_TIMEOUT,
            keep_bytes: DEFAULT_KEEP_BYTES,
            redirects: Redirects::Follow,
            cached: false,
        }
    }
}

/// A response, whatever its status. Without a response, a request fails with an error.
#[derive(Debug, Clone)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// The text of the status, for example `Not Found`.
    pub status_text: String,
    /// The URL that responded, after redirects.
    pub url: String,
    /// Header names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The kept part of the decompressed body.
    pub body: Vec<u8>,
    /// The number of decompressed bytes that were read.
    pub total_bytes: u64,
    /// Whether the body was longer than what was read of it.
    pub more: bool,
    /// The target of a redirect that was not followed.
    pub redirect: Option<String>,
}

impl HttpResponse {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// The network inside the scope. Neither names, redirects nor later DNS answers lead to an address that the scope does not
/// allow.
pub trait Http: Send + Sync {
    /// Sends a request and reads the response. Blocks; ends early when the call is cancelled.
    fn fetch(&self, request: &HttpRequest) -> Result<HttpResponse, ToolError>;
}

/// A World without a network.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHttp;

impl Http for NoHttp {
    fn fetch(&self, _request: &HttpRequest) -> Result<HttpResponse, ToolError> {
        Err(ToolError::denied("This call cannot use the network, because there is no HTTP here"))
    }
}
