//! Cuts a JSON value so that it stays JSON: each cut part says itself what is missing.

use serde_json::{Map, Value, json};

/// How a result that is one JSON value is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonBound {
    /// The most bytes of its compact text.
    pub max_bytes: usize,
    /// The most bytes of each of its strings, and the field to set if one of them was longer.
    pub strings: Option<(usize, &'static str)>,
}

impl JsonBound {
    /// Whether `value` would be cut.
    pub fn cuts(&self, value: &Value) -> bool {
        size(value) > self.max_bytes || self.too_long(value)
    }

    /// Cuts `value`; returns whether anything was left out.
    pub fn apply(&self, value: &mut Value) -> bool {
        let long = self.too_long(value);
        if let (Some((most, flag)), Value::Object(members), true) = (self.strings, &mut *value, long) {
            for member in members.values_mut() {
                if let Value::String(text) = member {
                    text.truncate(text.floor_char_boundary(most));
                }
            }
            members.insert(flag.to_owned(), Value::Bool(true));
        }
        let large = size(value) > self.max_bytes;
        fit(value, self.max_bytes);
        long || large
    }

    fn too_long(&self, value: &Value) -> bool {
        let Some((most, _)) = self.strings else { return false };
        let long = |value: &Value| value.as_str().is_some_and(|text| text.len() > most);
        value.as_object().is_some_and(|members| members.values().any(long))
    }
}

/// A string that says how long it was, made from its beginning.
pub fn cut_string(mut beginning: String, total_bytes: u64) -> String {
    if total_bytes > beginning.len() as u64 {
        beginning.push_str(&suffix(total_bytes));
    }
    beginning
}

/// The beginning of a string with a note of how long it was, in `max_bytes` bytes.
pub(super) fn cut_to(mut text: String, total_bytes: u64, max_bytes: usize) -> String {
    let suffix = suffix(total_bytes);
    text.truncate(text.floor_char_boundary(max_bytes.saturating_sub(suffix.len())));
    text.push_str(&suffix);
    text
}

/// A list that says how long it was, made from its first items.
pub fn cut_list(mut items: Vec<Value>, total: u64) -> Value {
    if total > items.len() as u64 {
        items.push(marker(total));
    }
    Value::Array(items)
}

fn suffix(total_bytes: u64) -> String {
    format!("... [truncated, original size: {total_bytes} bytes]")
}

fn marker(total: u64) -> Value {
    json!({"_truncated": true, "original_count": total})
}

