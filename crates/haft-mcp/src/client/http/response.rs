//! The response to one request: a body, or a stream of events that contains it.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::HttpStream;
use haft_tool::sse::{SseEvent, SseParser};
use serde_json::Value;

use super::super::connection::PreparedRequest;
use super::super::deadline::Deadline;
use super::super::portable::clean_line;
use super::super::{ClientError, McpError};
use super::StreamableShared;
use super::endpoint_client::{EndpointRequest, is_event_stream, next_chunk};
use crate::wire::{RequestId, RpcInput, RpcMessage};

/// The pause before an interrupted stream is resumed: the default, and the limits of what a server may ask for.
const DEFAULT_RETRY_MS: u64 = 1000;
const MIN_RETRY_MS: u64 = 50;
const MAX_RETRY_MS: u64 = 60_000;
/// How often one stream is resumed.
const MAX_RESUMPTIONS: usize = 100;
/// Characters of a content type that an error repeats.
const MAX_SHOWN_CHARS: usize = 60;

/// The response to a request: its result or its error.
type ResponseOutcome = Result<Value, ClientError>;

impl StreamableShared {
    /// Reads the response to `request`.
    pub(super) fn read_response(
        self: &Arc<Self>,
        stream: HttpStream,
        request: &PreparedRequest,
        deadline: &Deadline<'_>,
    ) -> ResponseOutcome {
        let content_type = stream.header("content-type").unwrap_or_default().to_ascii_lowercase();
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json" => {
                let max_bytes = self.client.limits.max_message_bytes;
                let body = self.client.read_body(stream, max_bytes, request.method, deadline)?;
                self.read_json(&body, request)
            }
            "text/event-stream" => self.read_stream(stream, request, deadline),
            _ => Err(ClientError::invalid_message(format!(
                "{} answered `{}` with status {} and content type {:?}, which is neither JSON nor an event stream",
                self.client.display_url,
                request.method,
                stream.status,
                clean_line(&content_type, MAX_SHOWN_CHARS)
            ))),
        }
    }

    fn read_json(self: &Arc<Self>, body: &[u8], request: &PreparedRequest) -> ResponseOutcome {
        let invalid = |why: &str| {
            let (url, method) = (&self.client.display_url, request.method);
            ClientError::invalid_message(format!("the answer of {url} to `{method}` is invalid: {why}"))
        };
        let input = RpcInput::read(body).map_err(|message| invalid(&message.error.message))?;
        let mut error_without_id = None;
        for message in input.into_messages() {
            match message {
                RpcMessage::Response { id: Some(id), outcome } if id == request.id => return Ok(outcome?),
                RpcMessage::Response { id: None, outcome: Err(error) } => error_without_id = Some(error),
                message => self.inbound.receive(message),
            }
        }
        // An error without an id can only be about this request.
        Err(error_without_id.map_or_else(|| invalid("it answers another request"), ClientError::from))
    }

    /// Reads a stream up to the response; resumes it if it is interrupted.
    fn read_stream(
        self: &Arc<Self>,
        mut stream: HttpStream,
        request: &PreparedRequest,
        deadline: &Deadline<'_>,
    ) -> ResponseOutcome {
        let method = request.method;
        let mut events = SseParser::new(self.client.limits.max_message_bytes);
        for _ in 0..MAX_RESUMPTIONS {
            let why = match self.read_events(&mut stream, &mut events, request, deadline) {
                Ok(Some(outcome)) => return outcome,
                Ok(None) => "its stream ended".to_owned(),
                Err(error) if error.kind == McpError::Disconnected => error.message,
                Err(error) => return Err(error),
            };
            // Streams of stateless requests cannot be resumed.
            let last_id = events.last_id.clone().filter(|_| request.version.is_none());
            let lost = || ClientError::disconnected(format!("`{method}` was not answered: {why}"));
            let last_id = last_id.ok_or_else(lost)?;
            drop(stream);
            let retry_ms = events.retry_ms.unwrap_or(DEFAULT_RETRY_MS).clamp(MIN_RETRY_MS, MAX_RETRY_MS);
            deadline.cancel.wait(Duration::from_millis(retry_ms).min(deadline.remaining(method)?));
            stream = self.resume(&last_id, method, deadline)?;
            events.reconnect();
        }
        let why = format!("`{method}` was not answered: its stream was interrupted {MAX_RESUMPTIONS} times");
        Err(ClientError::disconnected(why))
    }

    /// Opens the stream for messages that belong to no request, or, after `last_id`, resumes one.
    pub(super) fn resume(
        &self,
        last_id: &str,
        what: &str,
        deadline: &Deadline<'_>,
    ) -> Result<HttpStream, ClientError> {
        let mut headers = self.headers(None);
        headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
        if !last_id.is_empty() {
            headers.push(("Last-Event-ID".to_owned(), last_id.to_owned()));
        }
        let url = &self.client.url;
        let request = EndpointRequest { http_method: "GET", url, headers, body: None, what };
        let stream = self.client.open(&request, deadline)?;
        match stream.status {
            200 if is_event_stream(&stream) => Ok(stream),
            200 => Err(ClientError::invalid_message(format!(
                "{} did not answer with an event stream",
                self.client.display_url
            ))),
            _ => Err(self.client.status_error(stream, what, deadline)),
        }
    }

    /// Reads events up to the response; `None` if the stream ends before it.
    fn read_events(
        self: &Arc<Self>,
        stream: &mut HttpStream,
        events: &mut SseParser,
        request: &PreparedRequest,
        deadline: &Deadline<'_>,
    ) -> Result<Option<ResponseOutcome>, ClientError> {
        loop {
            while let Some(event) = events.take().map_err(|_| self.client.event_too_large())? {
                if let Some(outcome) = self.receive_event(&event, request, deadline)? {
                    return Ok(Some(outcome));
                }
            }
            match next_chunk(stream, request.method, deadline)? {
                Some(chunk) => events.push(&chunk),
                None => return Ok(None),
            }
        }
    }

    fn receive_event(
        self: &Arc<Self>,
        event: &SseEvent,
        request: &PreparedRequest,
        deadline: &Deadline<'_>,
    ) -> Result<Option<ResponseOutcome>, ClientError> {
        if event.kind != "message" || event.data.trim().is_empty() {
            return Ok(None);
        }
        let input = match RpcInput::read(event.data.as_bytes()) {
            Ok(input) => input,
            Err(_) if is_for_another(&event.data, &request.id) => return Ok(None),
            Err(invalid) => {
                let message = &invalid.error.message;
                let why = format!("{} sent an invalid message: {message}", self.client.display_url);
                return Err(ClientError::invalid_message(why));
            }
        };
        for message in input.into_messages() {
            match message {
                RpcMessage::Response { id: Some(id), outcome } if id == request.id => {
                    return Ok(Some(outcome.map_err(ClientError::from)));
                }
                RpcMessage::Notification { method, params } if method == "notifications/progress" => {
                    if params.get("progressToken").and_then(RequestId::read).as_ref() == Some(&request.id) {
                        deadline.progress(&params);
                    }
                }
                message => self.inbound.receive(message),
            }
        }
        Ok(None)
    }
}

/// Whether invalid data is JSON that cannot be about this request.
fn is_for_another(data: &str, id: &RequestId) -> bool {
    let value = serde_json::from_str::<Value>(data);
    value.is_ok_and(|value| value.get("id").and_then(RequestId::read).as_ref() != Some(id))
}
