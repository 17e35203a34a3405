//! HTTP requests to one server: tokens, redirects and limits.

use std::sync::Arc;

use haft_tool::{ErrorKind, HttpStream, HttpStreams, Secret, StreamRequest, ToolError};
use url::Url;

use super::super::deadline::Deadline;
use super::super::portable::clean_line;
use super::super::{ClientError, ClientLimits, McpError, TokenProvider};
use super::HttpEndpoint;
use crate::wire::{RpcInput, RpcMessage};

/// Redirects within the server's origin.
const MAX_REDIRECTS: usize = 3;
/// New tokens after status 401, for one request.
const MAX_NEW_TOKENS: usize = 1;
/// Tokens with more scopes after status 403, for one request.
const MAX_SCOPE_UPGRADES: usize = 2;
/// Bytes of an error body that are read, and parts of it that are shown.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;
const MAX_SHOWN_BYTES: usize = 1000;
const MAX_SHOWN_CHARS: usize = 200;

/// Sends requests to one endpoint.
pub(super) struct EndpointClient {
    pub(super) url: Url,
    /// The URL for messages, without its query, which may contain a key.
    pub(super) display_url: String,
    headers: Vec<(String, Secret)>,
    http: Arc<dyn HttpStreams>,
    tokens: Option<Arc<dyn TokenProvider>>,
    pub(super) limits: ClientLimits,
}

/// One HTTP request.
pub(super) struct EndpointRequest<'a> {
    pub(super) http_method: &'static str,
    pub(super) url: &'a Url,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    /// What it is about, for messages: the method of the protocol.
    pub(super) what: &'a str,
}

impl EndpointClient {
    pub(super) fn new(endpoint: HttpEndpoint, limits: &ClientLimits) -> Result<Self, ClientError> {
        let HttpEndpoint { url, headers, http, tokens } = endpoint;
        let url = Url::parse(&url)
            .map_err(|error| ClientError::unreachable(format!("the server's URL is invalid: {error}")))?;
        let display_url = url.as_str().split(['?', '#']).next().unwrap_or_default().to_owned();
        Ok(Self { url, display_url, headers, http, tokens, limits: limits.clone() })
    }

