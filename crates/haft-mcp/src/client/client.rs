//! The client: one connection to one server.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use haft_tool::Cancel;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::connection::ServerConnection;
use super::deadline::Deadline;
use super::http::headers::{self, HeaderParam};
use super::http::sse::SseConnection;
use super::http::{HttpEndpoint, StreamableConnection};
use super::inbound::Inbound;
use super::items::{self, ResourceTemplate, ServerPrompt, ServerResource, ServerTool};
use super::linked::LinkedConnection;
use super::list::{self, ServerList};
use super::session::{ClientSession, OutgoingRequest};
use super::stdio::{ProcessPipes, StdioConnection};
use super::subscription::Subscription;
use super::{
    ClientError, ClientLimits, ClientOptions, McpError, MessageLink, ServerInfo, ToolCallOptions,
    input_rounds, lock,
};
use crate::serve::ServerChange;
use crate::wire::{HEADER_MISMATCH, METHOD_NOT_FOUND, ProtocolVersion, meta};

/// How a server is reached.
pub enum ServerTransport {
    /// A child process, over its standard input and output.
    Stdio(ProcessPipes),
    /// An HTTP endpoint.
    Http(HttpEndpoint),
    /// Inside the program that drives this one.
    Linked(Arc<dyn MessageLink>),
}

/// A connection to one server. All methods block, with a limit; several threads may use it at once.
pub struct McpClient {
    session: Arc<ClientSession>,
    subscription: Subscription,
}

impl McpClient {
    /// Connects to a server and agrees on a protocol version. A process is ended if that fails.
    pub fn connect(transport: ServerTransport, options: ClientOptions) -> Result<Self, ClientError> {
        let session = match transport {
            ServerTransport::Stdio(pipes) => {
                let inbound = Arc::new(Inbound::new(options.handler.clone()));
                let connection = StdioConnection::new(pipes, &options.limits, &inbound)?;
                ClientSession::begin(Arc::new(connection), inbound, options, false)?
            }
            ServerTransport::Http(endpoint) => connect_http(endpoint, options)?,
            ServerTransport::Linked(link) => {
                let inbound = Arc::new(Inbound::new(options.handler.clone()));
                // Such servers know only the handshake, and a probe for something else costs a message to another program.
                let version = options.version.or(Some(ProtocolVersion::NEWEST_LEGACY));
                let options = ClientOptions { version, ..options };
                ClientSession::begin(Arc::new(LinkedConnection(link)), inbound, options, false)?
            }
        };
        let session = Arc::new(session);
        Ok(Self { subscription: Subscription::new(&session), session })
    }

    /// What the server says about itself.
    pub fn info(&self) -> ServerInfo {
        self.session.info()
    }

    /// Lists the tools in the server's order. Of several with the same name, the first is kept.
    pub fn list_tools(&self) -> Result<ServerList<ServerTool>, ClientError> {
        // A server may have tools without declaring them.
        let listed = match self.list("tools/list", "tools") {
            Err(ClientError { kind: McpError::Rpc(error), .. })
                if error.code == METHOD_NOT_FOUND && !self.info().has_capability("tools") =>
            {
                ServerList::default()
            }
            listed => listed?,
        };
        let all = listed.map(ServerTool::read);
        let mut tools = ServerList { items: Vec::new(), warnings: all.warnings };
        let mut header_params = HashMap::new();
        let uses_header_params = self.uses_header_params();
        for tool in all.items {
            let name = list::excerpt(&Value::from(tool.name.as_str()));
            if header_params.contains_key(&tool.name) {
                tools.warn(format!("a second tool named {name} is left out"));
                continue;
            }
            let found =
                if uses_header_params { HeaderParam::find_all(&tool.input_schema) } else { Ok(Vec::new()) };
            match found {
                Ok(found) => {
                    header_params.insert(tool.name.clone(), found);
                    tools.items.push(tool);
                }
                Err(why) => tools.warn(format!("the tool {name} is left out: {why}")),
            }
        }
        *lock(&self.session.header_params) = header_params;
        Ok(tools)
    }

