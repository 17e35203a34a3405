//! The methods, and what each of them gives.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::exchange::{Exchange, Level};
use super::hub::Filter;
use super::server::Server;
use super::service::{Cached, Identity, Page};
use crate::wire::{RpcError, Version, meta};

/// Whether the client may be asked about a request of this method.
pub(super) fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "resources/read" | "prompts/get")
}

/// Whether the method never blocks, so that the thread that reads may run it. `initialize` and `logging/setLevel` must run
/// before the next message is read, because they change its meaning.
pub(super) fn is_immediate(method: &str) -> bool {
    matches!(method, "initialize" | "ping" | "logging/setLevel")
}

/// The result of one request.
pub(super) fn answer(
    server: &Server,
    exchange: &Arc<Exchange>,
    method: &str,
    params: Value,
) -> Result<Value, RpcError> {
    let result = if exchange.version().is_modern() {
        modern(server, exchange, method, params)?
    } else {
        legacy(server, exchange, method, params)?
    };
    Ok(if exchange.version().is_modern() { complete(result, &server.info) } else { result })
}

fn modern(server: &Server, exchange: &Arc<Exchange>, method: &str, params: Value) -> Result<Value, RpcError> {
    match method {
        "server/discover" => Ok(discover(server)),
        _ => common(server, exchange, method, params),
    }
}

fn legacy(server: &Server, exchange: &Arc<Exchange>, method: &str, params: Value) -> Result<Value, RpcError> {
    match method {
        "initialize" => Ok(initialize(server, exchange, &params)),
        "ping" => Ok(json!({})),
        "logging/setLevel" if server.service.offers().logging => {
            let word = text(&params, "level")?;
            let level = Level::parse(word)
                .ok_or_else(|| RpcError::params(format!("There is no log level {word:?}")))?;
            exchange.peer.known().level = Some(level);
            Ok(json!({}))
        }
        "resources/subscribe" if server.service.offers().watching => {
            let uri = text(&params, "uri")?;
            if !server.service.watches(uri) {
                return Err(RpcError::no_resource(uri, exchange.version()));
            }
            exchange.peer.known().watched.insert(uri.to_owned());
            Ok(json!({}))
        }
        "resources/unsubscribe" if server.service.offers().watching => {
            exchange.peer.known().watched.remove(text(&params, "uri")?);
            Ok(json!({}))
        }
        _ => common(server, exchange, method, params),
    }
}

fn common(
    server: &Server,
    exchange: &Arc<Exchange>,
    method: &str,
    mut params: Value,
) -> Result<Value, RpcError> {
    let service = &server.service;
    let offers = service.offers();
    let cursor = |params: &Value| match params.get("cursor") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(cursor)) => Ok(Some(cursor.clone())),
        Some(_) => Err(RpcError::params("cursor must be a string")),
    };
    match method {
        "tools/list" => {
            let cursor = cursor(&params)?;
            Ok(list("tools", service.tools(cursor.as_deref(), exchange)?, exchange))
        }
        "tools/call" => {
            let arguments = match params.get_mut("arguments").map(Value::take) {
                None | Some(Value::Null) => json!({}),
                Some(arguments @ Value::Object(_)) => arguments,
                Some(_) => return Err(RpcError::params("arguments must be an object")),
            };
            service.call(text(&params, "name")?, arguments, exchange)
        }
        "resources/list" if offers.resources => {
            let cursor = cursor(&params)?;
            Ok(list("resources", service.resources(cursor.as_deref(), exchange)?, exchange))
        }
        "resources/templates/list" if offers.resources => {
            let cursor = cursor(&params)?;
            Ok(list("resourceTemplates", service.templates(cursor.as_deref(), exchange)?, exchange))
        }
        "resources/read" if offers.resources => {
            let (contents, cached) = service.read(text(&params, "uri")?, exchange)?;
            Ok(with_cache(json!({"contents": contents}), cached, exchange))
        }
        "prompts/list" if offers.prompts => {
            let cursor = cursor(&params)?;
            Ok(list("prompts", service.prompts(cursor.as_deref(), exchange)?, exchange))
        }
        "prompts/get" if offers.prompts => {
            let none = Map::new();
            let arguments = match params.get("arguments") {
                None | Some(Value::Null) => &none,
                Some(Value::Object(arguments)) => arguments,
                Some(_) => return Err(RpcError::params("arguments must be an object")),
            };
            service.prompt(text(&params, "name")?, arguments, exchange)
        }
        "completion/complete" if offers.completions => {
            let (mut values, total) = service.complete(&params, exchange)?;
            // The protocol has room for no more.
            values.truncate(100);
            let more = total > values.len();
            Ok(json!({"completion": {"values": values, "total": total, "hasMore": more}}))
        }
        _ => Err(RpcError::method(method)),
    }
}

