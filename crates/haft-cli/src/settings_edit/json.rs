//! One member of a JSON file. Comments and trailing commas are allowed, as editors allow them.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::{BYTE_ORDER_MARK, NOT_UNDERSTOOD, like_old};

/// JSON with comments and trailing commas; none of JSON5's other extensions.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Returns the value of the text, or `None` if it holds only whitespace and comments.
pub(crate) fn read(text: &str) -> Result<Option<Value>, String> {
    let root = parse(text)?;
    Ok(root.value().and_then(|value| value.to_serde_value()))
}

/// Returns the text with the member at `path` set to `value`, creating the objects on the way.
pub(crate) fn put(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    let (last, parents) = path.split_last().ok_or("no member is named")?;
    let root = parse(text)?;
    let mut object = root.object_value_or_create().ok_or("it does not hold an object")?;
    for name in parents {
        unique(&object, name)?;
        object = object.object_value_or_create(name).ok_or_else(|| format!("{name:?} is not an object"))?;
    }
    match unique(&object, last)? {
        Some(member) if member.to_serde_value().as_ref() == Some(value) => return Ok(text.to_owned()),
        Some(member) => member.set_value(input(value)),
        None => drop(object.append(last, input(value))),
    }
    finish(text, &root, path, Some(value))
}

/// Returns the text without the member at `path`, or `None` if there is no such member.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<Option<String>, String> {
    let (last, parents) = path.split_last().ok_or("no member is named")?;
    let root = parse(text)?;
    let mut object = root.object_value();
    for name in parents {
        object = match object {
            Some(object) => unique(&object, name)?.and_then(|member| member.object_value()),
            None => return Ok(None),
        };
    }
    let Some(object) = object else { return Ok(None) };
    let Some(member) = unique(&object, last)? else { return Ok(None) };
    member.remove();
    finish(text, &root, path, None).map(Some)
}

/// Returns the text with the values appended to the list at `path`, in which all comments stay.
pub(crate) fn append(text: &str, path: &[&str], values: &[Value]) -> Result<String, String> {
    edit_list(text, path, |list, items| {
        for value in values {
            list.append(input(value));
        }
        items.extend(values.iter().cloned());
    })
}

/// Returns the text with the values removed from the list at `path`.
pub(crate) fn remove_items(text: &str, path: &[&str], values: &[Value]) -> Result<String, String> {
    edit_list(text, path, |list, items| {
        for element in list.elements() {
            if element.to_serde_value().is_some_and(|value| values.contains(&value)) {
                element.remove();
            }
        }
        items.retain(|value| !values.contains(value));
    })
}

/// Edits the list at `path` in the syntax tree and, to check the result, as a value.
fn edit_list(
    text: &str,
    path: &[&str],
    edit: impl FnOnce(&CstArray, &mut Vec<Value>),
) -> Result<String, String> {
    let (last, parents) = path.split_last().ok_or("no member is named")?;
    let root = parse(text)?;
    let mut object = root.object_value().ok_or(NOT_UNDERSTOOD)?;
    for name in parents {
        object = unique(&object, name)?.and_then(|member| member.object_value()).ok_or(NOT_UNDERSTOOD)?;
    }
    let list = unique(&object, last)?.and_then(|member| member.array_value()).ok_or(NOT_UNDERSTOOD)?;
    let mut items: Vec<Value> = list.elements().iter().filter_map(CstNode::to_serde_value).collect();
    edit(&list, &mut items);
    finish(text, &root, path, Some(&Value::Array(items)))
}

fn parse(text: &str) -> Result<CstRootNode, String> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    CstRootNode::parse(text, &OPTIONS)
        .map_err(|error| format!("line {}: {}", error.line_display(), error.kind()))
}

/// Returns the text of the edited tree after checking that the member at `path` has the expected value.
fn finish(old: &str, root: &CstRootNode, path: &[&str], expected: Option<&Value>) -> Result<String, String> {
    let new = like_old(old, root.to_string());
    let now = read(&new)?.unwrap_or_default();
    let found = path.iter().try_fold(&now, |value, name| value.get(*name));
    if found == expected { Ok(new) } else { Err(NOT_UNDERSTOOD.to_owned()) }
}

/// Returns the member of that name. Two members of one name are refused, because readers disagree on which one counts.
fn unique(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, String> {
    let mut found =
        object.properties().into_iter().filter(|member| member.decoded_name().as_deref() == Some(name));
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(format!("{name:?} is there twice; remove one first")),
        (first, None) => Ok(first),
    }
}

