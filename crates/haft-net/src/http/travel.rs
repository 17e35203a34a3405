//! From the first address to the one that answers: every redirect is judged like a new request.

use haft_tool::{HttpRequest, HttpResponse, Redirects, ToolError};
use reqwest::Method;
use reqwest::header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, USER_AGENT};

use super::address::Address;
use super::cache::Kept;
use super::exchange::{Ask, headers, send};
use super::failure;
use super::limits::Limits;
use super::web::Web;

/// How many redirects are followed.
const MOST_REDIRECTS: usize = 10;

/// Makes the request and follows where it leads, as far as it may.
pub(super) async fn travel(
    web: &Web,
    limits: &Limits,
    request: &HttpRequest,
    first: Address,
) -> Result<Kept, ToolError> {
    let method = Method::from_bytes(request.method.to_ascii_uppercase().as_bytes())
        .map_err(|_| ToolError::invalid_arguments(format!("{:?} is no HTTP method", request.method)))?;
    if matches!(method, Method::CONNECT | Method::TRACE) {
        return Err(ToolError::invalid_arguments(format!(
            "the method {method} is not for pages; use GET or POST"
        )));
    }
    let mut ask =
        Ask { method, address: first, headers: headers(&request.headers)?, body: request.body.clone() };
    let mut visited = Vec::new();
    loop {
        let answer = send(web, limits, &ask).await?;
        visited.push(ask.address.clone());
        let next = answer.location().map(|location| ask.address.join(&location)).transpose();
        let told = match next {
            Ok(None) => None,
            Ok(Some(next)) if follows(request.redirects, limits, &ask.address, &next) => {
                if visited.len() > MOST_REDIRECTS {
                    return Err(failure::too_many_redirects(&ask.address.place(), MOST_REDIRECTS));
                }
                ask = redirected(ask, next, answer.status());
                continue;
            }
            Ok(Some(next)) => Some(next.url.to_string()),
            // Nowhere that could be fetched: for who follows an error, for others just where it would lead.
            Err(error) if request.redirects == Redirects::Follow => {
                let place = ask.address.place();
                return Err(ToolError { message: format!("{place} redirects: {}", error.message), ..error });
            }
            Err(_) => answer.location(),
        };
        let response = answer.read(&ask.address, request.keep_bytes).await?;
        return Ok(Kept { response: HttpResponse { redirect: told, ..response }, visited });
    }
}

fn follows(redirects: Redirects, limits: &Limits, here: &Address, next: &Address) -> bool {
    match redirects {
        Redirects::Follow => true,
        Redirects::SameHost => here.same_host(next) && limits.judge(next).is_ok(),
        Redirects::Never => false,
    }
}

/// The request that a redirect asks for.
fn redirected(ask: Ask, next: Address, status: u16) -> Ask {
    let Ask { mut method, address, mut headers, mut body } = ask;
    let restarts = status == 303 || matches!(status, 301 | 302) && method == Method::POST;
    if restarts && method != Method::HEAD {
        method = Method::GET;
        body = None;
        headers.remove(CONTENT_TYPE);
        headers.remove(CONTENT_LENGTH);
    }
    if !address.trusts(&next) {
        // Whatever else was sent may be a key, under whatever name.
        let kept = [ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, USER_AGENT];
        let plain = headers.iter().filter(|(name, _)| kept.contains(name));
        headers = plain.map(|(name, value)| (name.clone(), value.clone())).collect::<HeaderMap>();
    }
    Ask { method, address: next, headers, body }
}