fn initialize(server: &Server, exchange: &Arc<Exchange>, params: &Value) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str).and_then(Version::parse);
    let version = asked.filter(|version| !version.is_modern()).unwrap_or(Version::NEWEST_HANDSHAKE);
    let first = {
        let mut known = exchange.peer.known();
        let first = known.version.is_none();
        known.version = Some(version);
        known.client = Arc::new(params.get("clientInfo").cloned().unwrap_or_default());
        known.capabilities = Arc::new(params.get("capabilities").cloned().unwrap_or_default());
        first
    };
    if first {
        server.hub.meet(&exchange.peer);
    }
    let identity = server.service.identity();
    let mut result = json!({
        "protocolVersion": version.word(),
        "capabilities": capabilities(server, version),
        "serverInfo": server.info,
    });
    if let Some(instructions) = identity.instructions {
        result["instructions"] = json!(instructions);
    }
    result
}

fn discover(server: &Server) -> Value {
    let identity = server.service.identity();
    let mut result = json!({
        "supportedVersions": Version::words(),
        "capabilities": capabilities(server, Version::NEWEST),
        "ttlMs": 0, "cacheScope": "private",
    });
    if let Some(instructions) = identity.instructions {
        result["instructions"] = json!(instructions);
    }
    result
}

/// Who answers, as the wire has it.
pub(super) fn info(identity: &Identity) -> Value {
    json!({"name": identity.name, "title": identity.title, "version": identity.version})
}

fn capabilities(server: &Server, version: Version) -> Value {
    let offers = server.service.offers();
    let mut all = json!({"tools": {"listChanged": true}});
    if offers.resources {
        all["resources"] = json!({"subscribe": offers.watching, "listChanged": true});
    }
    if offers.prompts {
        all["prompts"] = json!({"listChanged": true});
    }
    if offers.logging {
        all["logging"] = json!({});
    }
    if offers.completions && version > Version::V2024_11_05 {
        all["completions"] = json!({});
    }
    all
}

/// What a listener wants of what there is; and the same, as it is told.
pub(super) fn filter(server: &Server, params: &Value) -> Result<(Filter, Value), RpcError> {
    let wanted = params
        .get("notifications")
        .and_then(Value::as_object)
        .ok_or_else(|| RpcError::params("notifications must be an object"))?;
    let offers = server.service.offers();
    let on = |field: &str| wanted.get(field).and_then(Value::as_bool).unwrap_or_default();
    let uris = wanted.get("resourceSubscriptions").and_then(Value::as_array);
    let watched: Vec<String> = uris
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|uri| offers.watching && server.service.watches(uri))
        .map(str::to_owned)
        .collect();
    let filter = Filter {
        tools: on("toolsListChanged"),
        prompts: on("promptsListChanged") && offers.prompts,
        resources: on("resourcesListChanged") && offers.resources,
        watched,
    };
    let mut agreed = Map::new();
    for (field, yes) in [
        ("toolsListChanged", filter.tools),
        ("promptsListChanged", filter.prompts),
        ("resourcesListChanged", filter.resources),
    ] {
        if yes {
            agreed.insert(field.to_owned(), json!(true));
        }
    }
    if !filter.watched.is_empty() {
        agreed.insert("resourceSubscriptions".to_owned(), json!(filter.watched));
    }
    Ok((filter, Value::Object(agreed)))
}

fn list(name: &str, page: Page, exchange: &Arc<Exchange>) -> Value {
    let mut result = json!({ name: page.items });
    if let Some(next) = page.next {
        result["nextCursor"] = json!(next);
    }
    with_cache(result, page.cached, exchange)
}

fn with_cache(mut result: Value, cached: Cached, exchange: &Arc<Exchange>) -> Value {
    if exchange.version().is_modern() {
        result["ttlMs"] = json!(cached.ttl_ms);
        result["cacheScope"] = json!(if cached.public { "public" } else { "private" });
    }
    result
}

/// A result of the new era says that it is all there is, unless it says otherwise, and who it is from.
fn complete(mut result: Value, info: &Value) -> Value {
    if let Value::Object(fields) = &mut result {
        if !fields.contains_key("resultType") {
            fields.insert("resultType".to_owned(), json!("complete"));
        }
        if let Value::Object(about) = fields.entry("_meta").or_insert_with(|| json!({})) {
            about.entry(meta::SERVER).or_insert_with(|| info.clone());
        }
    }
    result
}

/// A parameter that must be there.
pub(super) fn text<'a>(params: &'a Value, field: &str) -> Result<&'a str, RpcError> {
    params
        .get(field)
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::params(format!("{field} must be given, a string")))
}