/// Makes the compact text of `value` at most `room` bytes long, or as short as its notes about what is missing allow.
fn fit(value: &mut Value, room: usize) {
    if size(value) <= room {
        return;
    }
    match value {
        Value::String(text) => shorten(text, room),
        Value::Array(items) => lead(items, room),
        Value::Object(members) => share(members, room),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn shorten(text: &mut String, room: usize) {
    // A string that was cut before still says how long it was at first.
    let (whole, total) = match said_before(text) {
        Some((beginning, total)) => (beginning, total),
        None => (text.len(), text.len() as u64),
    };
    let suffix = suffix(total);
    let mut left = room.saturating_sub(suffix.len() + 2);
    let mut end = 0;
    for letter in text[..whole].chars() {
        let Some(rest) = left.checked_sub(escaped(letter)) else { break };
        left = rest;
        end += letter.len_utf8();
    }
    text.truncate(end);
    text.push_str(&suffix);
}

/// Where the text itself ends, and the length that its note gives.
fn said_before(text: &str) -> Option<(usize, u64)> {
    let beginning = text.strip_suffix(" bytes]")?;
    let (beginning, total) = beginning.rsplit_once("... [truncated, original size: ")?;
    Some((beginning.len(), total.parse().ok()?))
}

/// How many bytes a character takes inside a JSON string.
fn escaped(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        letter => letter.len_utf8(),
    }
}

fn lead(items: &mut Vec<Value>, room: usize) {
    let before = items
        .last()
        .filter(|last| last["_truncated"] == true)
        .and_then(|last| last["original_count"].as_u64());
    if before.is_some() {
        items.pop();
    }
    let marker = marker(before.unwrap_or(items.len() as u64));
    let mut left = room.saturating_sub(size(&marker) + 2);
    let mut kept = 0;
    for item in items.iter_mut() {
        let mut needed = size(item) + 1;
        if needed > left && kept == 0 {
            // An item that is too large for the whole room is better shown in part than not at all.
            fit(item, left.saturating_sub(1));
            needed = size(item) + 1;
        }
        let Some(rest) = left.checked_sub(needed) else { break };
        left = rest;
        kept += 1;
    }
    items.truncate(kept);
    items.push(marker);
}

/// Small members stay whole; the large ones share what is left.
fn share(members: &mut Map<String, Value>, room: usize) {
    let name = |name: &str| name.chars().map(escaped).sum::<usize>() + 4;
    let mut names: usize = members.keys().map(|key| name(key)).sum();
    if names > room / 2 {
        let total = members.len();
        while names > room / 2
            && let Some(last) = members.keys().next_back().cloned()
        {
            names -= name(&last);
            members.shift_remove(&last);
        }
        members.insert("_truncated".to_owned(), Value::Bool(true));
        members.insert("original_count".to_owned(), Value::from(total));
        names += 40;
    }
    let mut left = room.saturating_sub(names + 2);
    let mut by_size: Vec<(usize, &mut Value)> =
        members.values_mut().map(|value| (size(value), value)).collect();
    by_size.sort_by_key(|(size, _)| *size);
    let mut waiting = by_size.len();
    for (_, value) in by_size {
        fit(value, left / waiting);
        left = left.saturating_sub(size(value));
        waiting -= 1;
    }
}

/// How many bytes the compact text of `value` has.
fn size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail, and a JSON value always has a text.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(mut value: Value, max_bytes: usize) -> (Value, bool) {
        let cut = JsonBound { max_bytes, strings: None }.apply(&mut value);
        assert!(
            !cut || value.to_string().len() <= max_bytes,
            "{} > {max_bytes}: {value}",
            value.to_string().len()
        );
        (value, cut)
    }

    #[test]
    fn what_fits_is_untouched() {
        let value = json!({"content": "äöü"});
        assert_eq!(cut(value.clone(), value.to_string().len()), (value, false));
    }

    #[test]
    fn a_string_keeps_its_beginning_and_says_how_long_it_was() {
        let (value, _) = cut(json!("\n".repeat(100)), 70);
        assert_eq!(value, json!(format!("{}... [truncated, original size: 100 bytes]", "\n".repeat(13))));
        let (value, _) = cut(json!("日".repeat(40)), 70);
        assert_eq!(value, json!(format!("{}... [truncated, original size: 120 bytes]", "日".repeat(9))));
    }

    #[test]
    fn a_list_keeps_its_first_items_and_says_how_many_there_were() {
        let (value, _) = cut(json!((0..1_000).collect::<Vec<_>>()), 60);
        assert_eq!(value, json!([0, 1, 2, 3, 4, 5, 6, 7, {"_truncated": true, "original_count": 1000}]));
        let (value, _) = cut(json!(["x".repeat(500), 1]), 120);
        assert_eq!(value[1], json!({"_truncated": true, "original_count": 2}));
        assert!(value[0].as_str().unwrap().ends_with("xx... [truncated, original size: 500 bytes]"));
    }

    #[test]
    fn small_members_stay_whole_and_large_ones_share_the_room() {
        let value = json!({"exit_code": 0, "stdout": "a".repeat(9_000), "stderr": "b".repeat(9_000), "duration_ms": 7});
        let (value, _) = cut(value, 1_000);
        assert_eq!((&value["exit_code"], &value["duration_ms"]), (&json!(0), &json!(7)));
        for (name, letter) in [("stdout", "aaa"), ("stderr", "bbb")] {
            let text = value[name].as_str().unwrap();
            assert!(text.starts_with(letter) && text.ends_with("... [truncated, original size: 9000 bytes]"));
            assert!(text.len() > 400, "{}", text.len());
        }
        let many: Map<String, Value> = (0..100).map(|n| (format!("name{n}"), json!(n))).collect();
        let (value, _) = cut(Value::Object(many), 300);
        assert_eq!((&value["_truncated"], &value["original_count"]), (&json!(true), &json!(100)));
    }

    #[test]
    fn what_was_cut_twice_tells_its_first_length() {
        let (value, _) = cut(json!(cut_string("x".repeat(500), 9_999)), 100);
        assert!(value.as_str().unwrap().ends_with("xx... [truncated, original size: 9999 bytes]"));
        let (value, _) = cut(cut_list((0..100).map(Value::from).collect(), 100_000), 80);
        assert_eq!(value.as_array().unwrap().last().unwrap()["original_count"], 100_000);
    }

    #[test]
    fn a_limit_for_each_string_cuts_without_a_word_but_sets_the_flag() {
        let bound = JsonBound { max_bytes: 10_000, strings: Some((5, "truncated")) };
        let mut value = json!({"stdout": "ab日日", "stderr": "abc", "truncated": false});
        assert!(bound.cuts(&value) && bound.apply(&mut value));
        assert_eq!(value, json!({"stdout": "ab日", "stderr": "abc", "truncated": true}));
        assert!(!bound.cuts(&value) && !bound.apply(&mut value));
    }
}
