//! Reads request bodies within limits of size, time and memory.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::HttpServerLimits;
use super::response::Rejection;

/// Bodies up to this size need no permit.
const MAX_SMALL_BODY_BYTES: usize = 1 << 20;
/// Larger bodies that are held at once.
const MAX_LARGE_BODIES: usize = 4;

/// Reads bodies; few large ones at once.
pub(super) struct BodyReader {
    large_bodies: Arc<Semaphore>,
}

/// A complete body.
pub(super) struct RequestBody {
    pub(super) bytes: Vec<u8>,
    permit: Option<OwnedSemaphorePermit>,
}

impl RequestBody {
    pub(super) fn is_large(&self) -> bool {
        self.permit.is_some()
    }
}

impl BodyReader {
    pub(super) fn new() -> Self {
        Self { large_bodies: Arc::new(Semaphore::new(MAX_LARGE_BODIES)) }
    }

    pub(super) async fn read(
        &self,
        body: Incoming,
        limits: &HttpServerLimits,
    ) -> Result<RequestBody, Rejection> {
        let max_bytes = limits.max_body_bytes;
        if body.size_hint().lower() > max_bytes as u64 {
            return Err(too_large(max_bytes));
        }
        timeout(limits.body_timeout, self.collect(body, max_bytes)).await.unwrap_or_else(|_| {
            let why = format!("The body did not arrive within {} s", limits.body_timeout.as_secs_f32());
            Err(Rejection::new(StatusCode::REQUEST_TIMEOUT, why).and_close())
        })
    }

    async fn collect(&self, mut body: Incoming, max_bytes: usize) -> Result<RequestBody, Rejection> {
        let mut collected = RequestBody { bytes: Vec::new(), permit: None };
        while let Some(frame) = body.frame().await {
            let broken = |error| {
                Rejection::new(StatusCode::BAD_REQUEST, format!("The body is incomplete: {error}"))
                    .and_close()
            };
            let Ok(chunk) = frame.map_err(broken)?.into_data() else { continue };
            let size = collected.bytes.len() + chunk.len();
            if size > max_bytes {
                return Err(too_large(max_bytes));
            }
            if size > MAX_SMALL_BODY_BYTES && collected.permit.is_none() {
                let permit = Arc::clone(&self.large_bodies).acquire_owned().await;
                collected.permit = Some(permit.map_err(|_| Rejection::overloaded("The server is stopping"))?);
            }
            collected.bytes.extend_from_slice(&chunk);
        }
        Ok(collected)
    }
}

fn too_large(max_bytes: usize) -> Rejection {
    let why = format!("The body has more than {max_bytes} bytes");
    Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, why).and_close()
}
