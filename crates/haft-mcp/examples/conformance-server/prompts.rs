//! The prompts.

use haft_mcp::serve::RequestContext;
use haft_mcp::wire::RpcError;
use serde_json::{Map, Value, json};

use crate::asking::{ask, elicit, one};
use crate::content::{image, resource, text};

pub(crate) fn all() -> Vec<Value> {
    let argument = |name: &str| json!({"name": name, "description": "Any text", "required": true});
    let listed = |name: &str, what: &str, arguments: Vec<Value>| json!({"name": name, "description": what, "arguments": arguments});
    vec![
        listed("test_simple_prompt", "Says one thing", vec![]),
        listed(
            "test_prompt_with_arguments",
            "Says what it is told",
            vec![argument("arg1"), argument("arg2")],
        ),
        listed("test_prompt_with_embedded_resource", "Brings a resource", vec![argument("resourceUri")]),
        listed("test_prompt_with_image", "Brings an image", vec![]),
        listed("test_input_required_result_prompt", "Asks before it says anything", vec![]),
    ]
}

pub(crate) fn get(
    name: &str,
    arguments: &Map<String, Value>,
    context: &RequestContext,
) -> Result<Value, RpcError> {
    let given = |argument: &str| {
        let given = arguments.get(argument).and_then(Value::as_str);
        given.ok_or_else(|| RpcError::invalid_params(format!("{argument} must be given, a string")))
    };
    let contents = match name {
        "test_simple_prompt" => vec![text("Say something simple.")],
        "test_prompt_with_arguments" => {
            vec![text(format!("Say {:?}, then {:?}.", given("arg1")?, given("arg2")?))]
        }
        "test_prompt_with_embedded_resource" => vec![
            resource(given("resourceUri")?, "text/plain", "What the resource holds."),
            text("Say what the resource holds."),
        ],
        "test_prompt_with_image" => vec![image(), text("Say what is in the picture.")],
        "test_input_required_result_prompt" => {
            let question = elicit("user_context", &json!("What is this about?"), &one("context", "string"));
            let answers = ask(context, &[question])?;
            vec![text(format!("It is about {}.", json!(answers)))]
        }
        _ => return Err(RpcError::invalid_params(format!("There is no prompt {name:?}"))),
    };
    let messages: Vec<Value> =
        contents.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
    Ok(json!({"messages": messages}))
}
