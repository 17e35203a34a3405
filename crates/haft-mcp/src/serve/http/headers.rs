//! Checks of HTTP headers, and of headers against the body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use hyper::{Method, StatusCode};
use serde_json::Value;

use super::response::Rejection;
use crate::wire::{HEADER_MISMATCH, ProtocolVersion, RpcError};

/// The session of a request.
pub(super) const SESSION: &str = "mcp-session-id";
/// The protocol version of a request.
pub(super) const VERSION: &str = "mcp-protocol-version";
/// The last event that the client received.
pub(super) const LAST_EVENT: &str = "last-event-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// The value of a header that may occur once.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let value = value.to_str().map_err(|_| mismatch(format!("{name} is not ASCII")))?;
            Ok(Some(value))
        }
        (Some(_), Some(_)) => Err(mismatch(format!("there is more than one {name}"))),
    }
}

/// The same, with an HTTP error.
pub(super) fn single_or_reject<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Rejection> {
    single(headers, name).map_err(|error| Rejection::error(StatusCode::BAD_REQUEST, error))
}

/// Checks that the body is plain JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Rejection> {
    let mut all = headers.get_all(CONTENT_TYPE).iter();
    let content_type = match (all.next(), all.next()) {
        (Some(content_type), None) => content_type.to_str().unwrap_or_default(),
        _ => "",
    };
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let is_plain = headers.get_all(CONTENT_ENCODING).iter().all(|coding| coding == "identity");
    if essence.eq_ignore_ascii_case("application/json") && is_plain {
        return Ok(());
    }
    let why = "Content-Type must be application/json, without a Content-Encoding";
    Err(Rejection::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
}

/// Checks that the client accepts all forms of the response.
pub(super) fn check_accept(headers: &HeaderMap, method: &Method) -> Result<(), Rejection> {
    let needed: &[&str] = match *method {
        Method::POST => &["application/json", "text/event-stream"],
        _ => &["text/event-stream"],
    };
    let accepted: Vec<&str> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|kind| kind.split(';').next().unwrap_or_default().trim())
        .collect();
    let is_accepted = |kind: &&str| {
        let family = kind.split('/').next().unwrap_or_default();
        accepted.iter().any(|accepted| {
            *accepted == "*/*"
                || accepted.eq_ignore_ascii_case(kind)
                || accepted.strip_suffix("/*").is_some_and(|accepted| accepted.eq_ignore_ascii_case(family))
        })
    };
    if accepted.is_empty() || needed.iter().all(is_accepted) {
        return Ok(());
    }
    Err(Rejection::new(StatusCode::NOT_ACCEPTABLE, format!("Accept must include {}", needed.join(" and "))))
}

/// Checks that the headers of a stateless request repeat what its body says.
pub(super) fn check_match(
    headers: &HeaderMap,
    version: &str,
    method: &str,
    params: &Value,
) -> Result<(), RpcError> {
    expect(VERSION, single(headers, VERSION)?, version)?;
    expect(METHOD, single(headers, METHOD)?, method)?;
    let name = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.get("taskId"),
        _ => None,
    };
    if let Some(name) = name.and_then(Value::as_str) {
        let given = single(headers, NAME)?.map(|given| decode(NAME, given)).transpose()?;
        expect(NAME, given.as_deref(), name)?;
    }
    Ok(())
}

fn expect(name: &str, given: Option<&str>, expected: &str) -> Result<(), RpcError> {
    match given {
        Some(given) if given == expected => Ok(()),
        Some(given) => Err(mismatch(format!("{name} is {given:?}, but the body says {expected:?}"))),
        None => Err(mismatch(format!("{name} is missing, but the body says {expected:?}"))),
    }
}

/// Decodes a value that may be wrapped in base64.
pub(super) fn decode(name: &str, given: &str) -> Result<String, RpcError> {
    let wrapped = given.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let Some(wrapped) = wrapped else { return Ok(given.to_owned()) };
    let bytes = STANDARD.decode(wrapped).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| mismatch(format!("{name} is not valid base64 of UTF-8")))
}

pub(super) fn mismatch(why: impl AsRef<str>) -> RpcError {
    RpcError::new(HEADER_MISMATCH, format!("Header mismatch: {}", why.as_ref()))
}

/// The protocol version that the headers name.
pub(super) fn version(headers: &HeaderMap) -> Result<Option<ProtocolVersion>, Rejection> {
    let Some(name) = single_or_reject(headers, VERSION)? else { return Ok(None) };
    let unsupported = || Rejection::error(StatusCode::BAD_REQUEST, RpcError::unsupported_version(name));
    ProtocolVersion::parse(name).map(Some).ok_or_else(unsupported)
}
