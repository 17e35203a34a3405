//! Asking a server or an authorization server, through a door that leads to no other place.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::{Cancel, ErrorKind, Http, HttpRequest, HttpResponse, Reach, Redirects, Secret, Value};
use url::Url;

use super::home::{Home, same_origin};
use super::words::{passed_on, refused, said};
use crate::client::{ClientError, McpError};
use crate::wire::ProtocolVersion;

/// How long one answer may take.
const LIMIT: Duration = Duration::from_secs(15);
/// How much of an answer is read; documents and tokens are far smaller.
const MOST_BYTES: usize = 256 * 1024;
/// How many redirects within one origin are followed.
const MOST_REDIRECTS: usize = 3;

/// Makes a door for what one request may reach, or for less. Who gives out a server's tokens is known only when the
/// server has said so, and it is a stranger who says it.
pub type HttpFactory = Arc<dyn Fn(Reach, Cancel) -> Arc<dyn Http> + Send + Sync>;

/// The way to everybody who is asked for one server's tokens.
#[derive(Clone)]
pub(super) struct Fetch {
    doors: HttpFactory,
    pub(super) home: Home,
    pub(super) cancel: Cancel,
}

/// What was found at a place where a document may be.
pub(super) enum Look {
    Document(Value),
    /// Nothing that can be used, and why; `broken` if it may be there at another time.
    Nothing {
        why: String,
        broken: bool,
    },
}

impl Fetch {
    pub(super) fn new(doors: HttpFactory, home: Home) -> Self {
        Self { doors, home, cancel: Cancel::new() }
    }

    /// The same for somebody who may lose interest.
    pub(super) fn until(&self, cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), ..self.clone() }
    }

    /// Looks for a document. Redirects are followed within the origin alone.
    pub(super) fn look(&self, url: &Url) -> Result<Look, ClientError> {
        let nothing = |broken: bool, why: String| Ok(Look::Nothing { why: format!("{url}: {why}"), broken });
        let mut at = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let mut request = HttpRequest::get(at.as_str());
            request.headers.push(("Accept".to_owned(), "application/json".to_owned()));
            request
                .headers
                .push(("MCP-Protocol-Version".to_owned(), ProtocolVersion::NEWEST.as_str().to_owned()));
            let response = match self.send(&at, request) {
                Ok(response) => response,
                Err(error) if error.kind == McpError::Cancelled => return Err(error),
                Err(error) => return Ok(Look::Nothing { why: error.message, broken: true }),
            };
            if let Some(next) = &response.redirect {
                match at.join(next) {
                    Ok(next) if same_origin(&next, url) => at = next,
                    _ => return nothing(false, format!("it leads elsewhere, to {}", said(next))),
                }
                continue;
            }
            if response.status != 200 {
                return nothing(response.status >= 500, format!("it answers {}", response.status));
            }
            return match document(&response) {
                Ok(document) => Ok(Look::Document(document)),
                Err(why) => nothing(false, why),
            };
        }
        nothing(false, "it leads from redirect to redirect".to_owned())
    }

    /// Posts a form, with `secrets` that no error may repeat.
    pub(super) fn post_form(
        &self,
        url: &Url,
        headers: Vec<(String, String)>,
        form: &[(&str, &str)],
        secrets: &[&Secret],
    ) -> Result<HttpResponse, ClientError> {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let done = self.post(url, "application/x-www-form-urlencoded", headers, body.into_bytes());
        done.map_err(|error| ClientError { message: cover(&error.message, secrets), ..error })
    }

    /// Posts a document.
    pub(super) fn post_json(&self, url: &Url, document: &Value) -> Result<HttpResponse, ClientError> {
        self.post(url, "application/json", Vec::new(), document.to_string().into_bytes())
    }

    /// A redirect is never followed: it would carry a code or a secret elsewhere.
    fn post(
        &self,
        url: &Url,
        kind: &str,
        mut headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<HttpResponse, ClientError> {
        headers.push(("Content-Type".to_owned(), kind.to_owned()));
        headers.push(("Accept".to_owned(), "application/json".to_owned()));
        let request = HttpRequest {
            method: "POST".to_owned(),
            headers,
            body: Some(body),
            ..HttpRequest::get(url.as_str())
        };
        let response = self.send(url, request)?;
        match &response.redirect {
            None => Ok(response),
            Some(next) => Err(ClientError::invalid_message(format!(
                "{url} sends its callers on to {}; a secret is not taken along, so this authorization server cannot be used",
                said(next)
            ))),
        }
    }

    fn send(&self, url: &Url, request: HttpRequest) -> Result<HttpResponse, ClientError> {
        let request = HttpRequest {
            timeout: LIMIT,
            keep_bytes: MOST_BYTES,
            redirects: Redirects::Never,
            cached: false,
            ..request
        };
        let door = (self.doors)(self.home.reach(url), self.cancel.clone());
        let response = door.fetch(&request).map_err(|error| match error.kind {
            ErrorKind::PermissionDenied => {
                // How a call is let through is not how a server's host is.
                let why = error.message.split("; to allow it").next().unwrap_or_default();
                refused(format!("{url}: {why}; if it is yours, name it among the server's own hosts"))
            }
            _ => passed_on(url.as_str(), &error),
        })?;
        if response.more || response.total_bytes > MOST_BYTES as u64 {
            return Err(ClientError::too_large(format!(
                "{url} answers with more than {MOST_BYTES} bytes; nothing of it was used"
            )));
        }
        Ok(response)
    }
}

/// The JSON object that was answered.
pub(super) fn document(response: &HttpResponse) -> Result<Value, String> {
    match serde_json::from_slice(&response.body) {
        Ok(document @ Value::Object(_)) => Ok(document),
        Ok(_) => Err("it answers with JSON that is no object".to_owned()),
        Err(_) => Err("it answers with something that is no JSON".to_owned()),
    }
}

/// `text` without any of `secrets`.
pub(super) fn cover(text: &str, secrets: &[&Secret]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| secret.cover(&text))
}
