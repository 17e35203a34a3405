//! HTTP responses that are read as they arrive.

use std::time::Duration;

use crate::{Cancel, ToolError};

/// A request whose response is read as it arrives.
#[derive(Clone)]
pub struct StreamRequest {
    /// `GET`, `POST`, ….
    pub method: &'static str,
    /// An `http://` or `https://` URL.
    pub url: String,
    /// Header names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

/// A response whose body is still arriving. Dropping it closes the connection. Redirects are not followed.
pub struct HttpStream {
    /// The status code.
    pub status: u16,
    /// Header names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Box<dyn HttpBody>,
}

impl HttpStream {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// All values of a header.
    pub fn all(&self, name: &str) -> Vec<String> {
        let found = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone()).collect()
    }
}

/// The body of a response.
pub trait HttpBody: Send {
    /// The next bytes, decompressed; `None` at the end. Waits for at most `limit` or until cancelled.
    fn next(&mut self, limit: Duration, cancel: &Cancel) -> Result<Option<Vec<u8>>, ToolError>;
}

/// Streaming requests over reused connections.
pub trait HttpStreams: Send + Sync {
    /// Sends a request and waits for the head of its response, for at most `limit` or until cancelled.
    fn open(&self, request: StreamRequest, limit: Duration, cancel: &Cancel)
    -> Result<HttpStream, ToolError>;
}
