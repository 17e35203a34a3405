//! One HTTP request to a server: who may ask, where it leads, and how much of the answer is read.

use std::sync::Arc;

use haft_tool::{ErrorKind, HttpStream, HttpStreams, Secret, StreamRequest, ToolError};
use url::Url;

use super::super::patience::Patience;
use super::super::{ClientError, ClientLimits, McpError, TokenProvider, portable};
use super::HttpEndpoint;
use crate::wire::{RpcInput, RpcMessage};

/// How often a server may send us elsewhere on its own ground.
const MOST_REDIRECTS: usize = 3;
/// How often a token may be turned down before its server is believed.
const MOST_TOKENS: usize = 1;
/// How often a token's reach may be widened for one request.
const MOST_STEPS: usize = 2;
/// How much is read of an answer that says no.
const MOST_REFUSAL: usize = 64 << 10;

/// The way to one server over HTTP.
pub(super) struct Door {
    pub(super) url: Url,
    /// The address as errors name it: without its query, which may hold a key.
    pub(super) shown: String,
    headers: Vec<(String, Secret)>,
    http: Arc<dyn HttpStreams>,
    authorize: Option<Arc<dyn TokenProvider>>,
    pub(super) limits: ClientLimits,
}

/// What is sent.
pub(super) struct Sent<'a> {
    pub(super) method: &'static str,
    pub(super) url: &'a Url,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    /// What it is about, for errors.
    pub(super) what: &'a str,
}

impl Door {
    pub(super) fn new(endpoint: HttpEndpoint, limits: &ClientLimits) -> Result<Self, ClientError> {
        let HttpEndpoint { url, headers, http, tokens: authorize } = endpoint;
        let url = Url::parse(&url).map_err(|error| {
            ClientError::unreachable(format!("the address of the server is none: {error}"))
        })?;
        let shown = shown(&url);
        Ok(Self { url, shown, headers, http, authorize, limits: limits.clone() })
    }

    /// Sends and waits for the head of the answer. A server that wants to know who asks is told, if anybody can.
    pub(super) fn open(&self, sent: &Sent<'_>, patience: &Patience<'_>) -> Result<HttpStream, ClientError> {
        let mut token = self.authorize.as_ref().and_then(|authorize| authorize.token());
        let (mut url, mut redirects, mut tokens, mut steps) = (sent.url.clone(), 0, 0, 0);
        loop {
            let stream = self.send(sent, &url, token.as_deref(), patience)?;
            let challenges = stream.all("www-authenticate");
            match (stream.status, &self.authorize) {
                (401, Some(authorize)) if tokens < MOST_TOKENS => {
                    tokens += 1;
                    token =
                        Some(authorize.challenged(token.as_deref(), 401, &challenges, patience.cancel)?);
                }
                (403, Some(authorize)) if steps < MOST_STEPS && wants_more(&challenges) => {
                    steps += 1;
                    token =
                        Some(authorize.challenged(token.as_deref(), 403, &challenges, patience.cancel)?);
                }
                (401 | 403, _) => return Err(self.not_allowed(stream, patience)),
                (301 | 302 | 303 | 307 | 308, _) => {
                    redirects += 1;
                    url = self.redirected(&stream, &url, sent.method, redirects)?;
                    continue;
                }
                _ => return Ok(stream),
            }
            // Somebody may have had to log in meanwhile, which is not the server's fault.
            patience.restart();
        }
    }

    /// The same with what is at hand, and whatever comes of it.
    pub(super) fn open_as_is(
        &self,
        sent: &Sent<'_>,
        patience: &Patience<'_>,
    ) -> Result<HttpStream, ClientError> {
        let token = self.authorize.as_ref().and_then(|authorize| authorize.token());
        self.send(sent, sent.url, token.as_deref(), patience)
    }

