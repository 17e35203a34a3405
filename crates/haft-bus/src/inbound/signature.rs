//! Signatures and tokens of requests. All comparisons take the same time, whatever differs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::signature::{ED25519, UnparsedPublicKey};

use super::{InboundError, InboundRequest};

/// How far the time of a signature may be from now, in seconds; an older request may be a recorded one.
const MAX_AGE_SECS: u64 = 300;

/// The value of a header that a signed request has.
pub(super) fn required<'a>(request: &InboundRequest<'a>, name: &str) -> Result<&'a str, InboundError> {
    (request.header)(name).ok_or_else(|| {
        InboundError::unauthorized(format!("The header {name} is missing, or there are several"))
    })
}

/// The time of a signature, as text. It must be near.
pub(super) fn recent_timestamp<'a>(
    request: &InboundRequest<'a>,
    name: &str,
) -> Result<&'a str, InboundError> {
    let text = required(request, name)?;
    let time: Option<u64> = text.parse().ok();
    let Some(time) = time else {
        return Err(InboundError::unauthorized(format!("{name} is not a number of seconds since 1970")));
    };
    if time.abs_diff(request.now) > MAX_AGE_SECS {
        let why = format!(
            "{name} is more than {MAX_AGE_SECS} seconds from now; the request is too old, or a clock is wrong"
        );
        return Err(InboundError::unauthorized(why));
    }
    Ok(text)
}

/// A key for HMAC-SHA256.
pub(super) fn hmac_key(secret: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret)
}

/// Whether a signature fits the parts, in their order.
pub(super) fn is_signed_by(key: &hmac::Key, parts: &[&[u8]], signature: &[u8]) -> bool {
    hmac::verify(key, &parts.concat(), signature).is_ok()
}

/// Whether a token is the expected one.
pub(super) fn is_token(expected: &str, given: &str) -> bool {
    let key = hmac_key(expected.as_bytes());
    let of_expected = hmac::sign(&key, expected.as_bytes());
    hmac::verify(&key, given.as_bytes(), of_expected.as_ref()).is_ok()
}

/// Whether an Ed25519 signature fits the parts, in their order.
pub(super) fn is_signed_by_ed25519(public_key: &[u8; 32], parts: &[&[u8]], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ED25519, public_key).verify(&parts.concat(), signature).is_ok()
}

pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Decodes hexadecimal digits.
pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

pub(super) fn wrong_signature() -> InboundError {
    InboundError::unauthorized("The signature does not fit the request")
}
