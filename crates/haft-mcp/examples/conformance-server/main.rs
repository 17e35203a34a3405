//! What the official conformance suite wants to find in a server, behind the same protocol as the product.
//!
//! `conformance-server [--port PORT]` listens on this machine alone, without a token, and says where on its first line.

mod asking;
mod content;
mod listed;
mod prompts;
mod resources;
mod tasks;
mod tools;

use std::error::Error;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use haft_mcp::serve::{
    CacheHint, ChangeNotifier, HttpServerOptions, ListPage, McpServer, McpService, RequestContext,
    ServerCapabilities, ServerIdentity, serve_http,
};
use haft_mcp::wire::RpcError;
use serde_json::{Map, Value};

/// Lists are the same for everybody and for a minute.
const LISTS: CacheHint = CacheHint { ttl_ms: 60_000, public: true };
/// More than the suite has, so that everything is on one page.
const MAX_PAGE_ENTRIES: usize = 1000;

/// The suite's tools, resources and prompts.
struct Fixtures {
    notifier: OnceLock<ChangeNotifier>,
}

impl McpService for Fixtures {
    fn identity(&self) -> ServerIdentity {
        ServerIdentity { name: "haft-conformance", title: "Haft's conformance server", version: "1.0.0" }
    }

    fn instructions(&self, _: &Value) -> Option<String> {
        Some("Fixtures for the conformance suite; nothing here does anything.".to_owned())
    }

    fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities {
            resources: true,
            subscriptions: true,
            prompts: true,
            completions: true,
            logging: true,
            tasks: true,
        }
    }

    fn set_notifier(&self, notifier: &ChangeNotifier) {
        // A service is served once.
        let _ = self.notifier.set(notifier.clone());
    }

    fn list_tools(&self, cursor: Option<&str>, _: &Arc<RequestContext>) -> Result<ListPage, RpcError> {
        ListPage::new(listed::all(), cursor, MAX_PAGE_ENTRIES, LISTS)
    }

    fn call_tool(
        &self,
        name: &str,
        arguments: Value,
        context: &Arc<RequestContext>,
    ) -> Result<Value, RpcError> {
        tools::call(self.notifier.get(), name, &arguments, context)
    }

    fn header_schema(&self, name: &str) -> Option<Value> {
        (name == listed::IN_HEADERS).then(listed::in_headers)
    }

    fn list_resources(&self, cursor: Option<&str>, _: &Arc<RequestContext>) -> Result<ListPage, RpcError> {
        ListPage::new(resources::all(), cursor, MAX_PAGE_ENTRIES, LISTS)
    }

    fn list_resource_templates(
        &self,
        cursor: Option<&str>,
        _: &Arc<RequestContext>,
    ) -> Result<ListPage, RpcError> {
        ListPage::new(resources::templates(), cursor, MAX_PAGE_ENTRIES, LISTS)
    }

    fn read_resource(
        &self,
        uri: &str,
        context: &Arc<RequestContext>,
    ) -> Result<(Vec<Value>, CacheHint), RpcError> {
        let part =
            resources::read(uri).ok_or_else(|| RpcError::resource_not_found(uri, context.version()))?;
        Ok((vec![part], LISTS))
    }

    fn can_subscribe(&self, uri: &str) -> bool {
        uri == resources::WATCHED
    }

    fn list_prompts(&self, cursor: Option<&str>, _: &Arc<RequestContext>) -> Result<ListPage, RpcError> {
        ListPage::new(prompts::all(), cursor, MAX_PAGE_ENTRIES, LISTS)
    }

    fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        context: &Arc<RequestContext>,
    ) -> Result<Value, RpcError> {
        prompts::get(name, arguments, context)
    }

    fn complete(&self, params: &Value, _: &Arc<RequestContext>) -> Result<(Vec<String>, usize), RpcError> {
        let begun = params.pointer("/argument/value").and_then(Value::as_str).unwrap_or_default();
        let fitting: Vec<String> = ["paris", "park", "party"]
            .into_iter()
            .filter(|word| word.starts_with(begun))
            .map(str::to_owned)
            .collect();
        let total = fitting.len();
        Ok((fitting, total))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut port = 0;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--port" => port = arguments.next().ok_or("--port needs a number")?.parse()?,
            other => return Err(format!("unknown argument {other:?}; only --port PORT is known").into()),
        }
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let server = Arc::new(McpServer::new(Arc::new(Fixtures { notifier: OnceLock::new() })));
    let running =
        serve_http(server, HttpServerOptions::new(address, Vec::new())).map_err(|error| error.as_text())?;
    let mut out = std::io::stdout();
    writeln!(out, "listening on {}", running.url())?;
    out.flush()?;
    running.wait();
    Ok(())
}
