//! Reads request bodies within limits of size, time and memory.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::ConnectionLimits;

/// Bodies up to this size need no permit.
const MAX_SMALL_BODY_BYTES: usize = 64 << 10;
/// Larger bodies that are held at once.
const MAX_LARGE_BODIES: usize = 8;

/// Reads bodies; few large ones at once.
pub struct BodyReader {
    large_bodies: Arc<Semaphore>,
}

/// A complete body.
pub struct RequestBody {
    /// Its bytes.
    pub bytes: Vec<u8>,
    permit: Option<OwnedSemaphorePermit>,
}

impl RequestBody {
    /// Whether it is so large that parsing it takes time.
    pub fn is_large(&self) -> bool {
        self.permit.is_some()
    }
}

/// Why a body could not be read. The rest of it is not read, so the connection has to be closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyError {
    /// The HTTP status.
    pub status: u16,
    /// What happened.
    pub message: String,
}

impl BodyError {
    fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl Default for BodyReader {
    fn default() -> Self {
        Self { large_bodies: Arc::new(Semaphore::new(MAX_LARGE_BODIES)) }
    }
}

impl BodyReader {
    /// Reads a body to its end.
    pub async fn read(&self, body: Incoming, limits: &ConnectionLimits) -> Result<RequestBody, BodyError> {
        let max_bytes = limits.max_body_bytes;
        if body.size_hint().lower() > max_bytes as u64 {
            return Err(too_large(max_bytes));
        }
        timeout(limits.body_timeout, self.collect(body, max_bytes)).await.unwrap_or_else(|_| {
            let why = format!("The body did not arrive within {} s", limits.body_timeout.as_secs_f32());
            Err(BodyError::new(408, why))
        })
    }

    async fn collect(&self, mut body: Incoming, max_bytes: usize) -> Result<RequestBody, BodyError> {
        let mut collected = RequestBody { bytes: Vec::new(), permit: None };
        while let Some(frame) = body.frame().await {
            let broken = |error| BodyError::new(400, format!("The body is incomplete: {error}"));
            let Ok(chunk) = frame.map_err(broken)?.into_data() else { continue };
            let size = collected.bytes.len() + chunk.len();
            if size > max_bytes {
                return Err(too_large(max_bytes));
            }
            if size > MAX_SMALL_BODY_BYTES && collected.permit.is_none() {
                let permit = Arc::clone(&self.large_bodies).acquire_owned().await;
                collected.permit = Some(permit.map_err(|_| BodyError::new(503, "The server is stopping"))?);
            }
            collected.bytes.extend_from_slice(&chunk);
        }
        Ok(collected)
    }
}

fn too_large(max_bytes: usize) -> BodyError {
    BodyError::new(413, format!("The body has more than {max_bytes} bytes"))
}
