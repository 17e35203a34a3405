//! A small service for tests, which shows what happens inside.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use haft_mcp::serve::{
    Ask, Cached, Exchange, Hub, Identity, Level, News, Offers, Page, Server, Service, Unanswered,
};
use haft_mcp::wire::RpcError;
use serde_json::{Map, Value, json};

/// Long after anything should have happened; only a test that fails waits for so long.
pub(crate) const LATER: Duration = Duration::from_mins(1);

/// What has happened so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Calls of tools that wait.
    pub(crate) begun: usize,
    /// Those that were taken back.
    pub(crate) cancelled: usize,
    /// Calls of the tool that talks which have said all.
    pub(crate) talked: usize,
    /// Questions that got no answer.
    pub(crate) unanswered: Vec<Unanswered>,
    released: bool,
}

#[derive(Default)]
struct Inside {
    seen: Mutex<Seen>,
    changed: Condvar,
    hub: OnceLock<Hub>,
}

/// The service; clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Toys(Arc<Inside>);

impl Toys {
    /// A server of these.
    pub(crate) fn server(&self) -> Arc<Server> {
        Arc::new(Server::new(Arc::new(self.clone())))
    }

    /// Waits until something is so.
    pub(crate) fn until(&self, is: impl Fn(&Seen) -> bool) {
        let limit = Instant::now() + LATER;
        let mut seen = self.seen();
        while !is(&seen) {
            let left = limit.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "it never came to that: {:?}", *seen);
            seen = self.0.changed.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Lets tools that wait come to their end.
    pub(crate) fn release(&self) {
        self.change(|seen| seen.released = true);
    }

    /// Tells news.
    pub(crate) fn tell(&self, news: &News) {
        self.0.hub.get().unwrap().tell(news);
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen());
        self.0.changed.notify_all();
    }

    /// Waits until it is released or the call is taken back.
    fn hold(&self, exchange: &Exchange) -> Value {
        let waking = self.clone();
        let _listening = exchange.cancel().on_cancel(move || waking.change(|_| {}));
        self.change(|seen| seen.begun += 1);
        self.until(|seen| seen.released || exchange.cancel().is_cancelled());
        if exchange.cancel().is_cancelled() {
            self.change(|seen| seen.cancelled += 1);
        }
        said("held")
    }

    fn ask(&self, exchange: &Exchange) -> Value {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let params = json!({"message": "Who?", "requestedSchema": schema});
        let question = Ask { key: "who".to_owned(), method: "elicitation/create", params };
        self.change(|seen| seen.begun += 1);
        match exchange.ask(&[question]) {
            Ok(answers) => said(&json!(answers).to_string()),
            Err(why) => {
                self.change(|seen| seen.unanswered.push(why));
                said("nobody answered")
            }
        }
    }
}

impl Service for Toys {
    fn identity(&self) -> Identity {
        Identity { name: "toys", title: "Toys", version: "0", instructions: None }
    }

    fn offers(&self) -> Offers {
        Offers { resources: true, watching: true, prompts: true, completions: false, logging: true }
    }

    fn listen(&self, hub: &Hub) {
        self.0.hub.set(hub.clone()).map_err(drop).unwrap();
    }

    fn tools(&self, cursor: Option<&str>, _: &Arc<Exchange>) -> Result<Page, RpcError> {
        let names = ["echo", "hold", "talk", "later", "ask", "large", "fall", "routed"];
        let all = names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        Page::of(all.collect(), cursor, 100, Cached::default())
    }

    fn call(&self, name: &str, arguments: Value, exchange: &Arc<Exchange>) -> Result<Value, RpcError> {
        Ok(match name {
            "echo" | "routed" => said(&arguments.to_string()),
            "hold" => self.hold(exchange),
            "later" => {
                exchange.come_back_later();
                self.hold(exchange)
            }
            "talk" => {
                for step in 0..arguments["times"].as_u64().unwrap_or_default() {
                    exchange.log(Level::Info, "toys", &json!(step));
                }
                self.change(|seen| seen.talked += 1);
                said("talked")
            }
            "ask" => self.ask(exchange),
            "large" => {
                said(&"x".repeat(usize::try_from(arguments["bytes"].as_u64().unwrap_or_default()).unwrap()))
            }
            "fall" => said(arguments["nothing"].as_str().unwrap()),
            _ => return Err(RpcError::params(format!("There is no tool {name:?}"))),
        })
    }

    fn schema(&self, name: &str) -> Option<Value> {
        (name == "routed").then(|| {
            json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}})
        })
    }

    fn read(&self, uri: &str, exchange: &Arc<Exchange>) -> Result<(Vec<Value>, Cached), RpcError> {
        match uri {
            "toys://one" => Ok((vec![json!({"uri": uri, "text": "one"})], Cached::default())),
            _ => Err(RpcError::no_resource(uri, exchange.version())),
        }
    }

    fn watches(&self, uri: &str) -> bool {
        uri == "toys://one"
    }

    fn prompt(&self, name: &str, _: &Map<String, Value>, _: &Arc<Exchange>) -> Result<Value, RpcError> {
        Err(RpcError::params(format!("There is no prompt {name:?}")))
    }
}

fn said(words: &str) -> Value {
    json!({"content": [{"type": "text", "text": words}]})
}

/// The parameters of a request of the new era.
pub(crate) fn modern(params: Value) -> Value {
    modern_with(params, json!({"elicitation": {}}))
}

/// The same, of a client that can do this much.
pub(crate) fn modern_with(mut params: Value, capabilities: impl Into<Value>) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities.into(),
        "io.modelcontextprotocol/logLevel": "debug",
    });
    params
}

/// A request.
pub(crate) fn request(id: impl Into<Value>, method: &str, params: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params.into()})
}

/// A call of a tool.
pub(crate) fn call(name: &str, arguments: impl Into<Value>) -> Value {
    json!({"name": name, "arguments": arguments.into()})
}

/// How a client of an earlier revision begins.
pub(crate) fn initialize(id: impl Into<Value>, version: &str) -> Value {
    let client = json!({"name": "test", "version": "0"});
    let params =
        json!({"protocolVersion": version, "capabilities": {"elicitation": {}}, "clientInfo": client});
    request(id, "initialize", params)
}
