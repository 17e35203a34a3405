//! Following redirects: each is checked like a new request.

use haft_tool::{HttpRequest, HttpResponse, Redirects, ToolError};
use reqwest::Method;
use reqwest::header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, USER_AGENT};

use super::cache::CachedResponse;
use super::error;
use super::exchange::{CheckedRequest, method, request_headers, send};
use super::reach::ReachCheck;
use super::service::HttpService;
use super::target::HttpTarget;

const MAX_REDIRECTS: usize = 10;

/// Sends the request and follows redirects as far as it may.
pub(super) async fn fetch_following(
    service: &HttpService,
    check: &ReachCheck,
    request: &HttpRequest,
    target: HttpTarget,
) -> Result<CachedResponse, ToolError> {
    let method = method(&request.method.to_ascii_uppercase())?;
    let (headers, body) = (request_headers(&request.headers)?, request.body.clone());
    let mut current = CheckedRequest { method, target, headers, body };
    let mut visited = Vec::new();
    loop {
        let response = send(service, check, &current).await?;
        visited.push(current.target.clone());
        let location = response.location();
        let next = location.as_ref().map(|location| current.target.join(location)).transpose();
        let redirect = match next {
            Ok(None) => None,
            Ok(Some(next)) if follows(request.redirects, check, &current.target, &next) => {
                if visited.len() > MAX_REDIRECTS {
                    return Err(error::too_many_redirects(&current.target.authority(), MAX_REDIRECTS));
                }
                current = redirected(current, next, response.status());
                continue;
            }
            Ok(Some(next)) => Some(next.url.to_string()),
            Err(error) if request.redirects == Redirects::Follow => {
                let authority = current.target.authority();
                return Err(error.context(format_args!("{authority} redirects")));
            }
            Err(_) => location,
        };
        let response = response.read(&current.target, request.keep_bytes).await?;
        return Ok(CachedResponse { response: HttpResponse { redirect, ..response }, visited });
    }
}

fn follows(redirects: Redirects, check: &ReachCheck, from: &HttpTarget, to: &HttpTarget) -> bool {
    match redirects {
        Redirects::Follow => true,
        Redirects::SameHost => from.is_same_host(to) && check.check(to).is_ok(),
        Redirects::Never => false,
    }
}

/// The request that a redirect leads to.
fn redirected(request: CheckedRequest, next: HttpTarget, status: u16) -> CheckedRequest {
    let CheckedRequest { mut method, target, mut headers, mut body } = request;
    let becomes_get = status == 303 || matches!(status, 301 | 302) && method == Method::POST;
    if becomes_get && method != Method::HEAD {
        method = Method::GET;
        body = None;
        headers.remove(CONTENT_TYPE);
        headers.remove(CONTENT_LENGTH);
    }
    if !target.may_share_headers_with(&next) {
        // Any other header may contain a key.
        let harmless = [ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, USER_AGENT];
        let kept = headers.iter().filter(|(name, _)| harmless.contains(name));
        headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect::<HeaderMap>();
    }
    CheckedRequest { method, target: next, headers, body }
}
