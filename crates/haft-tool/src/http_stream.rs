//! HTTP read as it comes: for servers that talk as long as they have something to say.

use std::time::Duration;

use crate::{Cancel, ToolError};

/// One request whose answer is read as it comes.
#[derive(Clone)]
pub struct StreamRequest {
    /// `GET`, `POST`, ….
    pub method: &'static str,
    /// An `http://` or `https://` address.
    pub url: String,
    /// Header names and values.
    pub headers: Vec<(String, String)>,
    /// What to send.
    pub body: Option<Vec<u8>>,
}

/// An answer of which the body is still coming. Dropping it closes the connection. Any status is an answer, redirects
/// included: nobody follows them here.
pub struct HttpStream {
    /// The status code.
    pub status: u16,
    /// Header names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// What follows.
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

/// The body of an answer.
pub trait HttpBody: Send {
    /// The next bytes, decompressed; none when there are no more. Waits for at most `limit`, and not when cancelled.
    fn next(&mut self, limit: Duration, cancel: &Cancel) -> Result<Option<Vec<u8>>, ToolError>;
}

/// A way to a server that keeps its connections.
pub trait HttpStreams: Send + Sync {
    /// Sends a request and waits for the head of its answer, for at most `limit`, and not when cancelled.
    fn open(&self, request: StreamRequest, limit: Duration, cancel: &Cancel)
    -> Result<HttpStream, ToolError>;
}
