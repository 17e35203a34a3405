//! Recording what a provider is sent and answers, and playing it again. Headers of requests, which hold the key, are not kept, and the
//! key is covered wherever a provider repeats it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_files::{read_named, write_private};
use haft_model::{Endpoint, Wire};
use haft_tool::{
    Cancel, ErrorKind, HttpBody, HttpStream, HttpStreams, StreamRequest, ToolError, Value, lock,
};
use serde::{Deserialize, Serialize};

/// The version of the format.
const RECORDING_VERSION: u32 = 1;
/// Headers of responses that matter for what is done with them.
const KEPT_HEADERS: [&str; 4] = ["content-type", "retry-after", "request-id", "x-request-id"];
/// Headers of requests that hold keys.
const KEY_HEADERS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];
/// A shorter value is no key, and would be found everywhere.
const MIN_KEY_CHARS: usize = 6;

/// The first line of a recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordingHead {
    version: u32,
    pub(super) provider: String,
    pub(super) wire: Wire,
    pub(super) base_url: String,
    pub(super) model: String,
}

/// One request and its response.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Exchange {
    method: String,
    url: String,
    request: Value,
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    /// Whether the body broke off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    broken: bool,
}

/// A recording that was read.
pub(super) struct ModelRecording {
    pub(super) head: RecordingHead,
    pub(super) exchanges: Vec<Exchange>,
}

impl ModelRecording {
    pub(super) fn read(path: &Path, max_bytes: u64) -> Result<Self, ToolError> {
        let text = String::from_utf8_lossy(&read_named(path, max_bytes)?).into_owned();
        let bad = |line: usize, error: &serde_json::Error| {
            ToolError::invalid_arguments(format!(
                "{}:{line}: this is not a recording of haft: {error}",
                path.display()
            ))
        };
        let mut lines = (1..).zip(text.lines());
        let (_, first) = lines.next().unwrap_or((1, ""));
        let head = serde_json::from_str(first).map_err(|error| bad(1, &error))?;
        let exchange =
            |(line, text): (usize, &str)| serde_json::from_str(text).map_err(|error| bad(line, &error));
        Ok(Self { head, exchanges: lines.map(exchange).collect::<Result<_, _>>()? })
    }
}

/// Passes requests on and writes them down with their responses.
pub(super) struct RecordingStreams {
    inner: Arc<dyn HttpStreams>,
    file: Arc<RecordingFile>,
}

struct RecordingFile {
    path: PathBuf,
    text: Mutex<String>,
}

impl RecordingStreams {
    pub(super) fn create(
        path: &Path,
        inner: Arc<dyn HttpStreams>,
        endpoint: &Endpoint,
        model: &str,
    ) -> Result<Self, ToolError> {
        let head = RecordingHead {
            version: RECORDING_VERSION,
            provider: endpoint.provider.name.to_owned(),
            wire: endpoint.wire,
            base_url: endpoint.display_url(),
            model: model.to_owned(),
        };
        let file = RecordingFile { path: path.to_owned(), text: Mutex::default() };
        // A file that cannot be written is noticed before anything is asked.
        file.add(&serde_json::to_string(&head)?)?;
        Ok(Self { inner, file: Arc::new(file) })
    }
}

impl RecordingFile {
    fn add(&self, line: &str) -> Result<(), ToolError> {
        let mut text = lock(&self.text);
        text.push_str(line);
        text.push('\n');
        write_private(&self.path, text.as_bytes())
    }
}

impl HttpStreams for RecordingStreams {
    fn open(
        &self,
        request: StreamRequest,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<HttpStream, ToolError> {
        let is_key = |name: &str| KEY_HEADERS.iter().any(|known| known.eq_ignore_ascii_case(name));
        let keys = request.headers.iter().filter(|(name, _)| is_key(name));
        let keys: Vec<String> = keys
            .map(|(_, value)| value.trim_start_matches("Bearer ").to_owned())
            .filter(|key| key.chars().count() >= MIN_KEY_CHARS)
            .collect();
        let body = request.body.as_deref().unwrap_or_default();
        let (method, url) = (request.method.to_owned(), request.url.clone());
        let sent = serde_json::from_slice(body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
        let response = self.inner.open(request, limit, cancel)?;
        let kept = |name: &str| KEPT_HEADERS.iter().any(|known| known.eq_ignore_ascii_case(name));
        let exchange = Exchange {
            method,
            url,
            request: sent,
            status: response.status,
            headers: response.headers.iter().filter(|(name, _)| kept(name)).cloned().collect(),
            body: String::new(),
            broken: true,
        };
        let body = RecordedBody {
            inner: response.body,
            received: Vec::new(),
            exchange,
            keys,
            file: Arc::clone(&self.file),
        };
        Ok(HttpStream { body: Box::new(body), ..response })
    }
}

/// A body that is written down when it has ended or is dropped.
struct RecordedBody {
    inner: Box<dyn HttpBody>,
    received: Vec<u8>,
    exchange: Exchange,
    keys: Vec<String>,
    file: Arc<RecordingFile>,
}

impl HttpBody for RecordedBody {
    fn next(&mut self, limit: Duration, cancel: &Cancel) -> Result<Option<Vec<u8>>, ToolError> {
        let read = self.inner.next(limit, cancel)?;
        match &read {
            Some(bytes) => self.received.extend_from_slice(bytes),
            None => self.exchange.broken = false,
        }
        Ok(read)
    }
}

impl Drop for RecordedBody {
    fn drop(&mut self) {
        self.exchange.body = String::from_utf8_lossy(&self.received).into_owned();
        let Ok(line) = serde_json::to_string(&self.exchange) else { return };
        let line = self.keys.iter().fold(line, |line, key| line.replace(key, "***"));
        if let Err(error) = self.file.add(&line) {
            tracing::warn!(%error, "the recording could not be written");
        }
    }
}

/// Answers from a recording, in its order.
pub(super) struct ReplayStreams {
    exchanges: Mutex<VecDeque<Exchange>>,
}

impl ReplayStreams {
    pub(super) fn new(exchanges: Vec<Exchange>) -> Self {
        Self { exchanges: Mutex::new(exchanges.into()) }
    }
}

impl HttpStreams for ReplayStreams {
    fn open(&self, _request: StreamRequest, _: Duration, _: &Cancel) -> Result<HttpStream, ToolError> {
        let exchange = lock(&self.exchanges).pop_front().ok_or_else(|| {
            ToolError::invalid_arguments("the recording has no more answers, and the model was asked again")
        })?;
        let Exchange { status, headers, body, broken, .. } = exchange;
        let body = Box::new(ReplayedBody { bytes: Some(body.into_bytes()), broken });
        Ok(HttpStream { status, headers, body })
    }
}

struct ReplayedBody {
    bytes: Option<Vec<u8>>,
    broken: bool,
}

impl HttpBody for ReplayedBody {
    fn next(&mut self, _: Duration, _: &Cancel) -> Result<Option<Vec<u8>>, ToolError> {
        match self.bytes.take() {
            None if self.broken => Err(ToolError::new(ErrorKind::Io, "the recorded answer broke off here")),
            bytes => Ok(bytes),
        }
    }
}
