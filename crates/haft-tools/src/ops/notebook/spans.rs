//! Where the parts of a JSON text stand, so that one can be changed and all others stay as they are, byte for byte.
//!
//! The text was parsed before, so it is known to be JSON.

use std::ops::Range;

/// The members of the object that starts at `at`: the span of each key and of its value.
pub(super) fn members(text: &str, at: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let mut found = Vec::new();
    let mut at = space(text, at + 1);
    while text[at..].starts_with('"') {
        let key = at..value_end(text, at);
        // The colon.
        let start = space(text, space(text, key.end) + 1);
        let value = start..value_end(text, start);
        at = next(text, value.end);
        found.push((key, value));
    }
    found
}

/// The spans of the items of the array that starts at `at`.
pub(super) fn items(text: &str, at: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = space(text, at + 1);
    while !text[at..].is_empty() && !text[at..].starts_with(']') {
        let item = at..value_end(text, at);
        at = next(text, item.end);
        found.push(item);
    }
    found
}

/// Where the first value starts at or behind `at`.
pub(super) fn space(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len()
}

/// Behind a value: the next one, or the sign that closes the list.
fn next(text: &str, at: usize) -> usize {
    let at = space(text, at);
    if text[at..].starts_with(',') { space(text, at + 1) } else { at }
}

/// Where the value that starts at `at` ends.
fn value_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut end = at;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'"' => end = string_end(bytes, end),
            b'[' | b'{' => {
                depth += 1;
                end += 1;
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                end += 1;
            }
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => {
                end += 1;
                continue;
            }
            _ => {
                let rest = &bytes[end..];
                let word = rest.iter().position(|byte| b",:]} \t\r\n".contains(byte)).unwrap_or(rest.len());
                end += word;
            }
        }
        if depth == 0 {
            return end;
        }
    }
    end
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(byte) = bytes.get(end) {
        end += match byte {
            b'"' => return end + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_found_where_it_stands() {
        let text = r#" { "a" : [1 , "x,]\"" , {"b":[]} ], "c":null,"d" :-1.5e3 , "e":{} } "#;
        let found: Vec<(&str, &str)> =
            members(text, 1).into_iter().map(|(key, value)| (&text[key], &text[value])).collect();
        let list = r#"[1 , "x,]\"" , {"b":[]} ]"#;
        assert_eq!(found, [("\"a\"", list), ("\"c\"", "null"), ("\"d\"", "-1.5e3"), ("\"e\"", "{}")]);
        let parts: Vec<&str> = items(list, 0).into_iter().map(|item| &list[item]).collect();
        assert_eq!(parts, ["1", r#""x,]\"""#, r#"{"b":[]}"#]);
        assert!(items("[ ]", 0).is_empty() && members("{\n}", 0).is_empty());
    }
}
