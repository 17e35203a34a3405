//! What the tools do.

use std::time::Duration;

use haft_mcp::serve::{Exchange, Hub, Level, News};
use haft_mcp::wire::RpcError;
use serde_json::{Value, json};

use crate::asking;
use crate::content::{audio, image, resource, result, said, text};
use crate::listed::IN_HEADERS;

/// Long enough for a client to see one thing after the other.
const MOMENT: Duration = Duration::from_millis(50);

pub(crate) fn call(
    hub: Option<&Hub>,
    name: &str,
    arguments: &Value,
    exchange: &Exchange,
) -> Result<Value, RpcError> {
    if let Some(asked) = asking::call(name, arguments, exchange) {
        return asked;
    }
    let tell = |news: &News| {
        if let Some(hub) = hub {
            hub.tell(news);
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
                exchange.log(Level::Info, "conformance", &json!(words));
                exchange.cancel().wait(MOMENT);
            }
            said("Logged three times.")
        }
        "test_logging_tool" => {
            exchange.log(Level::Info, "conformance", &json!("Heard by whoever wants it"));
            said("Logged once.")
        }
        "test_error_handling" => {
            json!({"isError": true, "content": [text("This fails whenever it is called")]})
        }
        "test_tool_with_progress" => {
            for percent in [0.0, 50.0, 100.0] {
                exchange.progress(percent, Some(100.0), None);
                exchange.cancel().wait(MOMENT);
            }
            said("All the way.")
        }
        "test_reconnection" => {
            exchange.come_back_later();
            exchange.cancel().wait(MOMENT * 4);
            said("You came back.")
        }
        "test_missing_capability" if !exchange.can("sampling") => {
            return Err(RpcError::capability("sampling", &json!({"sampling": {}})));
        }
        "test_missing_capability" => said("The client can sample."),
        "test_trigger_tool_change" => tell(&News::Tools),
        "test_trigger_prompt_change" => tell(&News::Prompts),
        "json_schema_2020_12_tool" => said("The schema is what matters."),
        IN_HEADERS => said(format!("Got {}", arguments["region"])),
        _ => return Err(RpcError::params(format!("There is no tool {name:?}"))),
    })
}
