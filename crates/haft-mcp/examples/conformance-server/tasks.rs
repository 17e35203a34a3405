//! Tools that are answered with a task.

use std::time::Duration;

use haft_mcp::serve::RequestContext;
use haft_mcp::wire::RpcError;
use serde_json::{Value, json};

use crate::asking::{ask, elicit, name_of_user, one};
use crate::content::{said, text};

/// Long enough for a client to see the task at work.
const JOB_TIME: Duration = Duration::from_millis(500);

/// What comes of a call, if its tool is one of these.
pub(crate) fn call(
    name: &str,
    arguments: &Value,
    context: &RequestContext,
) -> Option<Result<Value, RpcError>> {
    Some(match name {
        "greet" => Ok(said(format!("Hello, {}!", arguments["name"].as_str().unwrap_or_default()))),
        "slow_compute" => slow_compute(arguments, context),
        "failing_job" => context.require_task().map(|()| {
            context.become_task();
            context.cancel().wait(JOB_TIME);
            json!({"isError": true, "content": [text("The job failed")]})
        }),
        "protocol_error_job" => {
            context.become_task();
            context.cancel().wait(JOB_TIME);
            Err(RpcError::internal("The job could not be run"))
        }
        "confirm_delete" => {
            context.become_task();
            let question = elicit("confirm", &json!("Delete the file?"), &one("confirm", "boolean"));
            ask(context, &[question]).map(|_| said(format!("Deleted {}", arguments["filename"])))
        }
        "multi_input" => {
            context.become_task();
            let questions = ["first", "second"]
                .map(|key| elicit(key, &json!("What is your name?"), &one("name", "string")));
            ask(context, &questions).map(|answers| said(format!("{} answers", answers.len())))
        }
        "test_tool_with_task" => context.require_task().and_then(|()| {
            let answers = ask(context, &[name_of_user()])?;
            context.become_task();
            context.cancel().wait(JOB_TIME);
            Ok(said(format!("Answered: {}", json!(answers))))
        }),
        _ => return None,
    })
}

fn slow_compute(arguments: &Value, context: &RequestContext) -> Result<Value, RpcError> {
    context.become_task();
    let seconds = arguments["seconds"].as_u64().unwrap_or_default();
    if context.cancel().wait(Duration::from_secs(seconds)) {
        return Err(RpcError::internal("cancelled"));
    }
    Ok(said("Computed"))
}
