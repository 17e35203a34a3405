//! Bodies: not too large, not too slow, and not too many large ones at once.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::Limits;
use super::answer::Refusal;

/// Up to here everybody may send at once.
const SMALL: usize = 1 << 20;
/// How many may send more than that at once.
const MOST_LARGE: usize = 4;

/// Who may send how much.
pub(super) struct Bodies {
    large: Arc<Semaphore>,
}

/// A body that has come, and the right to hold one of its size.
pub(super) struct Whole {
    pub(super) bytes: Vec<u8>,
    large: Option<OwnedSemaphorePermit>,
}

impl Whole {
    pub(super) fn is_large(&self) -> bool {
        self.large.is_some()
    }
}

impl Bodies {
    pub(super) fn new() -> Self {
        Self { large: Arc::new(Semaphore::new(MOST_LARGE)) }
    }

    /// All of a body.
    pub(super) async fn read(&self, body: Incoming, limits: &Limits) -> Result<Whole, Refusal> {
        let most = limits.body_bytes;
        if body.size_hint().lower() > most as u64 {
            return Err(too_large(most));
        }
        timeout(limits.body_time, self.gather(body, most)).await.unwrap_or_else(|_| {
            let why = format!("The body took longer than {} s", limits.body_time.as_secs_f32());
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, why).and_hang_up())
        })
    }

    async fn gather(&self, mut body: Incoming, most: usize) -> Result<Whole, Refusal> {
        let mut whole = Whole { bytes: Vec::new(), large: None };
        while let Some(frame) = body.frame().await {
            let broken = |error| {
                Refusal::new(StatusCode::BAD_REQUEST, format!("The body broke off: {error}")).and_hang_up()
            };
            let Ok(piece) = frame.map_err(broken)?.into_data() else { continue };
            if whole.bytes.len() + piece.len() > most {
                return Err(too_large(most));
            }
            if whole.bytes.len() + piece.len() > SMALL && whole.large.is_none() {
                let permit = Arc::clone(&self.large).acquire_owned().await;
                whole.large = Some(permit.map_err(|_| Refusal::busy("The server is about to end"))?);
            }
            whole.bytes.extend_from_slice(&piece);
        }
        Ok(whole)
    }
}

fn too_large(most: usize) -> Refusal {
    let why = format!("The body has more than {most} bytes");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, why).and_hang_up()
}
