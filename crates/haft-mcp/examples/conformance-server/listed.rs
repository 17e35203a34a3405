//! The tools, as clients see them.

use serde_json::{Value, json};

/// The tool that wants an argument in a header as well.
pub(crate) const IN_HEADERS: &str = "test_argument_in_header";

/// The tools that take nothing, and what each is for.
const PLAIN: &[(&str, &str)] = &[
    ("test_simple_text", "Gives text"),
    ("test_image_content", "Gives an image"),
    ("test_audio_content", "Gives a sound"),
    ("test_embedded_resource", "Gives a resource"),
    ("test_multiple_content_types", "Gives text, an image and a resource"),
    ("test_tool_with_logging", "Logs three times"),
    ("test_error_handling", "Fails"),
    ("test_tool_with_progress", "Tells how far it has come"),
    ("test_elicitation_sep1034_defaults", "Asks with a default for everything"),
    ("test_elicitation_sep1330_enums", "Asks to choose in five ways"),
    ("test_reconnection", "Has the client come back for the answer"),
    ("test_missing_capability", "Needs a client that can sample"),
    ("test_streaming_elicitation", "Tells something, then asks"),
    ("test_logging_tool", "Logs once"),
    ("test_trigger_tool_change", "Says that the tools have changed"),
    ("test_trigger_prompt_change", "Says that the prompts have changed"),
    ("test_input_required_result_elicitation", "Asks for a name"),
    ("test_input_required_result_sampling", "Asks for a capital"),
    ("test_input_required_result_list_roots", "Asks for roots"),
    ("test_input_required_result_request_state", "Asks for a yes"),
    ("test_input_required_result_multiple_inputs", "Asks for three things at once"),
    ("test_input_required_result_multi_round", "Asks twice"),
    ("test_input_required_result_tampered_state", "Asks for confirmation with a signed state"),
    ("test_input_required_result_capabilities", "Asks only what the client can answer"),
    ("failing_job", "Fails as a task"),
    ("protocol_error_job", "Has an error as a task"),
    ("multi_input", "Asks for two names as a task"),
    ("test_tool_with_task", "Asks for a name, then becomes a task"),
];

/// All of them; the first can be called with nothing.
pub(crate) fn all() -> Vec<Value> {
    let mut all: Vec<Value> = PLAIN
        .iter()
        .map(|(name, what)| tool(name, what, &json!({"type": "object", "properties": {}})))
        .collect();
    all.push(tool("test_sampling", "Has the client's model answer", &needs_text("prompt")));
    all.push(tool("test_elicitation", "Asks the client's user", &needs_text("message")));
    all.push(tool("greet", "Greets", &needs_text("name")));
    all.push(tool("confirm_delete", "Asks for a yes as a task", &needs_text("filename")));
    let seconds = json!({"type": "object", "properties": {"seconds": {"type": "integer"}, "label": {"type": "string"}}});
    all.push(tool("slow_compute", "Takes its time as a task", &seconds));
    all.push(tool("json_schema_2020_12_tool", "Has a schema with everything", &everything()));
    all.push(tool(IN_HEADERS, "Wants its argument in a header as well", &in_headers()));
    all
}

fn tool(name: &str, what: &str, schema: &Value) -> Value {
    json!({"name": name, "description": what, "inputSchema": schema})
}

fn needs_text(argument: &str) -> Value {
    json!({"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]})
}

/// The schema of the tool that wants an argument in a header.
pub(crate) fn in_headers() -> Value {
    json!({
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    })
}

fn everything() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
