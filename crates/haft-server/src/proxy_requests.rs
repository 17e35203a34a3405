//! Answers requests to the proxies, as a whole or as a stream of events.

use std::sync::Arc;

use bytes::Bytes;
use haft_net::server::WholeResponse;
use haft_tool::Cancel;
use hyper::StatusCode;
use hyper::header::HeaderName;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::api::error::ApiError;
use crate::proxy::{LoomReply, LoomRequest, Proxies};
use crate::reply::HttpReply;

/// Events queued for a client that has not read them yet.
const MAX_WAITING_EVENTS: usize = 64;

/// Cancels on drop: the client has disconnected, or has its whole answer.
pub(crate) struct CancelIfAbandoned(pub(crate) Cancel);

impl Drop for CancelIfAbandoned {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Answers a request on a thread that may block.
pub(crate) async fn answer(
    proxies: Arc<Proxies>,
    method: String,
    path: String,
    body: Vec<u8>,
    permit: OwnedSemaphorePermit,
) -> Result<HttpReply, ApiError> {
    let (events, stream) = mpsc::channel::<Bytes>(MAX_WAITING_EVENTS);
    let (begin, begun) = oneshot::channel::<Option<WholeResponse>>();
    let cancel = Cancel::new();
    let cancel_guard = CancelIfAbandoned(cancel.clone());
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let request = LoomRequest { method: &method, path: &path, body: &body };
        let mut begin = Some(begin);
        let mut send = |event: String| {
            // The first event decides that the answer is a stream.
            let is_connected = begin.take().is_none_or(|begin| begin.send(None).is_ok());
            is_connected && events.blocking_send(event.into()).is_ok()
        };
        let reply = proxies.respond(&request, &cancel, &mut send);
        if let (LoomReply::Whole(whole), Some(begin)) = (reply, begin) {
            // Fails if the client has disconnected.
            let _ = begin.send(Some(whole));
        }
    });
    let failed = |_| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "The request failed.");
    let begun = begun.await.map_err(failed)?;
    let Some(WholeResponse { status, headers, body }) = begun else {
        return Ok(HttpReply::events(stream).cancelling(cancel_guard));
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reply = HttpReply::bytes(status, "application/json", body);
    Ok(headers
        .into_iter()
        .fold(reply, |reply, (name, value)| reply.with(HeaderName::from_static(name), &value)))
}

#[cfg(test)]
mod tests {
    use haft_ledger::Ledger;
    use haft_model::{Model, ModelError, ModelErrorKind, ModelEvent, ModelResponse, TurnRequest};
    use hyper::body::Body as _;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::proxy::{ProxyModel, ProxyModels, SearchProxy};

    /// Begins to answer, then stays silent until it is cancelled.
    struct Thinking;

    impl Model for Thinking {
        fn provider(&self) -> &'static str {
            "test"
        }

        fn model(&self) -> &'static str {
            "test"
        }

        fn respond(
            &self,
            _: &TurnRequest<'_>,
            on_event: &mut dyn FnMut(ModelEvent),
            cancel: &Cancel,
        ) -> Result<ModelResponse, ModelError> {
            on_event(ModelEvent::Started { model: None });
            while !cancel.wait(std::time::Duration::from_hours(1)) {}
            Err(ModelError::new(ModelErrorKind::Cancelled, "test", "cancelled"))
        }
    }

    #[tokio::test]
    async fn a_client_that_goes_while_the_model_thinks_ends_the_request() {
        let home = tempfile::tempdir().unwrap();
        let unset = || Err("unset".to_owned());
        let openai = Ok(ProxyModel { model: Arc::new(Thinking), own_model: None });
        let models = ProxyModels { openai, anthropic: unset(), vertex: unset() };
        let search = SearchProxy::new(Err("unset".to_owned()), Ledger::open(home.path()).unwrap());
        let permits = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
        let body = br#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#.to_vec();
        let proxies = Arc::new(Proxies::new(models, search));
        let reply = answer(proxies, "POST".to_owned(), "openai/stream".to_owned(), body, permit).await;
        let body = reply.ok().unwrap().into_response(None).into_body();
        assert!(!body.is_end_stream());
        drop(body);
        // The thread returns its permit when the model has ended.
        permits.acquire().await.unwrap().forget();
    }
}