    fn send(
        &self,
        sent: &Sent<'_>,
        url: &Url,
        token: Option<&str>,
        patience: &Patience<'_>,
    ) -> Result<HttpStream, ClientError> {
        let mut headers = sent.headers.clone();
        let own = self.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        headers
            .extend(own.filter(|(name, _)| token.is_none() || !name.eq_ignore_ascii_case("authorization")));
        if let Some(token) = token {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        let request =
            StreamRequest { method: sent.method, url: url.to_string(), headers, body: sent.body.clone() };
        let opened = self.http.open(request, patience.left(sent.what)?, patience.cancel);
        opened.map_err(|error| match error.kind {
            ErrorKind::Timeout => match patience.left(sent.what) {
                Err(late) => late,
                Ok(_) => ClientError::timed_out(format!("`{}`: {}", sent.what, error.message)),
            },
            _ => broken(McpError::Unreachable, &error, patience, sent.what),
        })
    }

    /// Where to go instead, which must be the same server.
    fn redirected(
        &self,
        stream: &HttpStream,
        from: &Url,
        method: &str,
        count: usize,
    ) -> Result<Url, ClientError> {
        let to = stream.header("location").unwrap_or_default();
        let target = from.join(to).ok().filter(|target| target.origin() == self.url.origin());
        let keeps = matches!(stream.status, 307 | 308) || method != "POST";
        match target {
            Some(target) if keeps && count <= MOST_REDIRECTS => Ok(target),
            Some(_) if count > MOST_REDIRECTS => Err(ClientError::unreachable(format!(
                "{} leads from redirect to redirect; given up after {MOST_REDIRECTS}",
                self.shown
            ))),
            _ => Err(ClientError::unreachable(format!(
                "{} redirects to {}, which is not followed; if that is the server, put its address into the \
                 configuration",
                self.shown,
                portable::clean_line(to, 200)
            ))),
        }
    }

    fn not_allowed(&self, stream: HttpStream, patience: &Patience<'_>) -> ClientError {
        let status = stream.status;
        let said = self.said(stream, patience);
        let what = match (status, &self.authorize) {
            (401, None) => {
                "it wants to know who asks, and there is no token for it; log in, or set its Authorization header"
            }
            (401, Some(_)) => "it does not take the token; log in again",
            _ => "what is asked is not allowed to whoever asks",
        };
        ClientError::unauthorized(format!("{} answered {status}: {what}{said}", self.shown))
    }

    /// What an answer that is no success means.
    pub(super) fn refusal(&self, stream: HttpStream, what: &str, patience: &Patience<'_>) -> ClientError {
        let status = stream.status;
        let body = self.body(stream, MOST_REFUSAL, what, patience).unwrap_or_default();
        if let Ok(RpcInput::Single(RpcMessage::Response { outcome: Err(error), .. })) = RpcInput::read(&body)
        {
            return error.into();
        }
        let said = told(&body);
        ClientError::new(
            McpError::HttpStatus(status),
            format!("{} answered `{what}` with status {status}{said}", self.shown),
        )
    }

    fn said(&self, stream: HttpStream, patience: &Patience<'_>) -> String {
        told(&self.body(stream, MOST_REFUSAL, "", patience).unwrap_or_default())
    }

    /// All of a body, if it is no longer than that.
    pub(super) fn body(
        &self,
        mut stream: HttpStream,
        most: usize,
        what: &str,
        patience: &Patience<'_>,
    ) -> Result<Vec<u8>, ClientError> {
        let mut all = Vec::new();
        while let Some(chunk) = next(&mut stream, what, patience)? {
            all.extend_from_slice(&chunk);
            if all.len() > most {
                return Err(ClientError::too_large(format!(
                    "{} answered `{what}` with more than {most} bytes, the most that is read",
                    self.shown
                )));
            }
        }
        Ok(all)
    }
}

/// The next bytes of an answer.
pub(super) fn next(
    stream: &mut HttpStream,
    what: &str,
    patience: &Patience<'_>,
) -> Result<Option<Vec<u8>>, ClientError> {
    loop {
        match stream.body.next(patience.left(what)?, patience.cancel) {
            // What is left now says whether that was all the time there is.
            Err(error) if error.kind == ErrorKind::Timeout => {}
            other => return other.map_err(|error| broken(McpError::Disconnected, &error, patience, what)),
        }
    }
}

fn broken(kind: McpError, error: &ToolError, patience: &Patience<'_>, what: &str) -> ClientError {
    match patience.left(what) {
        Err(cancelled) if cancelled.kind == McpError::Cancelled => cancelled,
        _ => ClientError::new(kind, error.message.clone()),
    }
}

/// An address without its query.
fn shown(url: &Url) -> String {
    url.as_str().split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Whether a challenge says that the token is good and does not reach far enough.
fn wants_more(challenges: &[String]) -> bool {
    challenges.iter().any(|challenge| challenge.contains("insufficient_scope"))
}

/// The first words of a body, if it has any.
fn told(body: &[u8]) -> String {
    let head = String::from_utf8_lossy(body.get(..body.len().min(1000)).unwrap_or_default());
    match portable::clean_line(&head, 200) {
        words if words.is_empty() => String::new(),
        words => format!(" and said: {words}"),
    }
}
