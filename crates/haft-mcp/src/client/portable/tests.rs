//! Tests of schema conversion.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn plain(schema: &Value) -> Value {
    plain_schema(schema).unwrap().0
}

fn refused(schema: &Value) -> String {
    plain_schema(schema).unwrap_err()
}

#[test]
fn plain_schema_is_unchanged() {
    let schema = json!({
        "type": "object", "description": "All of it.",
        "properties": {
            "path": {"type": "string", "description": "Where.", "minLength": 1},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 5},
            "more": {"anyOf": [{"type": "string"}, {"type": "number"}]},
            "maybe": {"type": ["string", "null"]},
        },
        "required": ["path"], "additionalProperties": false,
    });
    assert_eq!(plain(&schema), schema);
}

#[test]
fn empty_schema_is_an_empty_object() {
    let empty = json!({"type": "object", "properties": {}});
    for schema in [
        json!({}),
        Value::Null,
        json!({"type": "object"}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema"}),
    ] {
        assert_eq!(plain(&schema), empty, "{schema}");
    }
    let nonsense = json!({"type": "object", "properties": [1], "required": "all", "additionalProperties": 7, "enum": {}, "minLength": -1});
    assert_eq!(plain(&nonsense), empty);
}

#[test]
fn schema_that_is_not_an_object_is_refused() {
    for schema in [json!([]), json!("object"), json!(true), json!(7)] {
        assert_eq!(refused(&schema), "its schema is not an object");
    }
    for schema in
        [json!({"type": "array", "items": {}}), json!({"anyOf": [{"type": "string"}, {"type": "null"}]})]
    {
        assert_eq!(refused(&schema), "its arguments are not an object");
    }
}

#[test]
fn references_are_inlined() {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"$ref": "#/$defs/user%49d", "description": "Whose."},
            "by": {"$ref": "#/definitions/a~1b"}, "an": {"$ref": "#anchored"}, "gone": {"$ref": "#/nowhere"},
        },
        "$defs": {"userId": {"type": "string", "title": "Id"}, "x": {"$anchor": "anchored", "type": "boolean"}},
        "definitions": {"a/b": {"$ref": "#/$defs/userId"}},
    });
    let properties = json!({
        "id": {"type": "string", "description": "Whose."}, "by": {"type": "string"}, "an": {"type": "boolean"}, "gone": {},
    });
    assert_eq!(plain(&schema), json!({"type": "object", "properties": properties}));
}

#[test]
fn recursive_schema_is_cut() {
    let schema = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "self": {"$ref": "#/$defs/a"}, "tree": {"$ref": "#/$defs/tree"}},
        "$defs": {
            "a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"},
            "tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}},
        },
    });
    let plain = plain(&schema);
    assert_eq!(plain["properties"]["self"], json!({}));
    assert_eq!(plain["properties"]["tree"], json!({"type": "object", "properties": {"left": {}}}));
    assert_eq!(plain["properties"]["next"]["properties"]["next"], json!({}));
}

#[test]
fn remote_reference_is_refused() {
    for reference in
        ["http://127.0.0.1:9/schema.json", "file:///etc/passwd", "other.json#/a", "//evil.example/x"]
    {
        let schema = json!({"type": "object", "properties": {"a": {"items": {"$ref": reference}}}});
        assert!(refused(&schema).contains("not fetched"), "{reference}");
    }
}

#[test]
fn alternatives_at_the_top_level_are_merged() {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": text, "b": text}});
    assert_eq!(plain(&schema), json!({"type": "object", "properties": {"a": text, "b": text}}));
    let schema = json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "x"}, "a": text}, "required": ["kind", "a"]},
        {"type": "object", "properties": {"kind": {"const": "y"}}, "required": ["kind"]},
        {"type": "string"},
    ]});
    let kind = json!({"anyOf": [{"enum": ["x"]}, {"enum": ["y"]}]});
    assert_eq!(
        plain(&schema),
        json!({"properties": {"kind": kind, "a": text}, "required": ["kind"], "type": "object"})
    );
    let schema = json!({"allOf": [
        {"properties": {"a": text}, "required": ["a"]}, {"properties": {"b": text, "a": {"description": "A."}}, "required": ["b"]},
    ]});
    let a = json!({"type": "string", "description": "A."});
    assert_eq!(
        plain(&schema),
        json!({"properties": {"a": a, "b": text}, "required": ["a", "b"], "type": "object"})
    );
}

#[test]
fn invalid_property_names_are_left_out_unless_required() {
    let long = "p".repeat(200);
    let schema = json!({"type": "object", "properties": {long: {}, "with space": {}, "": {}, "$dollar": {}, "fine.one": {}}});
    let (plain, left_out) = plain_schema(&schema).unwrap();
    assert_eq!(plain["properties"], json!({"fine.one": {}}));
    assert_eq!(left_out.len(), 4);
    let schema = json!({"type": "object", "properties": {"with space": {}}, "required": ["with space"]});
    assert!(refused(&schema).contains("with space"));
}

