//! HTTP as a tool sees it: one request, one bounded answer.

use std::time::Duration;

use crate::ToolError;

/// What to do when a server sends the caller elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Redirects {
    /// Go there, if the scope lets the call reach it.
    #[default]
    Follow,
    /// Go there if it is the same host; else give back where it would lead.
    SameHost,
    /// Give back where it would lead.
    Never,
}

/// One request.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// `GET`, `POST`, ….
    pub method: String,
    /// An `http://` or `https://` address.
    pub url: String,
    /// Header names and values.
    pub headers: Vec<(String, String)>,
    /// What to send.
    pub body: Option<Vec<u8>>,
    /// How long all of it may take, redirects included.
    pub timeout: Duration,
    /// How many bytes of the decoded body are kept; what follows is counted as far as the door reads on, and dropped.
    pub keep_bytes: usize,
    /// What to do when the server sends the caller elsewhere.
    pub redirects: Redirects,
    /// Whether an answer to the same request of the last 15 minutes will do.
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
            timeout: Duration::from_secs(30),
            keep_bytes: 5 << 20,
            redirects: Redirects::Follow,
            cached: false,
        }
    }
}

/// What a server answered. Any status is an answer; that no answer came is an error.
#[derive(Debug, Clone)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// Its words, for example `Not Found`.
    pub status_text: String,
    /// The address that answered, after redirects.
    pub url: String,
    /// Header names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, decompressed, as far as it was kept.
    pub body: Vec<u8>,
    /// How many decompressed bytes were read in all.
    pub total_bytes: u64,
    /// Whether the body was longer than what was read.
    pub more: bool,
    /// Where the server would have the caller go, if that was not followed.
    pub redirect: Option<String>,
}

impl HttpResponse {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// The network inside the scope. No address is reached that the scope does not allow, whatever names, redirects and
/// second DNS answers say.
pub trait Http: Send + Sync {
    /// Sends a request and reads the answer. Blocks; ends early when the call is cancelled.
    fn fetch(&self, request: &HttpRequest) -> Result<HttpResponse, ToolError>;
}

/// A World without a network.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHttp;

impl Http for NoHttp {
    fn fetch(&self, _request: &HttpRequest) -> Result<HttpResponse, ToolError> {
        Err(ToolError::denied("this call may not reach the network"))
    }
}
