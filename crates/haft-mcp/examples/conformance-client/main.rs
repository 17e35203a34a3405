//! The client under the official conformance suite: `conformance-client URL`, one scenario per run.
//!
//! Which one the suite says in the environment. Nothing here knows which revision a scenario speaks: the client finds out.
#![expect(clippy::print_stderr, reason = "the suite shows what the client says")]

mod login;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use haft_mcp::client::portable::make_portable;
use haft_mcp::client::{
    ClientCapabilities, ClientOptions, Elicitation, ElicitationAnswer, HttpEndpoint, McpClient,
    ServerRequestHandler, ServerTransport, ToolCallOptions,
};
use haft_mcp::wire::RpcError;
use haft_net::http::HttpService;
use haft_tool::Cancel;
use serde_json::{Map, Value, json};

type Done<T = ()> = Result<T, Box<dyn Error>>;

/// Says yes to every form, and leaves all of its fields to their defaults.
struct Agreeable;

impl ServerRequestHandler for Agreeable {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { forms: true, sampling: true, roots: true, ..ClientCapabilities::default() }
    }

    fn elicit(&self, _: &Elicitation, _: &Cancel) -> Result<ElicitationAnswer, RpcError> {
        Ok(ElicitationAnswer::Accept(Map::new()))
    }

    fn sample(&self, _: &Value, _: &Cancel) -> Result<Value, RpcError> {
        Ok(
            json!({"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "none", "stopReason": "endTurn"}),
        )
    }

    fn roots(&self) -> Result<Vec<(String, Option<String>)>, RpcError> {
        Ok(vec![("file:///workspace".to_owned(), None)])
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Done {
    let url = std::env::args().next_back().ok_or("which server?")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let context: Value = serde_json::from_str(&context)?;
    let web = Arc::new(HttpService::default());
    let login = scenario.starts_with("auth/").then(|| login::authorize(&web, &url, &context)).transpose()?;
    let tokens = login.as_ref().map(|(authorize, _)| Arc::clone(authorize));
    let http = web.streams_for(login::hosts(&url));
    // A client that offers nothing is the common one; where the suite looks at what is offered, all of it is.
    let asks = ["elicitation-sep1034-client-defaults", "request-metadata", "sep-2322-client-request-state"];
    let handler =
        asks.contains(&scenario.as_str()).then(|| Arc::new(Agreeable) as Arc<dyn ServerRequestHandler>);
    let options = ClientOptions { handler, ..ClientOptions::default() };
    let endpoint = HttpEndpoint { url, headers: Vec::new(), http, tokens };
    let client = McpClient::connect(ServerTransport::Http(endpoint), options)?;
    eprintln!("{} speaks {}", client.info().name, client.info().version);
    let outcome = perform(&client, &scenario, &context);
    client.close();
    outcome
}

/// What each scenario wants to see.
fn perform(client: &McpClient, scenario: &str, context: &Value) -> Done {
    let tools = client.list_tools()?;
    tools.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    for tool in &tools.items {
        match make_portable(tool) {
            Ok(tool) => eprintln!("{}: {}", tool.name, tool.input_schema),
            Err(why) => eprintln!("{} is left out: {why}", tool.name),
        }
    }
    match scenario {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => {}
        "http-custom-headers" => {
            for wanted in context["toolCalls"].as_array().into_iter().flatten() {
                call(client, wanted["name"].as_str().unwrap_or_default(), &wanted["arguments"])?;
            }
        }
        "json-schema-2020-12-preservation" => {
            let focal = tools.items.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
            let schema = &focal.ok_or("the tool is not there")?.input_schema;
            call(client, "json_schema_echo", &json!({"schema": schema}))?;
        }
        _ => {
            for tool in &tools.items {
                let arguments = match tool.name.as_str() {
                    "add_numbers" => json!({"a": 5, "b": 3}),
                    "valid_tool" => json!({"region": "us-west1"}),
                    _ => json!({}),
                };
                call(client, &tool.name, &arguments)?;
            }
            let cancel = Cancel::new();
            for resource in client.list_resources()?.items {
                client.read_resource(&resource.uri, &cancel)?;
            }
            for prompt in client.list_prompts()?.items {
                client.get_prompt(&prompt.name, &Map::new(), &cancel)?;
            }
        }
    }
    Ok(())
}

fn call(client: &McpClient, name: &str, arguments: &Value) -> Done {
    let cancel = Cancel::new();
    let result = client.call_tool(name, arguments, &ToolCallOptions::new(&cancel))?;
    eprintln!("{name}: {result}");
    Ok(())
}
