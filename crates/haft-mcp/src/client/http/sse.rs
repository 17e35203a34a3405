//! The HTTP+SSE transport of version 2024-11-05: one stream for all messages of the server, and a URL for those to it.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::sse::SseParser;
use haft_tool::{Cancel, HttpStream};
use serde_json::Value;
use url::Url;

use super::super::connection::{PreparedRequest, ServerConnection};
use super::super::deadline::Deadline;
use super::super::inbound::Inbound;
use super::super::pending::PendingRequests;
use super::super::portable::clean_line;
use super::super::{ClientError, ClientLimits};
use super::HttpEndpoint;
use super::endpoint_client::{EndpointClient, EndpointRequest, is_event_stream, next_chunk};
use crate::wire::{RpcInput, RpcMessage};

/// Characters of an invalid target that an error repeats.
const MAX_SHOWN_CHARS: usize = 200;

/// A connection to a server of version 2024-11-05.
pub(in crate::client) struct SseConnection {
    shared: Arc<SseShared>,
    /// Where messages to the server are posted.
    target: Url,
}

struct SseShared {
    client: EndpointClient,
    inbound: Arc<Inbound>,
    pending: PendingRequests,
    closed: Cancel,
}

impl SseConnection {
    /// Opens the stream and waits for the event that names the target.
    pub(in crate::client) fn open(
        endpoint: HttpEndpoint,
        limits: &ClientLimits,
        inbound: &Arc<Inbound>,
        deadline: &Deadline<'_>,
    ) -> Result<Self, ClientError> {
        let client = EndpointClient::new(endpoint, limits)?;
        let headers = vec![("Accept".to_owned(), "text/event-stream".to_owned())];
        let what = "the event stream";
        let request = EndpointRequest { http_method: "GET", url: &client.url, headers, body: None, what };
        let mut stream = client.open(&request, deadline)?;
        if stream.status != 200 || !is_event_stream(&stream) {
            return Err(client.status_error(stream, what, deadline));
        }
        let mut events = SseParser::new(limits.max_message_bytes);
        let target = loop {
            match events.take().map_err(|_| client.event_too_large())? {
                Some(event) if event.kind == "endpoint" => break read_target(&client.url, &event.data)?,
                Some(_) => {}
                None => match next_chunk(&mut stream, what, deadline)? {
                    Some(chunk) => events.push(&chunk),
                    None => return Err(ClientError::disconnected("the stream ended without an endpoint")),
                },
            }
        };
        let (inbound, pending, closed) = (Arc::clone(inbound), PendingRequests::default(), Cancel::new());
        let shared = Arc::new(SseShared { client, inbound, pending, closed });
        let reader = Arc::clone(&shared);
        let read = move || {
            let why = reader.read(stream, events);
            reader.pending.close(why);
        };
        std::thread::Builder::new()
            .name("mcp-reader".to_owned())
            .spawn(read)
            .map_err(|error| ClientError::unreachable(format!("cannot start a thread: {error}")))?;
        Ok(Self { shared, target })
    }

    fn post(&self, message: &RpcMessage, what: &str, deadline: &Deadline<'_>) -> Result<(), ClientError> {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        let (url, body) = (&self.target, Some(message.to_line()));
        let request = EndpointRequest { http_method: "POST", url, headers, body, what };
        let stream = self.shared.client.open(&request, deadline)?;
        match stream.status {
            200..=299 => Ok(()),
            _ => Err(self.shared.client.status_error(stream, what, deadline)),
        }
    }
}

/// The URL for messages, which must have the stream's origin.
fn read_target(url: &Url, data: &str) -> Result<Url, ClientError> {
    let target = url.join(data.trim()).ok().filter(|target| target.origin() == url.origin());
    target.ok_or_else(|| {
        let data = clean_line(data, MAX_SHOWN_CHARS);
        ClientError::invalid_message(format!(
            "the server wants messages at {data:?}, which has another origin"
        ))
    })
}

impl SseShared {
    /// Reads until the stream ends; returns why.
    fn read(&self, mut stream: HttpStream, mut events: SseParser) -> ClientError {
        let deadline = Deadline::unlimited(&self.closed);
        loop {
            match events.take() {
                Ok(Some(event)) if event.kind == "message" => self.receive(&event.data),
                Ok(Some(_)) => {}
                Ok(None) => match next_chunk(&mut stream, "the event stream", &deadline) {
                    Ok(Some(chunk)) => events.push(&chunk),
                    Ok(None) => {
                        let why = format!("{} ended its stream", self.client.display_url);
                        return ClientError::disconnected(why);
                    }
                    Err(error) => return error,
                },
                Err(_) => return self.client.event_too_large(),
            }
        }
    }

    fn receive(&self, data: &str) {
        match RpcInput::read(data.as_bytes()) {
            Ok(input) => input.into_messages().for_each(|message| self.pending.route(message, &self.inbound)),
            Err(invalid) => self.pending.fail_all(&ClientError::invalid_message(format!(
                "{} sent an invalid message ({}); it may have been the answer",
                self.client.display_url, invalid.error.message
            ))),
        }
    }
}

impl ServerConnection for SseConnection {
    fn request(&self, request: &PreparedRequest, deadline: &Deadline<'_>) -> Result<Value, ClientError> {
        let response = self.shared.pending.register(&request.id)?;
        self.post(&request.message(), request.method, deadline)?;
        response.wait(request.method, deadline)
    }

    fn send(&self, message: &RpcMessage, timeout: Duration) -> Result<(), ClientError> {
        self.post(message, "a notification", &Deadline::after(timeout, &self.shared.closed))
    }

    fn close(&self) {
        self.shared.pending.close(ClientError::closed());
        self.shared.closed.cancel();
    }
}

impl Drop for SseConnection {
    fn drop(&mut self) {
        self.close();
    }
}
