//! The methods of the protocol.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::context::{LogLevel, RequestContext};
use super::notifier::ChangeFilter;
use super::server::McpServer;
use super::service::{CacheHint, ListPage, ServerIdentity};
use super::tasks;
use crate::wire::{ProtocolVersion, RpcError, meta};

/// The protocol's limit for the values of one completion.
const MAX_COMPLETIONS: usize = 100;

/// Whether a stateless request of this method may ask its client for input.
pub(super) fn may_request_input(method: &str) -> bool {
    matches!(method, "tools/call" | "resources/read" | "prompts/get")
}

/// Whether the method never blocks, so that the thread that reads may run it. `initialize` and `logging/setLevel` must run
/// before the next message is read, because they change how it is handled.
pub(super) fn is_immediate(method: &str) -> bool {
    matches!(
        method,
        "initialize" | "ping" | "logging/setLevel" | "tasks/get" | "tasks/update" | "tasks/cancel"
    )
}

/// Runs one request.
pub(super) fn respond(
    server: &McpServer,
    context: &Arc<RequestContext>,
    method: &str,
    params: Value,
) -> Result<Value, RpcError> {
    if context.version().is_stateless() {
        let result = match method {
            "server/discover" => discover(server, context),
            "tasks/get" | "tasks/update" | "tasks/cancel" if server.service.capabilities().tasks => {
                if !tasks::is_declared(&context.capabilities) {
                    return Err(tasks::missing_extension());
                }
                server.tasks.respond(method, &params, context.principal())?
            }
            _ => respond_common(server, context, method, params)?,
        };
        return Ok(complete_result(result, &server.info));
    }
    let capabilities = server.service.capabilities();
    match method {
        "initialize" => Ok(initialize(server, context, &params)),
        "ping" => Ok(json!({})),
        "logging/setLevel" if capabilities.logging => {
            let name = required_str(&params, "level")?;
            let level = LogLevel::parse(name)
                .ok_or_else(|| RpcError::invalid_params(format!("Unknown log level: {name:?}")))?;
            context.peer.state().log_level = Some(level);
            Ok(json!({}))
        }
        "resources/subscribe" if capabilities.subscriptions => {
            let uri = required_str(&params, "uri")?;
            if !server.service.can_subscribe(uri) {
                return Err(RpcError::resource_not_found(uri, context.version()));
            }
            context.peer.state().subscribed.insert(uri.to_owned());
            Ok(json!({}))
        }
        "resources/unsubscribe" if capabilities.subscriptions => {
            context.peer.state().subscribed.remove(required_str(&params, "uri")?);
            Ok(json!({}))
        }
        _ => respond_common(server, context, method, params),
    }
}

/// Runs a method that all versions have.
fn respond_common(
    server: &McpServer,
    context: &Arc<RequestContext>,
    method: &str,
    mut params: Value,
) -> Result<Value, RpcError> {
    let service = &server.service;
    let capabilities = service.capabilities();
    match method {
        "tools/list" => {
            let page = service.list_tools(cursor(&params)?, context)?;
            Ok(list_result("tools", page, context))
        }
        "tools/call" => {
            let arguments = match params.get_mut("arguments").map(Value::take) {
                None | Some(Value::Null) => json!({}),
                Some(arguments @ Value::Object(_)) => arguments,
                Some(_) => return Err(RpcError::invalid_params("arguments must be an object")),
            };
            service.call_tool(required_str(&params, "name")?, arguments, context)
        }
        "resources/list" if capabilities.resources => {
            let page = service.list_resources(cursor(&params)?, context)?;
            Ok(list_result("resources", page, context))
        }
        "resources/templates/list" if capabilities.resources => {
            let page = service.list_resource_templates(cursor(&params)?, context)?;
            Ok(list_result("resourceTemplates", page, context))
        }
        "resources/read" if capabilities.resources => {
            let (contents, cache) = service.read_resource(required_str(&params, "uri")?, context)?;
            Ok(with_cache_hint(json!({"contents": contents}), cache, context))
        }
        "prompts/list" if capabilities.prompts => {
            let page = service.list_prompts(cursor(&params)?, context)?;
            Ok(list_result("prompts", page, context))
        }
        "prompts/get" if capabilities.prompts => {
            let none = Map::new();
            let arguments = match params.get("arguments") {
                None | Some(Value::Null) => &none,
                Some(Value::Object(arguments)) => arguments,
                Some(_) => return Err(RpcError::invalid_params("arguments must be an object")),
            };
            service.get_prompt(required_str(&params, "name")?, arguments, context)
        }
        "completion/complete" if capabilities.completions => {
            let (mut values, total) = service.complete(&params, context)?;
            values.truncate(MAX_COMPLETIONS);
            let has_more = total > values.len();
            Ok(json!({"completion": {"values": values, "total": total, "hasMore": has_more}}))
        }
        _ => Err(RpcError::method_not_found(method)),
    }
}

