//! Merging of schemas.

use serde_json::{Map, Value, json};

/// Adds the constraints of `more` to `into`.
pub(super) fn merge(into: &mut Map<String, Value>, more: Map<String, Value>) {
    for (keyword, value) in more {
        match (keyword.as_str(), into.get_mut(&keyword), value) {
            ("properties", Some(Value::Object(known)), Value::Object(members)) => {
                for (name, member) in members {
                    match (known.get_mut(&name), member) {
                        (Some(Value::Object(known)), Value::Object(member)) => merge(known, member),
                        (None, member) => drop(known.insert(name, member)),
                        _ => {}
                    }
                }
            }
            ("required", Some(Value::Array(known)), Value::Array(names)) => {
                for name in names {
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
            }
            ("anyOf", Some(_), Value::Array(choices)) => add_choices(into, choices),
            (_, Some(_), _) => {}
            (_, None, value) => drop(into.insert(keyword, value)),
        }
    }
}

/// Adds alternatives.
pub(super) fn add_choices(into: &mut Map<String, Value>, choices: Vec<Value>) {
    match (into.get_mut("anyOf"), choices) {
        (_, choices) if choices.is_empty() => {}
        // Only the first set of alternatives is kept; two are rare, and the server checks both.
        (Some(_), _) => {}
        (None, choices) => drop(into.insert("anyOf".to_owned(), Value::Array(choices))),
    }
}

/// Merges alternative objects into one: all their properties; required is what all require.
pub(super) fn join(into: &mut Map<String, Value>, choices: Vec<Value>) {
    let required =
        |choice: &Value| choice.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut common = choices.first().map(required).unwrap_or_default();
    let mut members: Map<String, Value> = Map::new();
    for choice in choices {
        let own = required(&choice);
        common.retain(|name| own.contains(name));
        let Value::Object(mut choice) = choice else { continue };
        let Some(Value::Object(properties)) = choice.remove("properties") else { continue };
        for (name, member) in properties {
            match members.get_mut(&name) {
                None => drop(members.insert(name, member)),
                Some(known) if *known == member => {}
                Some(known) => *known = either(known.take(), member),
            }
        }
    }
    merge(into, Map::from_iter([("properties".to_owned(), Value::Object(members))]));
    if !common.is_empty() {
        merge(into, Map::from_iter([("required".to_owned(), Value::Array(common))]));
    }
}

/// A schema that allows either.
fn either(one: Value, other: Value) -> Value {
    match one {
        Value::Object(mut one) if one.len() == 1 && one.contains_key("anyOf") => {
            if let Some(Value::Array(choices)) = one.get_mut("anyOf")
                && !choices.contains(&other)
            {
                choices.push(other);
            }
            Value::Object(one)
        }
        one => json!({"anyOf": [one, other]}),
    }
}
