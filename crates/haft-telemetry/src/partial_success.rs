//! Reads what a collector answers to a request that it has accepted only in part.
//!
//! The responses for spans and for metrics have the same fields: `partial_success` (1) with `rejected_…` (1) and `error_message` (2).

use haft_tool::Value;

const PARTIAL_SUCCESS_INDEX: u64 = 1;
const REJECTED_INDEX: u64 = 1;
const ERROR_MESSAGE_INDEX: u64 = 2;

/// Spans or data points that were not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedItems {
    /// How many.
    pub count: u64,
    /// Why.
    pub message: String,
}

/// What a response in JSON says. A warning about what was taken is left out.
pub(crate) fn rejected_in_json(response: &[u8]) -> Option<RejectedItems> {
    let response: Value = serde_json::from_slice(response).ok()?;
    let partial = &response["partialSuccess"];
    // In protocol buffers' JSON, 64-bit integers are strings.
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let count = ["rejectedSpans", "rejectedDataPoints"].iter().find_map(|name| number(&partial[*name]))?;
    let message = partial["errorMessage"].as_str().unwrap_or_default().to_owned();
    (count > 0).then_some(RejectedItems { count, message })
}

/// The same for a response in protocol buffers.
pub(crate) fn rejected_in_protobuf(response: &[u8]) -> Option<RejectedItems> {
    let (mut count, mut message) = (0, String::new());
    for_each_field(response, &mut |field, value| {
        if let (PARTIAL_SUCCESS_INDEX, FieldValue::Bytes(partial)) = (field, value) {
            let _ = for_each_field(partial, &mut |field, value| match (field, value) {
                (REJECTED_INDEX, FieldValue::Varint(rejected)) => count = rejected,
                (ERROR_MESSAGE_INDEX, FieldValue::Bytes(text)) => {
                    message = String::from_utf8_lossy(text).into_owned();
                }
                _ => {}
            });
        }
    })?;
    // A negative number is read as a very large one.
    (1..=i64::MAX as u64).contains(&count).then_some(RejectedItems { count, message })
}

enum FieldValue<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
}

/// Calls `visit` for each field that is a number or bytes; `None` if the message is malformed.
fn for_each_field<'a>(mut message: &'a [u8], visit: &mut dyn FnMut(u64, FieldValue<'a>)) -> Option<()> {
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let skipped = match tag & 7 {
            0 => {
                visit(tag >> 3, FieldValue::Varint(varint(&mut message)?));
                0
            }
            1 => 8,
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                visit(tag >> 3, FieldValue::Bytes(message.get(..length)?));
                length
            }
            5 => 4,
            _ => return None,
        };
        message = message.get(skipped..)?;
    }
    Some(())
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSE: &[u8] = b"\x0a\x0c\x08\xac\x02\x12\x07too old";

    fn rejected(count: u64, message: &str) -> RejectedItems {
        RejectedItems { count, message: message.to_owned() }
    }

    #[test]
    fn both_formats_say_the_same() {
        assert_eq!(rejected_in_protobuf(RESPONSE), Some(rejected(300, "too old")));
        let json = br#"{"partialSuccess": {"rejectedSpans": "300", "errorMessage": "too old"}}"#;
        assert_eq!(rejected_in_json(json), Some(rejected(300, "too old")));
        assert_eq!(
            rejected_in_json(br#"{"partialSuccess": {"rejectedDataPoints": 2}}"#),
            Some(rejected(2, ""))
        );
    }

    #[test]
    fn a_response_that_took_everything_or_is_none_says_nothing() {
        for nothing in [&b""[..], b"ok", b"{}", b"\x0a\x00", b"\x0a\x09\x12\x07warning", b"\x0a\xff\xff"] {
            assert_eq!(rejected_in_protobuf(nothing), None);
            assert_eq!(rejected_in_json(nothing), None);
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        haft_fuzz::check(&[RESPONSE], |response| {
            let _ = (rejected_in_protobuf(response), rejected_in_json(response));
        });
    }
}
