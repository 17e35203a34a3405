//! What goes back: one piece, a stream of events, or a refusal that says why.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};

use super::reader::Reader;
use super::seats::Busy;
use crate::wire::{INVALID_REQUEST, Id, Message, RpcError};

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The body of a response.
pub(super) struct Answer {
    content: Content,
    /// Whoever asked has something coming until all of it is written.
    busy: Option<Busy>,
}

enum Content {
    Whole(Option<Bytes>),
    Events(Reader),
}

impl Answer {
    /// Keeps the seat of whoever asked until all is written.
    pub(super) fn keep(&mut self, busy: Busy) {
        self.busy = Some(busy);
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.content {
            Content::Whole(bytes) => Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty())),
            Content::Events(reader) => reader.poll_piece(context),
        };
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Content::Events(_) => SizeHint::default(),
        }
    }
}

/// One piece.
pub(super) fn whole(status: StatusCode, kind: Option<HeaderValue>, bytes: Bytes) -> Response<Answer> {
    respond(status, kind, Content::Whole(Some(bytes)))
}

/// A stream of events.
pub(super) fn events(reader: Reader) -> Response<Answer> {
    let mut response = respond(StatusCode::OK, Some(EVENTS), Content::Events(reader));
    // A proxy that gathers events until it has enough of them would keep them from whoever waits.
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response.headers_mut().insert(unbuffered.0, unbuffered.1);
    response
}

fn respond(status: StatusCode, kind: Option<HeaderValue>, content: Content) -> Response<Answer> {
    let mut response = Response::new(Answer { content, busy: None });
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, kind);
    }
    response
}

/// Why a request is not dealt with.
pub(super) struct Refusal(Box<Reasons>);

struct Reasons {
    status: StatusCode,
    error: RpcError,
    id: Option<Id>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self::error(status, RpcError::new(INVALID_REQUEST, why))
    }

    pub(super) fn error(status: StatusCode, error: RpcError) -> Self {
        Self(Box::new(Reasons { status, error, id: None, headers: Vec::new() }))
    }

    /// Too much is going on; later it may work.
    pub(super) fn busy(why: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why).with(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// In answer to that request.
    pub(super) fn to(mut self, id: &Id) -> Self {
        self.0.id = Some(id.clone());
        self
    }

    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// The connection is of no use any more: the rest of the body may still come.
    pub(super) fn and_hang_up(self) -> Self {
        self.with(CONNECTION, HeaderValue::from_static("close"))
    }

    pub(super) fn into_response(self) -> Response<Answer> {
        let Reasons { status, error, id, headers } = *self.0;
        let message = Message::Response { id, outcome: Err(error) };
        let mut response = whole(status, Some(JSON), message.to_line().into());
        response.headers_mut().extend(headers);
        response
    }
}
