//! A small service for tests, which shows what happens inside.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use haft_mcp::serve::{
    CacheHint, ChangeNotifier, ClientRequest, ClientRequestError, ListPage, LogLevel, McpServer, McpService,
    RequestContext, ServerCapabilities, ServerChange, ServerIdentity,
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
    pub(crate) unanswered: Vec<ClientRequestError>,
    released: bool,
}

#[derive(Default)]
struct Inside {
    seen: Mutex<Seen>,
    changed: Condvar,
    notifier: OnceLock<ChangeNotifier>,
}

/// The service; clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Toys(Arc<Inside>);

impl Toys {
    /// A server of these.
    pub(crate) fn server(&self) -> Arc<McpServer> {
        Arc::new(McpServer::new(Arc::new(self.clone())))
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
    pub(crate) fn tell(&self, news: &ServerChange) {
        self.0.notifier.get().unwrap().notify(news);
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen());
        self.0.changed.notify_all();
    }

    /// Waits until it is released or the call is taken back.
    fn hold(&self, context: &RequestContext) -> Value {
        let waking = self.clone();
        let _listening = context.cancel().on_cancel(move || waking.change(|_| {}));
        self.change(|seen| seen.begun += 1);
        self.until(|seen| seen.released || context.cancel().is_cancelled());
        if context.cancel().is_cancelled() {
            self.change(|seen| seen.cancelled += 1);
        }
        said("held")
    }

    fn ask(&self, context: &RequestContext) -> Value {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let params = json!({"message": "Who?", "requestedSchema": schema});
        let question = ClientRequest { key: "who".to_owned(), method: "elicitation/create", params };
        self.change(|seen| seen.begun += 1);
        match context.request_client(&[question]) {
            Ok(answers) => said(&json!(answers).to_string()),
            Err(why) => {
                self.change(|seen| seen.unanswered.push(why));
                said("nobody answered")
            }
        }
    }
}

impl McpService for Toys {
    fn identity(&self) -> ServerIdentity {
        ServerIdentity { name: "toys", title: "Toys", version: "0", instructions: None }
    }

    fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities {
            resources: true,
            subscriptions: true,
            prompts: true,
            completions: false,
            logging: true,
        }
    }

    fn set_notifier(&self, notifier: &ChangeNotifier) {
        self.0.notifier.set(notifier.clone()).map_err(drop).unwrap();
    }

    fn list_tools(&self, cursor: Option<&str>, _: &Arc<RequestContext>) -> Result<ListPage, RpcError> {
        let names = ["echo", "hold", "talk", "later", "ask", "large", "fall", "routed"];
        let all = names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        ListPage::new(all.collect(), cursor, 100, CacheHint::default())
    }

    fn call_tool(
        &self,
        name: &str,
        arguments: Value,
        context: &Arc<RequestContext>,
    ) -> Result<Value, RpcError> {
        Ok(match name {
            "echo" | "routed" => said(&arguments.to_string()),
            "hold" => self.hold(context),
            "later" => {
                context.disconnect_client();
                self.hold(context)
            }
            "talk" => {
                for step in 0..arguments["times"].as_u64().unwrap_or_default() {
                    context.log(LogLevel::Info, "toys", &json!(step));
                }
                self.change(|seen| seen.talked += 1);
                said("talked")
            }
            "ask" => self.ask(context),
            "large" => {
                said(&"x".repeat(usize::try_from(arguments["bytes"].as_u64().unwrap_or_default()).unwrap()))
            }
            "fall" => said(arguments["nothing"].as_str().unwrap()),
            _ => return Err(RpcError::invalid_params(format!("There is no tool {name:?}"))),
        })
    }

    fn header_schema(&self, name: &str) -> Option<Value> {
        (name == "routed").then(|| {
            json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}})
        })
    }

    fn read_resource(
        &self,
        uri: &str,
        context: &Arc<RequestContext>,
    ) -> Result<(Vec<Value>, CacheHint), RpcError> {
        match uri {
            "toys://one" => Ok((vec![json!({"uri": uri, "text": "one"})], CacheHint::default())),
            _ => Err(RpcError::resource_not_found(uri, context.version())),
        }
    }

    fn can_subscribe(&self, uri: &str) -> bool {
        uri == "toys://one"
    }

    fn get_prompt(
        &self,
        name: &str,
        _: &Map<String, Value>,
        _: &Arc<RequestContext>,
    ) -> Result<Value, RpcError> {
        Err(RpcError::invalid_params(format!("There is no prompt {name:?}")))
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
