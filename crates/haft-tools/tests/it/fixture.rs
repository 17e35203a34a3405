//! Calls of tools in a World in memory.

use std::sync::Arc;

use haft_tool::testing::MemoryWorld;
use haft_tool::{AnyTool, Dialect, Effect, HttpRequest, HttpResponse, Output, ToolError, Value};
use haft_tools::Settings;

/// The URL of the server that answers.
pub(crate) const SERVER: &str = "http://127.0.0.1:9";

/// A JSON response.
pub(crate) fn reply(status: u16, body: impl Into<Vec<u8>>) -> HttpResponse {
    let body = body.into();
    HttpResponse {
        status,
        status_text: "Text".to_owned(),
        url: String::new(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        total_bytes: body.len() as u64,
        body,
        more: false,
        redirect: None,
    }
}

pub(crate) fn reply_with(status: u16, body: &str, headers: &[(&str, &str)]) -> HttpResponse {
    let mut reply = reply(status, body);
    reply.headers.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    reply
}

/// A World whose server gives these replies in order.
pub(crate) fn world(replies: impl IntoIterator<Item = HttpResponse>) -> MemoryWorld {
    let world = MemoryWorld::new("/w");
    replies.into_iter().for_each(|reply| world.http.push(reply));
    world
}

/// Plans and performs a call. A result with a declared schema must fit it.
pub(crate) fn call(
    world: &MemoryWorld,
    dialect: &Dialect,
    name: &str,
    arguments: Value,
) -> Result<Output, ToolError> {
    let tool = tool(dialect, name);
    let result = world.call(&tool, arguments);
    if let (Some(schema), Ok(output)) = (tool.output_schema(), &result) {
        let value = output.structured.as_ref().unwrap();
        assert!(jsonschema::draft202012::validate(&schema(), value).is_ok(), "{name}: {value}");
    }
    result
}

fn tool(dialect: &Dialect, name: &str) -> Arc<dyn AnyTool> {
    Arc::clone(dialect.tools.iter().find(|tool| tool.name() == name).unwrap())
}

/// The hosts in the planned effects of a call.
pub(crate) fn planned_hosts(dialect: &Dialect, name: &str, arguments: Value) -> Vec<String> {
    let host = |effect| match effect {
        Effect::Reach { host } => host,
        other => unreachable!("{other:?}"),
    };
    world([]).effects(&tool(dialect, name), arguments).unwrap().into_iter().map(host).collect()
}

/// Method and target, for example `POST /x?y=1`.
pub(crate) fn request_line(request: &HttpRequest) -> String {
    let target = request.url.splitn(4, '/').nth(3).unwrap_or_default();
    format!("{} /{target}", request.method)
}

pub(crate) fn request_header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let header = request.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    header.map(|(_, value)| value.as_str())
}

pub(crate) fn request_json(request: &HttpRequest) -> Value {
    serde_json::from_slice(request.body.as_deref().unwrap()).unwrap()
}

fn settings(value: Value) -> Settings {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn claude(value: Value) -> Dialect {
    haft_tools::dialects::claude::dialect(&settings(value))
}

pub(crate) fn loom(value: Value) -> Dialect {
    haft_tools::dialects::loom::dialect(&settings(value))
}

pub(crate) fn clawft(value: Value) -> Dialect {
    haft_tools::dialects::clawft::dialect(&settings(value))
}
