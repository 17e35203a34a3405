//! References within a schema.

use serde_json::Value;

/// Values that are searched for an anchor.
const MAX_SEARCHED: usize = 4000;

/// The target in `root` of `local`, the part of a reference after its `#`.
pub(super) fn find<'a>(root: &'a Value, local: &str) -> Option<&'a Value> {
    if local.is_empty() {
        return Some(root);
    }
    let local = decode(local);
    if local.starts_with('/') { root.pointer(&local) } else { anchored(root, &local) }
}

/// The subschema with this anchor.
fn anchored<'a>(root: &'a Value, anchor: &str) -> Option<&'a Value> {
    let mut left = vec![root];
    for _ in 0..MAX_SEARCHED {
        let one = left.pop()?;
        let named = |keyword: &str| one.get(keyword).and_then(Value::as_str) == Some(anchor);
        if named("$anchor") || named("$dynamicAnchor") {
            return Some(one);
        }
        match one {
            Value::Object(members) => left.extend(members.values()),
            Value::Array(all) => left.extend(all),
            _ => {}
        }
    }
    None
}

/// Decodes percent-encoding.
fn decode(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let made = match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
            _ => None,
        };
        decoded.push(made.unwrap_or(*byte));
        at += if made.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
