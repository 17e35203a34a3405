//! Responses: a whole body, or a stream of chunks.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use haft_net::server::ActiveRequest;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::proxy_requests::CancelIfAbandoned;

/// The page may run its own scripts, reach its own server and show images, and nothing else.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; \
     img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types haft";
/// Any other response may do nothing, even if it is opened as a page.
const DATA_POLICY: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";

/// An answer to a request.
pub(crate) struct HttpReply {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: ReplyContent,
    /// Whether it is part of the page and may run scripts.
    is_page: bool,
    /// Dropped with the body, which may happen before all of it was sent.
    at_end: Option<CancelIfAbandoned>,
}

/// The content of a reply.
pub(crate) enum ReplyContent {
    Whole(Bytes),
    Stream(mpsc::Receiver<Bytes>),
}

impl HttpReply {
    /// JSON.
    pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(bytes) => Self::bytes(status, "application/json", bytes),
            Err(_) => Self::bytes(StatusCode::INTERNAL_SERVER_ERROR, "application/json", "{}"),
        }
    }

    /// Bytes that browsers treat as data.
    pub(crate) fn bytes(status: StatusCode, content_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        let body = ReplyContent::Whole(bytes.into());
        Self { status, content_type, headers: Vec::new(), body, is_page: false, at_end: None }
    }

    /// A file of the page.
    pub(crate) fn page(content_type: &'static str, bytes: &'static [u8]) -> Self {
        Self { is_page: true, ..Self::bytes(StatusCode::OK, content_type, Bytes::from_static(bytes)) }
    }

    /// Events as they happen.
    pub(crate) fn events(stream: mpsc::Receiver<Bytes>) -> Self {
        // Tells proxies not to buffer events.
        let headers = vec![(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"))];
        let body = ReplyContent::Stream(stream);
        Self { headers, body, ..Self::bytes(StatusCode::OK, "text/event-stream", Bytes::new()) }
    }

    /// The same reply, whose producer is cancelled when the client disconnects.
    pub(crate) fn cancelling(self, at_end: CancelIfAbandoned) -> Self {
        Self { at_end: Some(at_end), ..self }
    }

    pub(crate) fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// Closes the connection after the reply, for example because the request's body was not read to its end.
    pub(crate) fn and_close(self) -> Self {
        self.with(CONNECTION, "close")
    }

    /// The response; `active` keeps the connection from being evicted until it is written.
    pub(crate) fn into_response(self, active: Option<ActiveRequest>) -> Response<ReplyBody> {
        let mut response =
            Response::new(ReplyBody { content: self.body, _active: active, _at_end: self.at_end });
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let policy = if self.is_page { PAGE_POLICY } else { DATA_POLICY };
        for (name, value) in [
            (CONTENT_TYPE, self.content_type),
            (CACHE_CONTROL, if self.is_page { "no-cache" } else { "no-store" }),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
            (REFERRER_POLICY, "no-referrer"),
            (CONTENT_SECURITY_POLICY, policy),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.extend(self.headers);
        response
    }
}

/// The body of a response.
pub(crate) struct ReplyBody {
    content: ReplyContent,
    _active: Option<ActiveRequest>,
    _at_end: Option<CancelIfAbandoned>,
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.content {
            ReplyContent::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then_some(Ok(Frame::data(bytes))))
            }
            ReplyContent::Stream(stream) => {
                stream.poll_recv(context).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, ReplyContent::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            ReplyContent::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ReplyContent::Stream(_) => SizeHint::default(),
        }
    }
}
