//! HTTP requests to servers and authorization servers, limited to what each may reach.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::{Cancel, ErrorKind, Http, HttpRequest, HttpResponse, Reach, Redirects, Secret, Value};
use url::Url;

use super::errors::{convert, quote, unauthorized};
use super::resource::{ProtectedResource, same_origin};
use crate::client::{ClientError, McpError};
use crate::wire::ProtocolVersion;

/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// The size of a response; documents and tokens are far smaller.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;
/// Redirects within one origin.
const MAX_REDIRECTS: usize = 3;
/// The first status code of server errors.
const MIN_SERVER_ERROR_STATUS: u16 = 500;

/// Makes an HTTP client that can reach only the given hosts. They are known only after untrusted servers have named them.
pub type HttpFactory = Arc<dyn Fn(Reach, Cancel) -> Arc<dyn Http> + Send + Sync>;

/// Sends requests about one server's tokens.
#[derive(Clone)]
pub(super) struct Fetch {
    http: HttpFactory,
    pub(super) resource: ProtectedResource,
    pub(super) cancel: Cancel,
}

/// The outcome of a request for a document.
pub(super) enum FetchedDocument {
    Found(Value),
    /// There is no usable document; `is_temporary` if there may be one later.
    Missing {
        why: String,
        is_temporary: bool,
    },
}

impl Fetch {
    pub(super) fn new(http: HttpFactory, resource: ProtectedResource) -> Self {
        Self { http, resource, cancel: Cancel::new() }
    }

    pub(super) fn with_cancel(&self, cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), ..self.clone() }
    }

    /// Requests a document. Follows redirects within its origin only.
    pub(super) fn get_document(&self, url: &Url) -> Result<FetchedDocument, ClientError> {
        let missing = |is_temporary: bool, why: String| {
            Ok(FetchedDocument::Missing { why: format!("{url}: {why}"), is_temporary })
        };
        let mut target = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = HttpRequest::get(target.as_str());
            request.headers.push(("Accept".to_owned(), "application/json".to_owned()));
            let version = ProtocolVersion::NEWEST.as_str().to_owned();
            request.headers.push(("MCP-Protocol-Version".to_owned(), version));
            let response = match self.send(&target, request) {
                Ok(response) => response,
                Err(error) if error.kind == McpError::Cancelled => return Err(error),
                Err(error) => {
                    return Ok(FetchedDocument::Missing { why: error.message, is_temporary: true });
                }
            };
            if let Some(location) = &response.redirect {
                match target.join(location) {
                    Ok(next) if same_origin(&next, url) => target = next,
                    _ => {
                        return missing(
                            false,
                            format!("it redirects to another origin, {}", quote(location)),
                        );
                    }
                }
                continue;
            }
            if response.status != 200 {
                let is_temporary = response.status >= MIN_SERVER_ERROR_STATUS;
                return missing(is_temporary, format!("it answers with status {}", response.status));
            }
            return match parse_object(&response) {
                Ok(document) => Ok(FetchedDocument::Found(document)),
                Err(why) => missing(false, why),
            };
        }
        missing(false, format!("it redirects more than {MAX_REDIRECTS} times"))
    }

    /// Posts a form; errors do not repeat the `secrets`.
    pub(super) fn post_form(
        &self,
        url: &Url,
        headers: Vec<(String, String)>,
        form: &[(&str, &str)],
        secrets: &[&Secret],
    ) -> Result<HttpResponse, ClientError> {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let response = self.post(url, "application/x-www-form-urlencoded", headers, body.into_bytes());
        response.map_err(|error| ClientError { message: redact(&error.message, secrets), ..error })
    }

    /// Posts a JSON document.
    pub(super) fn post_json(&self, url: &Url, document: &Value) -> Result<HttpResponse, ClientError> {
        self.post(url, "application/json", Vec::new(), document.to_string().into_bytes())
    }

    /// Posts without following redirects, which would send a code or a secret elsewhere.
    fn post(
        &self,
        url: &Url,
        content_type: &str,
        mut headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<HttpResponse, ClientError> {
        headers.push(("Content-Type".to_owned(), content_type.to_owned()));
        headers.push(("Accept".to_owned(), "application/json".to_owned()));
        let (method, body) = ("POST".to_owned(), Some(body));
        let request = HttpRequest { method, headers, body, ..HttpRequest::get(url.as_str()) };
        let response = self.send(url, request)?;
        match &response.redirect {
            None => Ok(response),
            Some(location) => Err(ClientError::invalid_message(format!(
                "{url} redirects to {}, which is not followed because the request contains a secret",
                quote(location)
            ))),
        }
    }

    fn send(&self, url: &Url, request: HttpRequest) -> Result<HttpResponse, ClientError> {
        let request = HttpRequest {
            timeout: REQUEST_TIMEOUT,
            keep_bytes: MAX_RESPONSE_BYTES,
            redirects: Redirects::Never,
            cached: false,
            ..request
        };
        let http = (self.http)(self.resource.reach(url), self.cancel.clone());
        let response = http.fetch(&request).map_err(|error| match error.kind {
            ErrorKind::PermissionDenied => unauthorized(format!(
                "{url} does not lead to a public host. If the host is yours, add it to the server's hosts."
            )),
            _ => convert(url.as_str(), &error),
        })?;
        if response.more || response.total_bytes > MAX_RESPONSE_BYTES as u64 {
            return Err(ClientError::too_large(format!(
                "{url} answers with more than {MAX_RESPONSE_BYTES} bytes, the limit"
            )));
        }
        Ok(response)
    }
}

/// Parses the JSON object in a response.
pub(super) fn parse_object(response: &HttpResponse) -> Result<Value, String> {
    match serde_json::from_slice(&response.body) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("it answers with JSON that is not an object".to_owned()),
        Err(_) => Err("its answer is not JSON".to_owned()),
    }
}

/// Replaces `secrets` in `text`.
pub(super) fn redact(text: &str, secrets: &[&Secret]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| secret.cover(&text))
}
