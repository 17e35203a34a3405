//! Calls as rules write them: `Bash(git push)`, `Edit(src/main.rs)`, `WebFetch(https://example.com)`.

use haft_runtime::Runtime;
use haft_tool::{Call, ErrorKind, ToolError, Value, json};

/// Names of the argument that a call is about, the most specific first.
const MAIN_ARGUMENTS: [&str; 8] =
    ["command", "file_path", "notebook_path", "path", "url", "pattern", "query", "subagent_type"];

/// The call that a text such as `Bash(git push)` stands for. Arguments that do not matter for the decision are made up; where the
/// tool needs others that do, the whole call has to be given.
pub(super) fn parse(text: &str, runtime: &Runtime) -> Result<Call, ToolError> {
    let text = text.trim();
    let (tool, inner) = match text.split_once('(') {
        Some((tool, rest)) => (tool.trim(), rest.strip_suffix(')').ok_or_else(|| unclosed(text))?),
        None => (text, ""),
    };
    let Some(definition) =
        runtime.definitions().into_iter().find(|definition| definition.name.eq_ignore_ascii_case(tool))
    else {
        let message = format!("There is no tool {tool:?} here. `haft tools` lists them.");
        return Err(ToolError::new(ErrorKind::NotFound, message));
    };
    let properties = definition.input_schema["properties"].as_object().cloned().unwrap_or_default();
    let main = MAIN_ARGUMENTS.into_iter().find(|name| properties.contains_key(*name));
    let mut arguments = json!({});
    if let Some(main) = main.filter(|_| !inner.is_empty()) {
        let is_path = main.ends_with("path");
        arguments[main] =
            if is_path { runtime.workspace().join(inner).display().to_string().into() } else { inner.into() };
    }
    let required = definition.input_schema["required"].as_array().into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if arguments.get(name).is_none() {
            arguments[name] = placeholder(name, &properties[name]);
        }
    }
    Ok(Call::new("explained", definition.name, arguments))
}

fn unclosed(text: &str) -> ToolError {
    ToolError::invalid_arguments(format!("{text:?} has no closing parenthesis"))
}

/// A value of the type that a schema wants; for a text the name of the argument, so that no two are the same.
fn placeholder(name: &str, schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|options| options.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => name.into(),
    }
}
