//! Estimates the work of checking a value against a JSON Schema. Schemas from servers and callers can make a validator take
//! time that is exponential in their size or in the depth of the value.

use std::collections::HashMap;

use serde_json::Value;

/// Deeper nesting of schemas, references and values counts as too much work.
const MAX_DEPTH: usize = 1_000;
/// More pairs of a schema and a value count as too much work.
const MAX_PAIRS: usize = 200_000;
/// Keywords whose schemas apply to the value itself.
const HERE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords with schemas by name that apply to the value itself.
const HERE_BY_NAME: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose schemas apply to each member of an object.
const MEMBERS: [&str; 3] = ["additionalProperties", "unevaluatedProperties", "propertyNames"];
/// Keywords whose schemas apply to each element of an array.
const ELEMENTS: [&str; 5] = ["items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"];

/// Whether a validator that follows each keyword checks the value within this many steps. Schemas with references other than
/// pointers into themselves are not followed, and count as too much.
pub fn is_checked_within(schema: &Value, value: &Value, max_steps: u64) -> bool {
    let mut estimate = Estimate { root: schema, known: HashMap::new(), max_steps };
    estimate.steps(schema, value, 0).is_some()
}

struct Estimate<'a> {
    root: &'a Value,
    /// The steps for a schema and a value, by their addresses; `None` while they are counted.
    known: HashMap<(*const Value, *const Value), Option<u64>>,
    max_steps: u64,
}

impl<'a> Estimate<'a> {
    /// The steps; `None` if there are too many.
    fn steps(&mut self, schema: &'a Value, value: &'a Value, depth: usize) -> Option<u64> {
        let Value::Object(keywords) = schema else { return Some(1) };
        let pair: (*const Value, *const Value) = (schema, value);
        if let Some(known) = self.known.get(&pair) {
            // A schema that refers to itself for the same value has no end.
            return *known;
        }
        if depth > MAX_DEPTH || self.known.len() > MAX_PAIRS {
            return None;
        }
        self.known.insert(pair, None);
        let mut steps = 1_u64;
        for (keyword, inner) in keywords {
            let keyword = keyword.as_str();
            match keyword {
                "$ref" => {
                    let target = self.target(inner)?;
                    self.add(&mut steps, target, value, depth)?;
                }
                "$dynamicRef" | "$recursiveRef" => return None,
                _ if HERE.contains(&keyword) => self.add_all(&mut steps, inner, value, depth)?,
                _ if HERE_BY_NAME.contains(&keyword) => {
                    for schema in inner.as_object().into_iter().flat_map(|named| named.values()) {
                        self.add(&mut steps, schema, value, depth)?;
                    }
                }
                "properties" => {
                    for (name, schema) in inner.as_object().into_iter().flatten() {
                        if let Some(member) = value.get(name) {
                            self.add(&mut steps, schema, member, depth)?;
                        }
                    }
                }
                "patternProperties" => {
                    for schema in inner.as_object().into_iter().flat_map(|named| named.values()) {
                        self.add_each(&mut steps, schema, members(value), depth)?;
                    }
                }
                _ if MEMBERS.contains(&keyword) => self.add_each(&mut steps, inner, members(value), depth)?,
                _ if ELEMENTS.contains(&keyword) => {
                    self.add_each(&mut steps, inner, value.as_array().into_iter().flatten(), depth)?;
                }
                _ => {}
            }
        }
        self.known.insert(pair, Some(steps));
        Some(steps)
    }

    fn add(&mut self, steps: &mut u64, schema: &'a Value, value: &'a Value, depth: usize) -> Option<()> {
        *steps = steps.saturating_add(self.steps(schema, value, depth + 1)?);
        (*steps <= self.max_steps).then_some(())
    }

    /// Adds the steps of a schema, or of each in a list.
    fn add_all(&mut self, steps: &mut u64, schemas: &'a Value, value: &'a Value, depth: usize) -> Option<()> {
        match schemas {
            Value::Array(schemas) => {
                schemas.iter().try_for_each(|schema| self.add(steps, schema, value, depth))
            }
            schema => self.add(steps, schema, value, depth),
        }
    }

    fn add_each(
        &mut self,
        steps: &mut u64,
        schemas: &'a Value,
        mut values: impl Iterator<Item = &'a Value>,
        depth: usize,
    ) -> Option<()> {
        values.try_for_each(|value| self.add_all(steps, schemas, value, depth))
    }

    /// What a reference means, if it is a pointer into the schema.
    fn target(&self, reference: &Value) -> Option<&'a Value> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        if pointer.contains('%') || !(pointer.is_empty() || pointer.starts_with('/')) {
            return None;
        }
        self.root.pointer(pointer)
    }
}

fn members(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_object().into_iter().flat_map(|members| members.values())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const STEPS: u64 = 100_000;

    #[test]
    fn usual_schemas_are_checked() {
        let tree = json!({"$defs": {"node": {"type": "object", "properties": {
            "left": {"$ref": "#/$defs/node"}, "right": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        }}}, "$ref": "#/$defs/node"});
        let mut value = json!({});
        for _ in 0..100 {
            value = json!({"left": value, "right": {"left": {}}});
        }
        assert!(is_checked_within(&tree, &value, STEPS));
        let list = json!({"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "integer"}]}});
        assert!(is_checked_within(&list, &json!(vec![1; 10_000]), STEPS));
    }

    #[test]
    fn schemas_that_multiply_their_work_are_not() {
        let mut definitions = json!({"d30": {"type": "integer"}});
        for number in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
            definitions[format!("d{number}")] = json!({"anyOf": [next, next]});
        }
        let doubling = json!({"$defs": definitions, "$ref": "#/$defs/d0"});
        assert!(!is_checked_within(&doubling, &json!("x"), STEPS));
        let below = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "required": ["x"]});
        let deep = json!({"$defs": {"a": {"anyOf": [{"type": "integer"}, below, below, below]}}, "$ref": "#/$defs/a"});
        let mut value = json!("leaf");
        for _ in 0..40 {
            value = json!({ "x": value });
        }
        assert!(!is_checked_within(&deep, &value, STEPS));
        assert!(!is_checked_within(&json!({"$ref": "#"}), &json!(1), STEPS));
        assert!(!is_checked_within(&json!({"$ref": "#anchor"}), &json!(1), STEPS));
    }
}