/// The value in the form that the syntax tree takes.
fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const PATH: &[&str] = &["mcpServers", "haft"];

    fn entry() -> Value {
        json!({"command": "/x/haft", "args": ["mcp", "a \" b"], "env": {}})
    }

    #[test]
    fn new_member_follows_the_layout_of_its_neighbours() {
        let texts = [
            "",
            "// nothing yet\n",
            "{}",
            "{\n}\n",
            "{\"a\":1}",
            "{\n\t\"a\": 1 // one\n}\n",
            "{\n    \"a\": 1,\n    \"mcpServers\": {},\n    \"z\": 2\n}\n",
            "{\n  \"mcpServers\": {\n    \"x\": {\"command\": \"x\"}, // mine\n    // the end\n  },\n}\n",
            "{\n  \"mcpServers\": {\n    \"haft\": {\n      \"command\": \"old\" // gone\n    },\n    \"x\": {}\n  }\n}\n",
        ];
        let shown = texts.map(|text| format!("{text}\n--->\n{}", put(text, PATH, &entry()).unwrap()));
        insta::assert_snapshot!("json_layouts", shown.join("\n=======\n"));
    }

    #[test]
    fn removing_a_new_member_restores_the_text() {
        for text in [
            "{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}\n",
            "{\n\t\"mcpServers\": {\n\t\t// first\n\t\t\"x\": {}, // mine\n\t\t/* last */\n\t},\n}",
            "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"x\": 1\r\n  }\r\n}\r\n",
        ] {
            let with = put(text, PATH, &entry()).unwrap();
            assert_eq!(put(&with, PATH, &entry()).unwrap(), with, "a second put changes nothing");
            assert_eq!(remove(&with, PATH).unwrap().as_deref(), Some(text), "{with}");
        }
        assert_eq!(remove("{\"mcpServers\": 1}", PATH).unwrap(), None);
    }

    #[test]
    fn comments_in_a_list_stay() {
        let path = &["permissions", "deny"];
        for text in [
            "{\"permissions\": {\"deny\": []}}",
            "{\"permissions\": {\"deny\": [ \"Foo\",  \"Bar\" ]}}",
            "{\n  \"permissions\": {\n    \"deny\": [\n      \"Foo\", // keep\n      // and this\n      \"Bar\"\n    ]\n  }\n}\n",
            "{\n  \"permissions\": {\n    \"deny\": [\n      \"Foo\", // keep\n      \"Bar\", // last\n      /* end */\n    ],\n  },\n}\n",
            "{\n  \"permissions\": {\n    \"deny\": [\n      \"Foo\" // keep\n    ]\n  }\n}\n",
            "{\r\n  \"permissions\": {\"deny\": [\"Foo\", // keep\r\n  \"Bar\"]}}\r\n",
        ] {
            let values = [json!("Bash"), json!("Edit")];
            let with = append(text, path, &values).unwrap();
            for comment in ["// keep", "// and this", "// last", "/* end */"] {
                assert_eq!(with.contains(comment), text.contains(comment), "{with}");
            }
            let without = remove_items(&with, path, &values).unwrap();
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(bare(&without), bare(text), "{with}");
        }
        assert!(append("{\"permissions\": {\"deny\": 1}}", path, &[]).is_err());
    }

    #[test]
    fn invalid_or_ambiguous_files_are_refused() {
        for text in [
            "{",
            "[]",
            "\"x\"",
            "{\"a\":}",
            "{,}",
            "{\"a\":1,,}",
            "{} {}",
            "{\"a\": 1 /* }",
            "{'a': 1}",
            "{\"mcpServers\": []}",
            "{\"mcpServers\": {}, \"mcpServers\": {}}",
            "{\"mcpServers\": {\"haft\": 1, \"haft\": 2}}",
        ] {
            assert!(put(text, PATH, &entry()).is_err(), "{text}");
        }
        assert!(put(&format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000)), PATH, &entry()).is_err());
        assert!(put("{\n  \"a\": ,\n}", PATH, &entry()).is_err_and(|why| why.contains("line 2")));
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z/*\"\\\\ {}é]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("mcpServers|haft|a|b", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_edit_changes_one_member_only(value in json_value(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            if let Ok(with) = put(&text, PATH, &entry()) {
                let mut expected = value;
                expected.as_object_mut().unwrap().entry("mcpServers").or_insert_with(|| json!({}))["haft"] = entry();
                prop_assert_eq!(read(&with).unwrap(), Some(expected.clone()));
                expected["mcpServers"].as_object_mut().unwrap().shift_remove("haft");
                let without = remove(&with, PATH).unwrap().unwrap();
                prop_assert_eq!(read(&without).unwrap(), Some(expected));
            }
        }

        #[test]
        fn any_text_is_edited_or_refused(text in "[{}\\[\\],:\"/*\\\\ \na0é]{0,40}") {
            if let Ok(new) = put(&text, PATH, &entry()) {
                prop_assert!(read(&new).is_ok());
            }
            let _ = remove(&text, PATH);
        }
    }
}