    /// Sends a request and waits for the head of the response. Gets a new token if the server requires one.
    pub(super) fn open(
        &self,
        request: &EndpointRequest<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<HttpStream, ClientError> {
        let mut token = self.tokens.as_ref().and_then(|tokens| tokens.token());
        let (mut url, mut redirects, mut new_tokens, mut upgrades) = (request.url.clone(), 0, 0, 0);
        loop {
            let stream = self.send(request, &url, token.as_deref(), deadline)?;
            let challenges = stream.all("www-authenticate");
            match (stream.status, &self.tokens) {
                (401, Some(tokens)) if new_tokens < MAX_NEW_TOKENS => {
                    new_tokens += 1;
                    token = Some(tokens.challenged(token.as_deref(), 401, &challenges, deadline.cancel)?);
                }
                (403, Some(tokens)) if upgrades < MAX_SCOPE_UPGRADES && needs_scope(&challenges) => {
                    upgrades += 1;
                    token = Some(tokens.challenged(token.as_deref(), 403, &challenges, deadline.cancel)?);
                }
                (401 | 403, _) => return Err(self.unauthorized(stream, deadline)),
                (301 | 302 | 303 | 307 | 308, _) => {
                    redirects += 1;
                    url = self.redirect_target(&stream, &url, request.http_method, redirects)?;
                    continue;
                }
                _ => return Ok(stream),
            }
            // The user may have had to log in, which does not count as the server's time.
            deadline.restart();
        }
    }

    /// Sends a request with the current token; does not react to the response.
    pub(super) fn open_once(
        &self,
        request: &EndpointRequest<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<HttpStream, ClientError> {
        let token = self.tokens.as_ref().and_then(|tokens| tokens.token());
        self.send(request, request.url, token.as_deref(), deadline)
    }

    fn send(
        &self,
        request: &EndpointRequest<'_>,
        url: &Url,
        token: Option<&str>,
        deadline: &Deadline<'_>,
    ) -> Result<HttpStream, ClientError> {
        let mut headers = request.headers.clone();
        let configured = self.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        let is_replaced = |name: &str| token.is_some() && name.eq_ignore_ascii_case("authorization");
        headers.extend(configured.filter(|(name, _)| !is_replaced(name)));
        if let Some(token) = token {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        let what = request.what;
        let (method, url, body) = (request.http_method, url.to_string(), request.body.clone());
        let request = StreamRequest { method, url, headers, body };
        let opened = self.http.open(request, deadline.remaining(what)?, deadline.cancel);
        opened.map_err(|error| match error.kind {
            ErrorKind::Timeout => match deadline.remaining(what) {
                Err(timed_out) => timed_out,
                Ok(_) => ClientError::timed_out(format!("`{what}`: {}", error.message)),
            },
            _ => failed(McpError::Unreachable, &error, deadline, what),
        })
    }

    /// The target of a redirect, which must have the same origin.
    fn redirect_target(
        &self,
        stream: &HttpStream,
        from: &Url,
        http_method: &str,
        count: usize,
    ) -> Result<Url, ClientError> {
        let location = stream.header("location").unwrap_or_default();
        let target = from.join(location).ok().filter(|target| target.origin() == self.url.origin());
        let keeps_method = matches!(stream.status, 307 | 308) || http_method != "POST";
        match target {
            Some(target) if keeps_method && count <= MAX_REDIRECTS => Ok(target),
            Some(_) if count > MAX_REDIRECTS => Err(ClientError::unreachable(format!(
                "{} redirects more than {MAX_REDIRECTS} times",
                self.display_url
            ))),
            _ => Err(ClientError::unreachable(format!(
                "{} redirects to {}, which is not followed. If that is the server, configure its URL.",
                self.display_url,
                clean_line(location, MAX_SHOWN_CHARS)
            ))),
        }
    }

    fn unauthorized(&self, stream: HttpStream, deadline: &Deadline<'_>) -> ClientError {
        let status = stream.status;
        let body = self.read_body(stream, MAX_ERROR_BODY_BYTES, "", deadline).unwrap_or_default();
        let why = match (status, &self.tokens) {
            (401, None) => "it requires a token. Log in, or set its Authorization header.",
            (401, Some(_)) => "it rejects the token. Log in again.",
            _ => "it does not allow this request.",
        };
        ClientError::unauthorized(format!("{} answered {status}: {why}{}", self.display_url, quote(&body)))
    }

    /// The error of a response whose status is not a success.
    pub(super) fn status_error(
        &self,
        stream: HttpStream,
        what: &str,
        deadline: &Deadline<'_>,
    ) -> ClientError {
        let status = stream.status;
        let body = self.read_body(stream, MAX_ERROR_BODY_BYTES, what, deadline).unwrap_or_default();
        if let Ok(RpcInput::Single(RpcMessage::Response { outcome: Err(error), .. })) = RpcInput::read(&body)
        {
            return error.into();
        }
        let why = format!("{} answered `{what}` with status {status}.{}", self.display_url, quote(&body));
        ClientError::new(McpError::HttpStatus(status), why)
    }

    /// Reads a body of at most `max_bytes`.
    pub(super) fn read_body(
        &self,
        mut stream: HttpStream,
        max_bytes: usize,
        what: &str,
        deadline: &Deadline<'_>,
    ) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) = next_chunk(&mut stream, what, deadline)? {
            body.extend_from_slice(&chunk);
            if body.len() > max_bytes {
                return Err(ClientError::too_large(format!(
                    "{} answered `{what}` with more than {max_bytes} bytes, the limit",
                    self.display_url
                )));
            }
        }
        Ok(body)
    }

    /// The error for an event that exceeds the limit.
    pub(super) fn event_too_large(&self) -> ClientError {
        ClientError::too_large(format!(
            "{} sent an event of more than {} bytes, the limit",
            self.display_url, self.limits.max_message_bytes
        ))
    }
}

/// The next bytes of a body; `None` at its end.
pub(super) fn next_chunk(
    stream: &mut HttpStream,
    what: &str,
    deadline: &Deadline<'_>,
) -> Result<Option<Vec<u8>>, ClientError> {
    loop {
        match stream.body.next(deadline.remaining(what)?, deadline.cancel) {
            // The deadline decides, which progress may have extended.
            Err(error) if error.kind == ErrorKind::Timeout => {}
            other => return other.map_err(|error| failed(McpError::Disconnected, &error, deadline, what)),
        }
    }
}

pub(super) fn is_event_stream(stream: &HttpStream) -> bool {
    stream.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
}

fn failed(kind: McpError, error: &ToolError, deadline: &Deadline<'_>, what: &str) -> ClientError {
    match deadline.remaining(what) {
        Err(cancelled) if cancelled.kind == McpError::Cancelled => cancelled,
        _ => ClientError::new(kind, error.message.clone()),
    }
}

/// Whether a challenge says that the token lacks a scope.
fn needs_scope(challenges: &[String]) -> bool {
    challenges.iter().any(|challenge| challenge.contains("insufficient_scope"))
}

/// The beginning of a body as a sentence; empty if there is none.
fn quote(body: &[u8]) -> String {
    let head = String::from_utf8_lossy(body.get(..body.len().min(MAX_SHOWN_BYTES)).unwrap_or_default());
    match clean_line(&head, MAX_SHOWN_CHARS) {
        text if text.is_empty() => String::new(),
        text => format!(" It wrote: {text}"),
    }
}