fn initialize(server: &McpServer, context: &Arc<RequestContext>, params: &Value) -> Value {
    let requested = params.get("protocolVersion").and_then(Value::as_str).and_then(ProtocolVersion::parse);
    let version = requested.filter(|version| !version.is_stateless());
    let version = version.unwrap_or(ProtocolVersion::NEWEST_LEGACY);
    let is_first = {
        let mut state = context.peer.state();
        let is_first = state.version.is_none();
        state.version = Some(version);
        state.client_info = Arc::new(params.get("clientInfo").cloned().unwrap_or_default());
        state.capabilities = Arc::new(params.get("capabilities").cloned().unwrap_or_default());
        is_first
    };
    if is_first {
        server.notifier.add_peer(&context.peer);
    }
    let result = json!({
        "protocolVersion": version.as_str(),
        "capabilities": declared_capabilities(server, version),
        "serverInfo": server.info,
    });
    with_instructions(result, server, params.get("capabilities").unwrap_or(&Value::Null))
}

fn discover(server: &McpServer, context: &RequestContext) -> Value {
    let result = json!({
        "supportedVersions": ProtocolVersion::names(),
        "capabilities": declared_capabilities(server, ProtocolVersion::NEWEST),
        "ttlMs": 0, "cacheScope": "private",
    });
    with_instructions(result, server, &context.capabilities)
}

fn with_instructions(mut result: Value, server: &McpServer, client_capabilities: &Value) -> Value {
    if let Some(instructions) = server.service.instructions(client_capabilities) {
        result["instructions"] = json!(instructions);
    }
    result
}

/// A server's identity in the protocol's form.
pub(super) fn server_info(identity: &ServerIdentity) -> Value {
    json!({"name": identity.name, "title": identity.title, "version": identity.version})
}

fn declared_capabilities(server: &McpServer, version: ProtocolVersion) -> Value {
    let capabilities = server.service.capabilities();
    let mut declared = json!({"tools": {"listChanged": true}});
    if capabilities.resources {
        declared["resources"] = json!({"subscribe": capabilities.subscriptions, "listChanged": true});
    }
    if capabilities.prompts {
        declared["prompts"] = json!({"listChanged": true});
    }
    if capabilities.logging {
        declared["logging"] = json!({});
    }
    if capabilities.tasks && version.is_stateless() {
        declared["extensions"] = json!({ tasks::EXTENSION: {} });
    }
    if capabilities.completions && version > ProtocolVersion::V2024_11_05 {
        declared["completions"] = json!({});
    }
    declared
}

/// Reads what a subscription asks for; returns the part that the server offers, also in the protocol's form.
pub(super) fn read_filter(server: &McpServer, params: &Value) -> Result<(ChangeFilter, Value), RpcError> {
    let requested = params
        .get("notifications")
        .and_then(Value::as_object)
        .ok_or_else(|| RpcError::invalid_params("notifications must be an object"))?;
    let capabilities = server.service.capabilities();
    let is_on = |field: &str| requested.get(field).and_then(Value::as_bool).unwrap_or_default();
    let uris = requested.get("resourceSubscriptions").and_then(Value::as_array);
    let uris: Vec<String> = uris
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|uri| capabilities.subscriptions && server.service.can_subscribe(uri))
        .map(str::to_owned)
        .collect();
    let filter = ChangeFilter {
        tools: is_on("toolsListChanged"),
        prompts: is_on("promptsListChanged") && capabilities.prompts,
        resources: is_on("resourcesListChanged") && capabilities.resources,
        uris,
    };
    let mut accepted = Map::new();
    for (field, is_on) in [
        ("toolsListChanged", filter.tools),
        ("promptsListChanged", filter.prompts),
        ("resourcesListChanged", filter.resources),
    ] {
        if is_on {
            accepted.insert(field.to_owned(), json!(true));
        }
    }
    if !filter.uris.is_empty() {
        accepted.insert("resourceSubscriptions".to_owned(), json!(filter.uris));
    }
    Ok((filter, Value::Object(accepted)))
}

fn list_result(key: &str, page: ListPage, context: &RequestContext) -> Value {
    let mut result = json!({ key: page.items });
    if let Some(next) = page.next {
        result["nextCursor"] = json!(next);
    }
    with_cache_hint(result, page.cache, context)
}

fn with_cache_hint(mut result: Value, cache: CacheHint, context: &RequestContext) -> Value {
    if context.version().is_stateless() {
        result["ttlMs"] = json!(cache.ttl_ms);
        result["cacheScope"] = json!(if cache.public { "public" } else { "private" });
    }
    result
}

/// Adds what every stateless result has: its type and the server's identity.
fn complete_result(mut result: Value, server_info: &Value) -> Value {
    if let Value::Object(fields) = &mut result {
        if !fields.contains_key("resultType") {
            fields.insert("resultType".to_owned(), json!("complete"));
        }
        if let Value::Object(meta) = fields.entry("_meta").or_insert_with(|| json!({})) {
            meta.entry(meta::SERVER).or_insert_with(|| server_info.clone());
        }
    }
    result
}

fn cursor(params: &Value) -> Result<Option<&str>, RpcError> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(cursor)) => Ok(Some(cursor)),
        Some(_) => Err(RpcError::invalid_params("cursor must be a string")),
    }
}

fn required_str<'a>(params: &'a Value, field: &str) -> Result<&'a str, RpcError> {
    let value = params.get(field).and_then(Value::as_str);
    value.ok_or_else(|| RpcError::invalid_params(format!("{field} is required and must be a string")))
}