    /// Lists the resources; none if the server does not declare any.
    pub fn list_resources(&self) -> Result<ServerList<ServerResource>, ClientError> {
        self.list_declared("resources", "resources/list", "resources", "resource")
    }

    /// Lists the resource templates; none if the server does not declare resources.
    pub fn list_resource_templates(&self) -> Result<ServerList<ResourceTemplate>, ClientError> {
        self.list_declared("resources", "resources/templates/list", "resourceTemplates", "template")
    }

    /// Lists the prompts; none if the server does not declare any.
    pub fn list_prompts(&self) -> Result<ServerList<ServerPrompt>, ClientError> {
        self.list_declared("prompts", "prompts/list", "prompts", "prompt")
    }

    /// Reads a resource; returns the array of its contents.
    pub fn read_resource(&self, uri: &str, cancel: &Cancel) -> Result<Value, ClientError> {
        let request = OutgoingRequest::new("resources/read", json!({"uri": uri}));
        let mut result = self.request_with_input(request, &ToolCallOptions::new(cancel))?;
        match result.get_mut("contents").map(Value::take) {
            Some(contents @ Value::Array(_)) => Ok(contents),
            _ => Err(ClientError::invalid_message("the server's answer to `resources/read` has no contents")),
        }
    }

    /// Gets a prompt with these arguments.
    pub fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        cancel: &Cancel,
    ) -> Result<Value, ClientError> {
        let params = json!({"name": name, "arguments": arguments});
        let request = OutgoingRequest::new("prompts/get", params);
        let result = self.request_with_input(request, &ToolCallOptions::new(cancel))?;
        if result.get("messages").is_none_or(|messages| !messages.is_array()) {
            return Err(ClientError::invalid_message("the server's answer to `prompts/get` has no messages"));
        }
        Ok(result)
    }

    /// Calls a tool. Returns its result, an object whose `content`, if present, is an array; `isError` is a result, too.
    /// A failed call is never repeated, because it may have had effects.
    pub fn call_tool(
        &self,
        name: &str,
        arguments: &Value,
        options: &ToolCallOptions<'_>,
    ) -> Result<Value, ClientError> {
        let mut params = json!({"name": name, "arguments": arguments});
        if let Some(trace) = options.trace {
            params["_meta"] = meta::of_trace(trace);
        }
        let request = || {
            let header_params = lock(&self.session.header_params).get(name).cloned().unwrap_or_default();
            let headers = headers::param_headers(&header_params, arguments);
            OutgoingRequest { method: "tools/call", params: params.clone(), headers }
        };
        if self.uses_header_params() && !lock(&self.session.header_params).contains_key(name) {
            // The list says which arguments are repeated in headers.
            self.list_tools()?;
        }
        let mut outcome = self.request_with_input(request(), options);
        if let Err(ClientError { kind: McpError::Rpc(error), .. }) = &outcome
            && error.code == HEADER_MISMATCH
            && self.uses_header_params()
        {
            // The list has changed, and the call was refused before it began.
            self.list_tools()?;
            outcome = self.request_with_input(request(), options);
        }
        let result = outcome?;
        if !items::is_tool_result(&result) {
            let shown = list::excerpt(&result);
            return Err(ClientError::invalid_message(format!(
                "the server's tool result is invalid: {shown}"
            )));
        }
        Ok(result)
    }

    /// Calls `listener` when something has changed, on a thread of its own. Changes in quick succession are merged.
    pub fn on_change(&self, listener: impl Fn(ServerChange) + Send + 'static) {
        self.session.inbound.changes.listen(Box::new(listener));
        self.subscription.begin();
    }

    /// How often the server has reported that its list of tools has changed.
    pub fn tool_list_changes(&self) -> u64 {
        self.session.inbound.changes.tool_list_changes()
    }

    /// Subscribes to changes of a resource.
    pub fn subscribe(&self, uri: &str) -> Result<(), ClientError> {
        if self.info().version.is_stateless() {
            self.subscription.add_resource(uri);
            return Ok(());
        }
        let (cancel, _guards) = self.session.linked_cancel(&Cancel::new());
        let request = OutgoingRequest::new("resources/subscribe", json!({"uri": uri}));
        self.session.request(&request, &Deadline::after(self.limits().list_timeout, &cancel)).map(drop)
    }

    /// Whether it is known that the server answers no more.
    pub fn is_closed(&self) -> bool {
        self.session.connection.is_closed()
    }

    /// Closes the connection, and ends the server if it is a child process. Idempotent.
    pub fn close(&self) {
        self.subscription.end();
        self.session.close();
    }

    fn limits(&self) -> &ClientLimits {
        &self.session.options.limits
    }

    /// Whether arguments may have to be repeated in headers.
    fn uses_header_params(&self) -> bool {
        self.session.has_headers && self.session.version().is_stateless()
    }

    fn request_with_input(
        &self,
        request: OutgoingRequest,
        options: &ToolCallOptions<'_>,
    ) -> Result<Value, ClientError> {
        let _call = self.session.inbound.begin_call(self.limits().max_questions);
        let (cancel, _guards) = self.session.linked_cancel(options.cancel);
        let is_call = request.method == "tools/call";
        let default = if is_call { self.limits().call_timeout } else { self.limits().list_timeout };
        let idle_timeout = options.timeout.unwrap_or(default);
        let total_timeout = options.max_time.unwrap_or(self.limits().max_call_time).max(idle_timeout);
        input_rounds::request(&self.session, request, &cancel, || {
            Deadline::with_progress(idle_timeout, total_timeout, &cancel, options.progress)
                .paused_by(&self.session.inbound.questions)
        })
    }

    fn list_declared<T: DeserializeOwned>(
        &self,
        capability: &str,
        method: &'static str,
        key: &'static str,
        item_name: &str,
    ) -> Result<ServerList<T>, ClientError> {
        if !self.info().has_capability(capability) {
            return Ok(ServerList::default());
        }
        Ok(self.list(method, key)?.map(|item| items::read(item_name, item)))
    }

    fn list(
        &self,
        method: &'static str,
        key: &'static str,
    ) -> Result<ServerList<Map<String, Value>>, ClientError> {
        let until = Instant::now() + self.limits().list_timeout;
        let (cancel, _guards) = self.session.linked_cancel(&Cancel::new());
        list::fetch(key, self.limits(), |params| {
            let remaining = until.saturating_duration_since(Instant::now());
            self.session.request(&OutgoingRequest::new(method, params), &Deadline::after(remaining, &cancel))
        })
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        self.close();
    }
}

/// Connects over HTTP; a server that rejects POST may be one of version 2024-11-05, with its own transport.
fn connect_http(endpoint: HttpEndpoint, options: ClientOptions) -> Result<ClientSession, ClientError> {
    let inbound = Arc::new(Inbound::new(options.handler.clone()));
    let connection: Arc<dyn ServerConnection> =
        Arc::new(StreamableConnection::new(endpoint.clone(), &options.limits, &inbound)?);
    let version = options.version.unwrap_or(ProtocolVersion::NEWEST_LEGACY);
    let error = match ClientSession::begin(connection, inbound, options.clone(), true) {
        Err(error)
            if matches!(error.kind, McpError::HttpStatus(400 | 404 | 405)) && !version.is_stateless() =>
        {
            error
        }
        outcome => return outcome,
    };
    let inbound = Arc::new(Inbound::new(options.handler.clone()));
    let cancel = Cancel::new();
    let deadline = Deadline::after(options.limits.connect_timeout, &cancel);
    let Ok(connection) = SseConnection::open(endpoint, &options.limits, &inbound, &deadline) else {
        return Err(error);
    };
    let options = ClientOptions { version: Some(version), ..options };
    ClientSession::begin(Arc::new(connection), inbound, options, false)
}
