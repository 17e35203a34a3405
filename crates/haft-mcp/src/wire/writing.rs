//! JSON as bytes. The same bytes that `serde_json` writes; only that text, which is most of what goes over the wire, is
//! looked at eight bytes at a time.

use serde_json::Value;

/// Writes a value behind what is there.
pub(super) fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        // Writing to memory cannot fail.
        Value::Number(number) => drop(serde_json::to_writer(out, number)),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_value(out, item);
            }
            out.push(b']');
        }
        Value::Object(fields) => {
            out.push(b'{');
            for (at, (name, value)) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_text(out, name);
                out.push(b':');
                write_value(out, value);
            }
            out.push(b'}');
        }
    }
}

/// Writes a text in quotes.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    // Some more, for what is escaped and for what comes behind a long text.
    out.reserve(rest.len() + rest.len() / 8 + 16);
    out.push(b'"');
    loop {
        let (plain, behind) = rest.split_at(plain(rest));
        out.extend_from_slice(plain);
        let Some((special, next)) = behind.split_first() else { break };
        let short = match special {
            b'"' | b'\\' => *special,
            b'\n' => b'n',
            b'\t' => b't',
            b'\r' => b'r',
            0x08 => b'b',
            0x0c => b'f',
            _ => b'u',
        };
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let (high, low) = (usize::from(special >> 4), usize::from(special & 15));
            out.extend_from_slice(&[b'0', b'0', DIGITS[high], DIGITS[low]]);
        }
        rest = next;
    }
    out.push(b'"');
}

/// How many bytes there are before the first that cannot stand in a JSON text as it is.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const TOPS: u64 = ONES << 7;
    let mut words = bytes.chunks_exact(8);
    let mut at = 0;
    for word in words.by_ref() {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        // The top bit of a byte is set where something is less than zero, and the lowest such byte is always right.
        let zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let special = (control | zero(word ^ (ONES * 0x22)) | zero(word ^ (ONES * 0x5c))) & TOPS;
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    at + words.remainder().iter().position(special).unwrap_or(words.remainder().len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let text =
            || prop_oneof![".{0,40}", "[\\x00-\\x7f]{0,40}", "[\"\\\\a\\n\\x1f\\x7f\u{80}\u{2028}é😀]{0,40}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((text(), inner), 0..6).prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_serde_json_writes(value in any_value()) {
            let mut written = Vec::new();
            write_value(&mut written, &value);
            prop_assert_eq!(String::from_utf8(written).unwrap(), value.to_string());
        }
    }

    #[test]
    fn every_byte_is_escaped_as_serde_json_does_wherever_it_stands() {
        for special in (0..128_u8).map(char::from).chain(['é', '\u{ffff}']) {
            for before in 0..20 {
                let text = format!("{}{special}{}", "x".repeat(before), "y".repeat(20 - before));
                let mut written = Vec::new();
                write_text(&mut written, &text);
                assert_eq!(String::from_utf8(written).unwrap(), serde_json::to_string(&text).unwrap());
            }
        }
    }
}
