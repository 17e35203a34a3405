//! HTTP responses: one JSON body, a stream of events, or a rejection.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use haft_net::server::{ActiveRequest, BodyError};
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};

use super::event_reader::EventReader;
use crate::wire::{INVALID_REQUEST, RequestId, RpcError, RpcMessage};

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The body of a response.
pub(super) struct ResponseBody {
    content: BodyContent,
    /// Keeps the connection from being evicted until the body is written.
    active: Option<ActiveRequest>,
}

enum BodyContent {
    Complete(Option<Bytes>),
    Events(EventReader),
}

impl ResponseBody {
    /// Keeps the connection active until the body is written.
    pub(super) fn hold(&mut self, active: ActiveRequest) {
        self.active = Some(active);
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = match &mut self.content {
            BodyContent::Complete(bytes) => Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty())),
            BodyContent::Events(reader) => reader.poll_chunk(context),
        };
        chunk.map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, BodyContent::Complete(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            BodyContent::Complete(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            BodyContent::Events(_) => SizeHint::default(),
        }
    }
}

/// A response with a complete body.
pub(super) fn complete(
    status: StatusCode,
    content_type: Option<HeaderValue>,
    bytes: impl Into<Bytes>,
) -> Response<ResponseBody> {
    response(status, content_type, BodyContent::Complete(Some(bytes.into())))
}

/// A stream of events.
pub(super) fn event_stream(reader: EventReader) -> Response<ResponseBody> {
    let mut response = response(StatusCode::OK, Some(EVENT_STREAM), BodyContent::Events(reader));
    // Tells proxies not to buffer events.
    let name = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(name, HeaderValue::from_static("no"));
    response
}

fn response(
    status: StatusCode,
    content_type: Option<HeaderValue>,
    content: BodyContent,
) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody { content, active: None });
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, content_type);
    }
    response
}

/// A request that is answered with an HTTP error.
pub(super) struct Rejection(Box<RejectionParts>);

struct RejectionParts {
    status: StatusCode,
    error: RpcError,
    id: Option<RequestId>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Rejection {
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self::error(status, RpcError::new(INVALID_REQUEST, why))
    }

    pub(super) fn error(status: StatusCode, error: RpcError) -> Self {
        Self(Box::new(RejectionParts { status, error, id: None, headers: Vec::new() }))
    }

    /// The server is overloaded; the client may retry.
    pub(super) fn overloaded(why: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why).with(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// A body that could not be read.
    pub(super) fn of_body(error: BodyError) -> Self {
        let BodyError { status, message } = error;
        let rejection = match StatusCode::from_u16(status) {
            Ok(status) if status != StatusCode::SERVICE_UNAVAILABLE => Self::new(status, message),
            _ => Self::overloaded(message),
        };
        rejection.and_close()
    }

    /// Names the request that is rejected.
    pub(super) fn of_request(mut self, id: &RequestId) -> Self {
        self.0.id = Some(id.clone());
        self
    }

    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Closes the connection, because the rest of the body is not read.
    pub(super) fn and_close(self) -> Self {
        self.with(CONNECTION, HeaderValue::from_static("close"))
    }

    pub(super) fn into_response(self) -> Response<ResponseBody> {
        let RejectionParts { status, error, id, headers } = *self.0;
        let message = RpcMessage::Response { id, outcome: Err(error) };
        let mut response = complete(status, Some(JSON), message.to_line());
        response.headers_mut().extend(headers);
        response
    }
}
