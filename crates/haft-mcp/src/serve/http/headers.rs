//! What headers say, and whether the body says the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use hyper::{Method, StatusCode};
use serde_json::Value;

use super::answer::Refusal;
use crate::wire::{HEADER_MISMATCH, RpcError, Version};

/// Which session a request belongs to.
pub(super) const SESSION: &str = "mcp-session-id";
/// Which revision a request is written in.
pub(super) const VERSION: &str = "mcp-protocol-version";
/// The last event that a client has seen.
pub(super) const LAST_EVENT: &str = "last-event-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// A header that may be there once.
pub(super) fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let value = value.to_str().map_err(|_| mismatch(format!("{name} is not plain ASCII")))?;
            Ok(Some(value))
        }
        (Some(_), Some(_)) => Err(mismatch(format!("there is more than one {name}"))),
    }
}

/// The same, for a request that cannot be dealt with otherwise.
pub(super) fn one_or_refuse<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    one(headers, name).map_err(|error| Refusal::error(StatusCode::BAD_REQUEST, error))
}

/// Whether the body is what it has to be.
pub(super) fn content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut all = headers.get_all(CONTENT_TYPE).iter();
    let kind = match (all.next(), all.next()) {
        (Some(kind), None) => kind.to_str().unwrap_or_default(),
        _ => "",
    };
    let essence = kind.split(';').next().unwrap_or_default().trim();
    let plain = headers.get_all(CONTENT_ENCODING).iter().all(|coding| coding == "identity");
    if essence.eq_ignore_ascii_case("application/json") && plain {
        return Ok(());
    }
    let why = "Content-Type must be application/json, and there must be no Content-Encoding";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
}

/// Whether the client takes what it may get.
pub(super) fn accept(headers: &HeaderMap, method: &Method) -> Result<(), Refusal> {
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
    let takes = |kind: &&str| {
        let family = kind.split('/').next().unwrap_or_default();
        accepted.iter().any(|accepted| {
            *accepted == "*/*"
                || accepted.eq_ignore_ascii_case(kind)
                || accepted.strip_suffix("/*").is_some_and(|accepted| accepted.eq_ignore_ascii_case(family))
        })
    };
    if accepted.is_empty() || needed.iter().all(takes) {
        return Ok(());
    }
    Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, format!("Accept must have {}", needed.join(" and "))))
}

/// Whether the headers of a request of the new era say what its body says.
pub(super) fn agree(
    headers: &HeaderMap,
    version: &str,
    method: &str,
    params: &Value,
) -> Result<(), RpcError> {
    expect(VERSION, one(headers, VERSION)?, version)?;
    expect(METHOD, one(headers, METHOD)?, method)?;
    let named = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => None,
    };
    if let Some(named) = named.and_then(Value::as_str) {
        let given = one(headers, NAME)?.map(|given| decode(NAME, given)).transpose()?;
        expect(NAME, given.as_deref(), named)?;
    }
    Ok(())
}

fn expect(name: &str, given: Option<&str>, wanted: &str) -> Result<(), RpcError> {
    match given {
        Some(given) if given == wanted => Ok(()),
        Some(given) => Err(mismatch(format!("{name} is {given:?}, and the body says {wanted:?}"))),
        None => Err(mismatch(format!("{name} is missing, and the body says {wanted:?}"))),
    }
}

/// What a header stands for that may be wrapped because headers cannot hold everything.
pub(super) fn decode(name: &str, given: &str) -> Result<String, RpcError> {
    let wrapped = given.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let Some(wrapped) = wrapped else { return Ok(given.to_owned()) };
    let bytes = STANDARD.decode(wrapped).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| mismatch(format!("{name} is no text in base64")))
}

pub(super) fn mismatch(why: impl AsRef<str>) -> RpcError {
    RpcError::new(HEADER_MISMATCH, format!("Header mismatch: {}", why.as_ref()))
}

/// The revision that a request without a word about it in its body is written in, as far as its headers say.
pub(super) fn version(headers: &HeaderMap) -> Result<Option<Version>, Refusal> {
    let Some(word) = one_or_refuse(headers, VERSION)? else { return Ok(None) };
    let version = Version::parse(word);
    version.map(Some).ok_or_else(|| Refusal::error(StatusCode::BAD_REQUEST, RpcError::version(word)))
}
