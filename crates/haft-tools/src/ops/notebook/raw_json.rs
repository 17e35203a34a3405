//! The parts of a JSON text as slices of it, so that one can be changed and the others stay byte for byte.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The keys and values of a JSON object; empty if `text` is not one.
pub(super) fn members(text: &str) -> Vec<(&str, &str)> {
    let members = serde_json::from_str(text).map_or_else(|_| Vec::new(), |Members(members)| members);
    members.into_iter().map(|(key, value)| (key.get(), value.get())).collect()
}

/// The items of a JSON array; empty if `text` is not one.
pub(super) fn items(text: &str) -> Vec<&str> {
    let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
    items.into_iter().map(RawValue::get).collect()
}

/// Where `part`, a slice of `text`, is.
pub(super) fn span(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// An object with duplicate keys and the order of the text.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_slices_of_the_text() {
        let text = r#" { "a" : [1 , "x,]\"" , {"b":[]} ], "c":null,"d" :-1.5e3 , "c":{} } "#;
        let list = r#"[1 , "x,]\"" , {"b":[]} ]"#;
        let found = members(text);
        assert_eq!(found, [("\"a\"", list), ("\"c\"", "null"), ("\"d\"", "-1.5e3"), ("\"c\"", "{}")]);
        assert_eq!(&text[span(text, found[0].1)], list);
        assert_eq!(items(list), ["1", r#""x,]\"""#, r#"{"b":[]}"#]);
        assert!(items("[ ]").is_empty() && members("{\n}").is_empty());
    }
}
