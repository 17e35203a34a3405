//! The types of `claude` agree with those that its maker published (npm's `@anthropic-ai/claude-agent-sdk` 0.2.38).
//!
//! `cargo xtask test` fetches them into its cache and names the file in `$HAFT_SDK_TYPES`; nothing of them is kept here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft::{Value, json};

use crate::schemas::shape::of_schema;
use crate::schemas::{defined, typescript};

/// Published names that differ from those on the wire.
const NAMES: &[(&str, &str)] = &[("FileRead", "Read"), ("FileWrite", "Write"), ("FileEdit", "Edit")];

/// Where Haft takes more than was published, and why.
const MORE: &[(&str, &str, &str)] = &[
    ("/ExitPlanMode/fields/plan", "\"string\"", "further members may be anything, and clients send this one"),
    ("/Grep/fields/-o", "\"boolean\"", "later versions have it"),
    ("/WebFetch/fields/offset", "\"number\"", "later versions have it"),
    ("/TaskOutput/required", "[\"task_id\"]", "both have a default"),
];

/// Where the published file is.
fn file() -> PathBuf {
    let cache = || {
        let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let base = base.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")));
        base.unwrap_or_default().join("haft-peers/claude-agent-sdk-0.2.38/sdk-tools.d.ts")
    };
    std::env::var_os("HAFT_SDK_TYPES").map_or_else(cache, PathBuf::from)
}

fn published() -> BTreeMap<String, Value> {
    let file = file();
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| {
        panic!(
            "this test compares with the published types, but {} cannot be read ({error}); `cargo xtask test` fetches them, or: \
             `npm pack @anthropic-ai/claude-agent-sdk@0.2.38`, take sdk-tools.d.ts out of it, and set HAFT_SDK_TYPES to its path",
            file.display()
        )
    });
    typescript::exports(&text)
}

fn wire_name(published: &str) -> String {
    let name = published.strip_suffix("Input").unwrap();
    NAMES.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours).to_owned()
}

#[test]
fn there_are_nineteen_and_haft_has_each() {
    let published = published();
    let union: Vec<_> = published["ToolInputSchemas"]["any"].as_array().unwrap().clone();
    assert_eq!(union.len(), 19);
    let mut theirs: Vec<_> = union.iter().map(|name| wire_name(name.as_str().unwrap())).collect();
    // The nineteenth stands for the tools of MCP servers, which have types of their own.
    theirs.retain(|name| name != "Mcp");
    let mut ours: Vec<_> = defined("claude").into_iter().map(|tool| tool.name).collect();
    theirs.sort();
    ours.sort();
    assert_eq!(ours, theirs);
}

#[test]
fn every_field_its_type_and_whether_it_is_required_are_as_published() {
    let mut theirs = serde_json::Map::new();
    for (name, shape) in published() {
        if name != "ToolInputSchemas" && name != "McpInput" {
            theirs.insert(wire_name(&name), shape);
        }
    }
    let mut theirs = Value::Object(theirs);
    let ours: BTreeMap<_, _> =
        defined("claude").into_iter().map(|tool| (tool.name, of_schema(&tool.input_schema))).collect();
    let ours = json!(ours);
    for (place, shape, why) in MORE {
        let shape: Value = serde_json::from_str(shape).unwrap();
        assert_eq!(ours.pointer(place), Some(&shape), "{place}: {why}");
        assert_ne!(theirs.pointer(place), Some(&shape), "{place} is as published; take it off the list");
        let (parent, last) = place.rsplit_once('/').unwrap();
        theirs.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(last.to_owned(), shape);
    }
    let mut differences = Vec::new();
    compare("", &theirs, &ours, &mut differences);
    assert!(differences.is_empty(), "published, then Haft's:\n{}", differences.join("\n"));
}

fn compare(place: &str, theirs: &Value, ours: &Value, differences: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for name in names {
                compare(&format!("{place}/{name}"), &theirs[name], &ours[name], differences);
            }
        }
        (a, b) if a == b => {}
        // An inner object may have members more: saying in each that it must not would cost bytes in every request.
        (Value::Null, rest)
            if place.matches('/').count() > 2 && place.ends_with("/rest") && rest == "unknown" => {}
        (a, b) => differences.push(format!("{place}: {a}, {b}")),
    }
}

#[test]
fn the_comparison_sees_each_kind_of_difference() {
    let text = r#"
        /** A comment with { braces }; and "quotes". */
        export interface AInput { a: string; "-b"?: number; c: "x" | "y"; d: { e: boolean; }[]; }
    "#;
    let theirs = &typescript::exports(text)["AInput"];
    let ours = |fields: Value, required: Value| {
        of_schema(
            &json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false}),
        )
    };
    let inner = json!({"type": "object", "properties": {"e": {"type": "boolean"}}, "required": ["e"], "additionalProperties": false});
    let same = json!({"c": {"type": "string", "enum": ["y", "x"]}, "a": {"type": "string"}, "-b": {"type": "integer"},
        "d": {"type": "array", "items": inner}});
    let required = json!(["a", "c", "d"]);
    assert_eq!(*theirs, ours(same.clone(), required.clone()));
    assert_ne!(*theirs, ours(same.clone(), json!(["a", "c"])), "a field that need not be there");
    for (at, other) in [
        ("/a", json!({"type": "number"})),
        ("/c/enum", json!(["x"])),
        ("/d/items/required", json!([])),
        ("/d/items/additionalProperties", json!(true)),
    ] {
        let mut changed = same.clone();
        *changed.pointer_mut(at).unwrap() = other;
        assert_ne!(*theirs, ours(changed, required.clone()), "{at}");
    }
}
