//! A server whose requests are read as a whole and answered by a function that may block.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use haft_tool::{ToolError, json};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};

use super::{
    ActiveRequest, BodyReader, ConnectionLimits, ConnectionSlot, RequestHandler, RunningServer, listen,
};

/// A request with its body.
#[derive(Debug)]
pub struct WholeRequest {
    /// The method, for example `POST`.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The address of the server, as it listens.
    pub server: SocketAddr,
    headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl WholeRequest {
    /// The value of a header that occurs exactly once and is printable ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    }
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeResponse {
    /// The HTTP status.
    pub status: u16,
    /// Headers besides the content type.
    pub headers: Vec<(&'static str, String)>,
    /// The body, which is JSON.
    pub body: String,
}

type Answer = dyn Fn(&WholeRequest) -> WholeResponse + Send + Sync;

struct WholeRequests {
    address: SocketAddr,
    limits: ConnectionLimits,
    bodies: BodyReader,
    answer: Arc<Answer>,
}

/// Serves requests with a function. It is called on threads of its own, at most [`ConnectionLimits::blocking_threads`] at once.
pub fn serve_requests(
    address: SocketAddr,
    limits: ConnectionLimits,
    answer: impl Fn(&WholeRequest) -> WholeResponse + Send + Sync + 'static,
) -> Result<RunningServer, ToolError> {
    listen(address, limits.clone(), |address| {
        Ok(WholeRequests { address, limits, bodies: BodyReader::default(), answer: Arc::new(answer) })
    })
}

impl RequestHandler for WholeRequests {
    type Body = WholeBody;

    async fn respond(
        self: Arc<Self>,
        slot: Arc<ConnectionSlot>,
        request: Request<Incoming>,
    ) -> Response<WholeBody> {
        let (head, body) = request.into_parts();
        let body = match self.bodies.read(body, &self.limits).await {
            Ok(body) => body.bytes,
            Err(error) => {
                let headers = vec![("connection", "close".to_owned())];
                let body = json!({ "error": error.message }).to_string();
                return response(WholeResponse { status: error.status, headers, body }, None);
            }
        };
        let Some(active) = slot.activate() else {
            let headers = vec![("connection", "close".to_owned()), ("retry-after", "1".to_owned())];
            let body = json!({"error": "There are too many connections"}).to_string();
            return response(WholeResponse { status: 503, headers, body }, None);
        };
        let request = WholeRequest {
            method: head.method.as_str().to_owned(),
            path: head.uri.path().to_owned(),
            server: self.address,
            headers: head.headers,
            body,
        };
        let answer = Arc::clone(&self.answer);
        let answered = tokio::task::spawn_blocking(move || answer(&request)).await;
        let answered = answered.unwrap_or_else(|_| WholeResponse {
            status: 500,
            headers: Vec::new(),
            body: json!({"error": "The request could not be handled"}).to_string(),
        });
        response(answered, Some(active))
    }
}

fn response(answered: WholeResponse, active: Option<ActiveRequest>) -> Response<WholeBody> {
    let WholeResponse { status, headers, body } = answered;
    let mut response = Response::new(WholeBody { bytes: Some(body.into()), _active: active });
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let all = response.headers_mut();
    all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    all.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in headers {
        let Ok(value) = HeaderValue::from_str(&value) else { continue };
        all.insert(HeaderName::from_static(name), value);
    }
    response
}

/// A body that keeps its connection until it is written.
pub(super) struct WholeBody {
    bytes: Option<Bytes>,
    _active: Option<ActiveRequest>,
}

impl Body for WholeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = self.bytes.take().filter(|bytes| !bytes.is_empty());
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, Bytes::len) as u64)
    }
}
