//! What the tools do.

use std::time::Duration;

use haft_mcp::serve::{ChangeNotifier, LogLevel, RequestContext, ServerChange};
use haft_mcp::wire::RpcError;
use serde_json::{Value, json};

use crate::asking;
use crate::content::{audio, image, resource, result, said, text};
use crate::listed::IN_HEADERS;
use crate::tasks;

/// Long enough for a client to see one thing after the other.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn call(
    notifier: Option<&ChangeNotifier>,
    name: &str,
    arguments: &Value,
    context: &RequestContext,
) -> Result<Value, RpcError> {
    if let Some(asked) = asking::call(name, arguments, context) {
        return asked;
    }
    if let Some(done) = tasks::call(name, arguments, context) {
        return done;
    }
    let tell = |news: &ServerChange| {
        if let Some(notifier) = notifier {
            notifier.notify(news);
        }
        said("Told")
    };
    Ok(match name {
        "test_simple_text" => said("Nothing but text."),
        "test_image_content" => result(&[image()]),
        "test_audio_content" => result(&[audio()]),
        "test_embedded_resource" => {
            result(&[resource("test://embedded-resource", "text/plain", "What the resource holds.")])
        }
        "test_multiple_content_types" => result(&[
            text("Three kinds:"),
            image(),
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ]),
        "test_tool_with_logging" => {
            for words in ["Begun", "Half done", "Done"] {
                context.log(LogLevel::Info, "conformance", &json!(words));
                context.cancel().wait(PROGRESS_INTERVAL);
            }
            said("Logged three times.")
        }
        "test_logging_tool" => {
            context.log(LogLevel::Info, "conformance", &json!("Logged by a tool"));
            said("Logged once.")
        }
        "test_error_handling" => {
            json!({"isError": true, "content": [text("This fails whenever it is called")]})
        }
        "test_tool_with_progress" => {
            for percent in [0.0, 50.0, 100.0] {
                context.progress(percent, Some(100.0), None);
                context.cancel().wait(PROGRESS_INTERVAL);
            }
            said("All the way.")
        }
        "test_reconnection" => {
            context.disconnect_client();
            context.cancel().wait(PROGRESS_INTERVAL * 4);
            said("You came back.")
        }
        "test_missing_capability" if !context.has_client_capability("sampling") => {
            return Err(RpcError::missing_capability("sampling", &json!({"sampling": {}})));
        }
        "test_missing_capability" => said("The client can sample."),
        "test_trigger_tool_change" => tell(&ServerChange::Tools),
        "test_trigger_prompt_change" => tell(&ServerChange::Prompts),
        "json_schema_2020_12_tool" => said("The schema is what matters."),
        IN_HEADERS => said(format!("Got {}", arguments["region"])),
        _ => return Err(RpcError::invalid_params(format!("There is no tool {name:?}"))),
    })
}
