//! What the official conformance suite wants to find in a server, behind the same protocol as the product.
//!
//! `conformance-server [--port PORT]` listens on this machine alone, without a token, and says where on its first line.

mod asking;
mod content;
mod listed;
mod prompts;
mod resources;
mod tools;

use std::error::Error;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use haft_mcp::serve::{
    Cached, Exchange, HttpOptions, Hub, Identity, Offers, Page, Server, Service, serve_http,
};
use haft_mcp::wire::RpcError;
use serde_json::{Map, Value};

/// Lists are the same for everybody and for a minute.
const LISTS: Cached = Cached { ttl_ms: 60_000, public: true };
/// More than the suite has, so that everything is on one page.
const PAGE: usize = 1000;

/// The suite's tools, resources and prompts.
struct Fixtures {
    hub: OnceLock<Hub>,
}

impl Service for Fixtures {
    fn identity(&self) -> Identity {
        let instructions = Some("Fixtures for the conformance suite; nothing here does anything.".to_owned());
        Identity {
            name: "haft-conformance",
            title: "Haft's conformance server",
            version: "1.0.0",
            instructions,
        }
    }

    fn offers(&self) -> Offers {
        Offers { resources: true, watching: true, prompts: true, completions: true, logging: true }
    }

    fn listen(&self, hub: &Hub) {
        // A service is served once.
        let _ = self.hub.set(hub.clone());
    }

    fn tools(&self, cursor: Option<&str>, _: &Arc<Exchange>) -> Result<Page, RpcError> {
        Page::of(listed::all(), cursor, PAGE, LISTS)
    }

    fn call(&self, name: &str, arguments: Value, exchange: &Arc<Exchange>) -> Result<Value, RpcError> {
        tools::call(self.hub.get(), name, &arguments, exchange)
    }

    fn schema(&self, name: &str) -> Option<Value> {
        (name == listed::IN_HEADERS).then(listed::in_headers)
    }

    fn resources(&self, cursor: Option<&str>, _: &Arc<Exchange>) -> Result<Page, RpcError> {
        Page::of(resources::all(), cursor, PAGE, LISTS)
    }

    fn templates(&self, cursor: Option<&str>, _: &Arc<Exchange>) -> Result<Page, RpcError> {
        Page::of(resources::templates(), cursor, PAGE, LISTS)
    }

    fn read(&self, uri: &str, exchange: &Arc<Exchange>) -> Result<(Vec<Value>, Cached), RpcError> {
        let part = resources::read(uri).ok_or_else(|| RpcError::no_resource(uri, exchange.version()))?;
        Ok((vec![part], LISTS))
    }

    fn watches(&self, uri: &str) -> bool {
        uri == resources::WATCHED
    }

    fn prompts(&self, cursor: Option<&str>, _: &Arc<Exchange>) -> Result<Page, RpcError> {
        Page::of(prompts::all(), cursor, PAGE, LISTS)
    }

    fn prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        exchange: &Arc<Exchange>,
    ) -> Result<Value, RpcError> {
        prompts::get(name, arguments, exchange)
    }

    fn complete(&self, params: &Value, _: &Arc<Exchange>) -> Result<(Vec<String>, usize), RpcError> {
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
    let server = Arc::new(Server::new(Arc::new(Fixtures { hub: OnceLock::new() })));
    let running =
        serve_http(server, HttpOptions::new(address, Vec::new())).map_err(|error| error.as_text())?;
    let mut out = std::io::stdout();
    writeln!(out, "listening on {}", running.url())?;
    out.flush()?;
    running.wait();
    Ok(())
}
