//! Tools that have questions.

use haft_mcp::serve::{ClientRequest, ClientRequestError, RequestContext};
use haft_mcp::wire::RpcError;
use serde_json::{Value, json};

use crate::content::said;

/// What comes of a call, if its tool is one that asks.
pub(crate) fn call(
    name: &str,
    arguments: &Value,
    context: &RequestContext,
) -> Option<Result<Value, RpcError>> {
    let questions = match name {
        "test_sampling" => vec![sample("answer", &arguments["prompt"])],
        "test_elicitation" => vec![elicit("answer", &arguments["message"], &user())],
        "test_elicitation_sep1034_defaults" => vec![elicit("answer", &json!("Is this right?"), &defaults())],
        "test_elicitation_sep1330_enums" => vec![elicit("answer", &json!("Which ones?"), &choices())],
        "test_streaming_elicitation" => {
            context.progress(0.0, Some(1.0), Some("about to ask"));
            vec![elicit("user_name", &json!("What is your name?"), &one("name", "string"))]
        }
        "test_input_required_result_elicitation" => vec![name_of_user()],
        "test_input_required_result_sampling" => {
            vec![sample("capital_question", &json!("What is the capital of France?"))]
        }
        "test_input_required_result_list_roots" => vec![roots()],
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            vec![elicit("confirm", &json!("Please confirm"), &one("ok", "boolean"))]
        }
        "test_input_required_result_multiple_inputs" => {
            vec![name_of_user(), sample("greeting", &json!("Say hello")), roots()]
        }
        "test_input_required_result_multi_round" => return Some(twice(context)),
        "test_input_required_result_capabilities" => {
            let all = [name_of_user(), sample("greeting", &json!("Say hello")), roots()];
            all.into_iter().filter(|ask| context.has_client_capability(ask.capability())).collect()
        }
        _ => return None,
    };
    Some(ask(context, &questions).map(|answers| said(told(&answers))))
}

/// Asks, and gives up as the protocol has it.
pub(crate) fn ask(context: &RequestContext, questions: &[ClientRequest]) -> Result<Vec<Value>, RpcError> {
    context.request_client(questions).map_err(|why| match why {
        ClientRequestError::Unsupported(ability) => {
            RpcError::missing_capability(ability, &json!({ ability: {} }))
        }
        ClientRequestError::Cancelled | ClientRequestError::TimedOut => RpcError::internal("No answer came"),
        ClientRequestError::Rejected(error) => error,
    })
}

fn twice(context: &RequestContext) -> Result<Value, RpcError> {
    let mut answers = ask(context, &[name_of_user()])?;
    let colour = elicit("favourite_colour", &json!("Which colour do you like?"), &one("color", "string"));
    answers.extend(ask(context, &[colour])?);
    Ok(said(told(&answers)))
}

fn told(answers: &[Value]) -> String {
    answers
        .iter()
        .map(|answer| match (answer.get("action").and_then(Value::as_str), answer.pointer("/content/text")) {
            (Some(action), _) => {
                format!("Elicitation completed: action={action}, content={}", answer["content"])
            }
            (None, Some(text)) => format!("LLM response: {}", text.as_str().unwrap_or_default()),
            (None, None) => format!("Answered: {answer}"),
        })
        .collect::<Vec<_>>()
        .join("\n")
}

pub(crate) fn elicit(key: &str, message: &Value, schema: &Value) -> ClientRequest {
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    ClientRequest { key: key.to_owned(), method: "elicitation/create", params }
}

pub(crate) fn one(name: &str, kind: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]})
}

pub(crate) fn name_of_user() -> ClientRequest {
    elicit("user_name", &json!("What is your name?"), &one("name", "string"))
}

fn sample(key: &str, prompt: &Value) -> ClientRequest {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": prompt}}]);
    let params = json!({"messages": messages, "maxTokens": 100});
    ClientRequest { key: key.to_owned(), method: "sampling/createMessage", params }
}

fn roots() -> ClientRequest {
    ClientRequest { key: "client_roots".to_owned(), method: "roots/list", params: json!({}) }
}

fn user() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "What to call you"},
            "email": {"type": "string", "description": "Where to write to"},
        },
        "required": ["username", "email"],
    })
}

fn defaults() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    }})
}

fn choices() -> Value {
    let plain = json!(["option1", "option2", "option3"]);
    let titled = json!([
        {"const": "value1", "title": "The first"},
        {"const": "value2", "title": "The second"},
        {"const": "value3", "title": "The third"},
    ]);
    json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }})
}