#[test]
fn size_of_a_schema_is_limited() {
    let many: Map<String, Value> = (0..10_000)
        .map(|n| (format!("p{n}"), json!({"type": "string", "description": "d".repeat(60)})))
        .collect();
    assert!(refused(&json!({"type": "object", "properties": many})).contains("subschemas"));
    // Each definition refers twice to the next one: a billion subschemas when inlined.
    let mut defs = Map::from_iter([("d0".to_owned(), json!({"type": "string"}))]);
    for n in 1..30 {
        let next = json!({"$ref": format!("#/$defs/d{}", n - 1)});
        defs.insert(format!("d{n}"), json!({"properties": {"a": next, "b": next}}));
    }
    assert!(refused(&json!({"$ref": "#/$defs/d20", "$defs": defs})).contains("subschemas"));
    let words = json!({"type": "object", "properties": {"a": {"enum": vec!["x".repeat(1000); 100]}}});
    assert!(refused(&words).contains("bytes"));
}

#[test]
fn tool_is_cleaned_and_bounded() {
    let tool = ServerTool {
        name: "odd \u{202e}name".to_owned(),
        title: Some("\u{200b}".to_owned()),
        description: format!("Does\u{e0041} this.{}", "x".repeat(10_000)),
        input_schema: json!({"properties": {"a": {"description": "What\u{1b}[2J to say."}}}),
        output_schema: None,
        annotations: Value::Null,
    };
    let portable = make_portable(&tool).unwrap();
    assert_eq!((portable.name, portable.title), (tool.name.clone(), None));
    assert!(portable.description.starts_with("Does this.xxx") && portable.description.len() < 5000);
    assert_eq!(portable.input_schema["properties"]["a"]["description"], "What to say.");
    let endless = ServerTool { name: "n".repeat(100_000), ..tool };
    assert!(make_portable(&endless).is_err());
}

/// Whether every provider accepts the schema.
fn is_accepted_by_all(schema: &Value, depth: usize) -> bool {
    const KNOWN: [&str; 18] = [
        "type",
        "description",
        "properties",
        "required",
        "items",
        "additionalProperties",
        "enum",
        "default",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "anyOf",
    ];
    let Some(fields) = schema.as_object() else { return schema.is_boolean() };
    let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    depth < 60
        && fields.keys().all(|key| KNOWN.contains(&key.as_str()))
        && fields.get("properties").is_none_or(|members| {
            members.as_object().is_some_and(|members| {
                let named = members
                    .keys()
                    .all(|name| (1..=64).contains(&name.len()) && name.bytes().all(is_accepted));
                named && members.values().all(|member| is_accepted_by_all(member, depth + 1))
            })
        })
        && fields.get("required").is_none_or(|names| {
            let known = |name: &Value| fields["properties"].get(name.as_str().unwrap_or_default()).is_some();
            names.as_array().is_some_and(|names| !names.is_empty() && names.iter().all(known))
        })
        && fields.get("anyOf").is_none_or(|all| {
            all.as_array().is_some_and(|all| {
                !all.is_empty() && all.iter().all(|one| is_accepted_by_all(one, depth + 1))
            })
        })
        && ["items", "additionalProperties"]
            .iter()
            .all(|key| fields.get(*key).is_none_or(|one| is_accepted_by_all(one, depth + 1)))
}

/// Values that look like schemas, valid or not.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        Just(json!(false)),
        Just(Value::Null),
        Just(json!([1])),
        Just(json!("object")),
        "[a-z#/$]{0,8}".prop_map(|text| json!({"$ref": text})),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/properties/a"})),
        Just(json!({"$ref": "#/$defs/a"})),
        proptest::sample::select(vec!["object", "array", "string", "null", "odd"])
            .prop_map(|kind| json!({"type": kind})),
        Just(json!({"type": ["object", "string", "null"]})),
        Just(json!({"enum": [1, {}, "a"]})),
        Just(json!({"const": {}})),
        "[\u{0}-\u{ff}\u{200b}-\u{202e}]{0,10}"
            .prop_map(|text| json!({"description": text, "minLength": -1, "pattern": "("})),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let members = proptest::collection::btree_map("[a-b ]{0,2}", inner.clone(), 0..3);
        let list = proptest::collection::vec(inner.clone(), 0..3);
        let keyword = proptest::sample::select(vec!["anyOf", "oneOf", "allOf"]);
        let single = proptest::sample::select(vec![
            "items",
            "additionalProperties",
            "not",
            "if",
            "properties",
            "required",
            "type",
        ]);
        prop_oneof![
            (members.clone(), proptest::collection::vec("[a-b ]{0,2}", 0..3)).prop_map(
                |(members, required)| json!({"type": "object", "properties": members, "required": required})
            ),
            (members, Just(()))
                .prop_map(|(members, ())| json!({"$defs": members, "allOf": [{"$ref": "#/$defs/a"}]})),
            (keyword, list, inner.clone()).prop_map(|(keyword, list, also)| {
                let mut schema = json!({"properties": {"a": also}});
                schema[keyword] = json!(list);
                schema
            }),
            (single, inner).prop_map(|(keyword, one)| {
                let mut schema = json!({});
                schema[keyword] = one;
                schema
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_schema_becomes_plain_or_is_refused(schema in schemas()) {
        if let Ok((plain, _)) = plain_schema(&schema) {
            prop_assert_eq!(&plain["type"], "object");
            prop_assert!(plain["properties"].is_object());
            prop_assert!(plain.get("anyOf").is_none());
            prop_assert!(is_accepted_by_all(&plain, 0), "{} became {}", schema, plain);
            let again = plain_schema(&plain).unwrap().0;
            prop_assert_eq!(again, plain, "the conversion is idempotent");
        }
    }
}
