//! Finds the id of a request that cannot be parsed, so that its sender gets an answer instead of a timeout.

use memchr::memchr2;
use serde_json::Value;

use super::RequestId;

/// The id of the request that `bytes` begin with: an object with a `method` and exactly one usable `id`.
///
/// Reads the members of the outermost object without decoding their values, so numbers out of range, invalid strings, deep
/// nesting and a missing end do not matter.
pub(super) fn request_id(bytes: &[u8]) -> Option<RequestId> {
    let mut text = Scanner { bytes, at: 0 };
    text.skip_whitespace();
    text.take(b'{')?;
    let (mut id, mut has_method) = (None, false);
    loop {
        text.skip_whitespace();
        let Some(name) = text.string() else { break };
        text.skip_whitespace();
        if text.take(b':').is_none() {
            break;
        }
        text.skip_whitespace();
        let value = text.value();
        match name {
            b"\"id\"" if id.is_some() => return None,
            b"\"id\"" => {
                id = Some(serde_json::from_slice::<Value>(value).ok().as_ref().and_then(RequestId::read));
            }
            b"\"method\"" => has_method = true,
            _ => {}
        }
        text.skip_whitespace();
        if text.take(b',').is_none() {
            break;
        }
    }
    id.flatten().filter(|_| has_method)
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn skip_whitespace(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// A string with its quotes; `None` if there is none, or if it has no end.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        self.take(b'"')?;
        loop {
            let rest = self.bytes.get(self.at..)?;
            let Some(found) = memchr2(b'"', b'\\', rest) else {
                self.at = self.bytes.len();
                return None;
            };
            self.at += found + 1;
            if rest.get(found) == Some(&b'"') {
                return self.bytes.get(start..self.at);
            }
            // The escaped character is part of the string.
            self.at = (self.at + 1).min(self.bytes.len());
        }
    }

    /// Any value, up to the comma or brace after it.
    fn value(&mut self) -> &'a [u8] {
        let (start, mut depth) = (self.at, 0_usize);
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b',' | b'}' | b']' if depth == 0 => break,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
        self.bytes.get(start..self.at).unwrap_or_default().trim_ascii_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_found_wherever_it_can_be_read() {
        let deep =
            format!(r#"{{"params":{}{},"method":"m","id":7}}"#, "[".repeat(100_000), "]".repeat(100_000));
        let cut = format!(r#"{{"method":"m","id":7,"params":{}"#, "{\"a\":".repeat(100_000));
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"\ud800"}}"#,
            r#"{"method":"m","params":{"a":1e999, "id": 8, "b": "}\"," },"id" : 7 }"#,
            r#" {"method":7,"id":7"#,
            r#"{"id":7,"method":"m","params":nonsense}"#,
            &deep,
            &cut,
        ] {
            assert_eq!(request_id(text.as_bytes()), Some(RequestId::Number(7)), "{text:.80}");
        }
        let named = br#"{"id":"a\"b","method":"m","params":1e999}"#;
        assert_eq!(request_id(named), Some(RequestId::Text("a\"b".to_owned())));
        assert_eq!(request_id(b"{\"id\":7,\"method\":\"\xff\"}"), Some(RequestId::Number(7)));
    }

    #[test]
    fn what_has_no_usable_id_has_none() {
        for text in [
            "",
            "{",
            "nonsense",
            r#"[{"id":7,"method":"m"}]"#,
            r#"{"id":7,"result":1e999}"#,
            r#"{"id":7,"id":8,"method":"m"}"#,
            r#"{"id":"\ud800","method":"m"}"#,
            r#"{"id":1e999,"method":"m"}"#,
            r#"{"id":7.5,"method":"m"}"#,
            r#"{"params":{"id":7},"method":"m"#,
            r#"{"params":"unfinished, "id":7,"method":"m"}"#,
        ] {
            assert_eq!(request_id(text.as_bytes()), None, "{text}");
        }
    }
}
