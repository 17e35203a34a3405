//! One connection to one server, as the rest of Haft sees it.

use std::sync::Arc;
use std::time::Instant;

use haft_tool::Cancel;
use serde_json::{Map, Value, json};

use super::conversation::{Conversation, Question};
use super::ear::Ear;
use super::http::old::OldStream;
use super::http::{HttpEndpoint, Streamable, headers};
use super::link::Link;
use super::listing::{self, ServerList};
use super::patience::Patience;
use super::stdio::{ProcessPipes, Stdio};
use super::subscription::Subscription;
use super::things::{self, ResourceTemplate, ServerPrompt, ServerResource, ServerTool};
use super::{ClientError, ClientLimits, ClientOptions, McpError, ServerInfo, ToolCallOptions, lock, rounds};
use crate::serve::ServerChange;
use crate::wire::{HEADER_MISMATCH, METHOD_NOT_FOUND, ProtocolVersion};

/// How a server is reached.
pub enum ServerTransport {
    /// A process, over its standard input and output.
    Stdio(ProcessPipes),
    /// An address.
    Http(HttpEndpoint),
}

/// One connection to one server. All of it blocks, and none of it for ever; several threads may ask at once.
pub struct McpClient {
    conversation: Arc<Conversation>,
    subscription: Subscription,
}

impl McpClient {
    /// Finds out who is there. A process is ended if that fails.
    pub fn connect(transport: ServerTransport, options: ClientOptions) -> Result<Self, ClientError> {
        let conversation = match transport {
            ServerTransport::Stdio(pipes) => {
                let ear = Arc::new(Ear::new(options.handler.clone()));
                let link: Arc<dyn Link> = Arc::new(Stdio::new(pipes, &options.limits, &ear)?);
                Conversation::begin(link, ear, options, false)?
            }
            ServerTransport::Http(endpoint) => over_http(endpoint, options)?,
        };
        let conversation = Arc::new(conversation);
        Ok(Self { subscription: Subscription::new(&conversation), conversation })
    }

    /// Who the server says it is.
    pub fn info(&self) -> ServerInfo {
        self.conversation.info()
    }

    /// Its tools, in its order. Of several with one name the first is kept.
    pub fn list_tools(&self) -> Result<ServerList<ServerTool>, ClientError> {
        // A server that has tools and does not declare them is asked all the same.
        let listed = match self.list("tools/list", "tools") {
            Err(ClientError { kind: McpError::Rpc(error), .. })
                if error.code == METHOD_NOT_FOUND && !self.info().declares("tools") =>
            {
                ServerList::default()
            }
            listed => listed?,
        };
        let all = listed.read(ServerTool::read);
        let mut tools = ServerList { items: Vec::new(), warnings: all.warnings };
        let mut marks = std::collections::HashMap::new();
        let mirrors = self.mirrors();
        for tool in all.items {
            let name = listing::shown(&Value::from(tool.name.as_str()));
            if marks.contains_key(&tool.name) {
                tools.warn(format!("a second tool named {name} is left out"));
                continue;
            }
            match if mirrors { headers::mirrored(&tool.input_schema) } else { Ok(Vec::new()) } {
                Ok(found) => {
                    marks.insert(tool.name.clone(), found);
                    tools.items.push(tool);
                }
                Err(why) => tools.warn(format!("the tool {name} is left out: {why}")),
            }
        }
        *lock(&self.conversation.mirrored) = marks;
        Ok(tools)
    }

    /// Its resources; none if it declares none.
    pub fn list_resources(&self) -> Result<ServerList<ServerResource>, ClientError> {
        self.list_declared("resources", "resources/list", "resources", "resource")
    }

    /// Its templates of resources; none if it declares no resources.
    pub fn list_resource_templates(&self) -> Result<ServerList<ResourceTemplate>, ClientError> {
        self.list_declared("resources", "resources/templates/list", "resourceTemplates", "template")
    }

    /// Its prompts; none if it declares none.
    pub fn list_prompts(&self) -> Result<ServerList<ServerPrompt>, ClientError> {
        self.list_declared("prompts", "prompts/list", "prompts", "prompt")
    }

    /// What is in a resource: the list of its contents, as the wire has it.
    pub fn read_resource(&self, uri: &str, cancel: &Cancel) -> Result<Value, ClientError> {
        let mut result =
            self.settle(Question::new("resources/read", json!({"uri": uri})), &ToolCallOptions::new(cancel))?;
        match result.get_mut("contents").map(Value::take) {
            Some(contents @ Value::Array(_)) => Ok(contents),
            _ => Err(ClientError::invalid_message("the server's answer to `resources/read` has no contents")),
        }
    }

    /// A prompt with its arguments filled in, as the wire has it.
    pub fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        cancel: &Cancel,
    ) -> Result<Value, ClientError> {
        let params = json!({"name": name, "arguments": arguments});
        let result = self.settle(Question::new("prompts/get", params), &ToolCallOptions::new(cancel))?;
        if result.get("messages").is_none_or(|messages| !messages.is_array()) {
            return Err(ClientError::invalid_message("the server's answer to `prompts/get` has no messages"));
        }
        Ok(result)
    }

    /// Calls a tool; its result as the wire has it, an object whose `content`, if there is any, is a list. A result that
    /// says `isError` is a result. A call that fails is never made again here: nobody knows how far it came.
    pub fn call_tool(
        &self,
        name: &str,
        arguments: &Value,
        options: &ToolCallOptions<'_>,
    ) -> Result<Value, ClientError> {
        let params = json!({"name": name, "arguments": arguments});
        let question = || {
            let marks = self.marks(name);
            Question {
                headers: headers::mirror(&marks, arguments),
                ..Question::new("tools/call", params.clone())
            }
        };
        if self.mirrors() && !lock(&self.conversation.mirrored).contains_key(name) {
            // Which arguments go along as headers is in the list, which nobody has asked for yet.
            self.list_tools()?;
        }
        let mut outcome = self.settle(question(), options);
        if let Err(ClientError { kind: McpError::Rpc(error), .. }) = &outcome
            && error.code == HEADER_MISMATCH
            && self.mirrors()
        {
            // The list has changed, and the call was refused before it began.
            self.list_tools()?;
            outcome = self.settle(question(), options);
        }
        let result = outcome?;
        if !things::is_tool_result(&result) {
            let shown = listing::shown(&result);
            return Err(ClientError::invalid_message(format!(
                "the result has not the shape of a tool's result: {shown}"
            )));
        }
        Ok(result)
    }

    /// Has `listener` told, on a thread of its own, what has changed; many changes at once are told as one.
    pub fn on_change(&self, listener: impl Fn(ServerChange) + Send + 'static) {
        self.conversation.ear.news.listen(Box::new(listener));
        self.subscription.begin();
    }

    /// How often the server has said that its tools are others: whoever has listed them since then knows them.
    pub fn tool_list_changes(&self) -> u64 {
        self.conversation.ear.news.tool_list_changes()
    }

    /// Asks to be told when this resource changes.
    pub fn subscribe(&self, uri: &str) -> Result<(), ClientError> {
        if self.info().version.is_stateless() {
            self.subscription.watch(uri);
            return Ok(());
        }
        let limit = self.limits().list_timeout;
        let cancel = Cancel::new();
        let (cancel, _guards) = self.conversation.linked(&cancel);
        let question = Question::new("resources/subscribe", json!({"uri": uri}));
        self.conversation.ask(&question, &Patience::of(limit, &cancel)).map(drop)
    }

    /// Whether it is known that no more answers come: whoever asks would hear of the end.
    pub fn is_closed(&self) -> bool {
        self.conversation.is_over()
    }

    /// Ends the connection, and the server if it is a process of ours. To end it twice is to end it once.
    pub fn close(&self) {
        self.subscription.end();
        self.conversation.close();
    }

    fn limits(&self) -> &ClientLimits {
        &self.conversation.options.limits
    }

    /// Whether arguments may have to go along as headers.
    fn mirrors(&self) -> bool {
        self.conversation.has_headers && self.conversation.version().is_stateless()
    }

    fn marks(&self, name: &str) -> Vec<headers::Mirrored> {
        lock(&self.conversation.mirrored).get(name).cloned().unwrap_or_default()
    }

    fn settle(&self, question: Question, options: &ToolCallOptions<'_>) -> Result<Value, ClientError> {
        let _during = self.conversation.ear.during_a_call(self.limits().max_questions);
        let (cancel, _guards) = self.conversation.linked(options.cancel);
        let default = if question.method == "tools/call" {
            self.limits().call_timeout
        } else {
            self.limits().list_timeout
        };
        let step = options.timeout.unwrap_or(default);
        let at_most = options.max_time.unwrap_or(self.limits().max_call_time).max(step);
        let thinking = &self.conversation.ear.thinking;
        rounds::settle(&self.conversation, question, &cancel, || {
            Patience::stretching(step, at_most, &cancel, options.progress).with_questions(thinking)
        })
    }

    fn list_declared<T: for<'de> serde::Deserialize<'de>>(
        &self,
        capability: &str,
        method: &'static str,
        key: &'static str,
        what: &str,
    ) -> Result<ServerList<T>, ClientError> {
        if !self.info().declares(capability) {
            return Ok(ServerList::default());
        }
        Ok(self.list(method, key)?.read(|item| things::read(what, item)))
    }

    fn list(
        &self,
        method: &'static str,
        key: &'static str,
    ) -> Result<ServerList<Map<String, Value>>, ClientError> {
        let until = Instant::now() + self.limits().list_timeout;
        let cancel = Cancel::new();
        let (cancel, _guards) = self.conversation.linked(&cancel);
        listing::list(key, self.limits(), |params| {
            let left = until.saturating_duration_since(Instant::now());
            self.conversation.ask(&Question::new(method, params), &Patience::of(left, &cancel))
        })
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        self.close();
    }
}

/// Over HTTP a server that knows neither way of asking may be one of the oldest.
fn over_http(endpoint: HttpEndpoint, options: ClientOptions) -> Result<Conversation, ClientError> {
    let again = endpoint.clone();
    let ear = Arc::new(Ear::new(options.handler.clone()));
    let link: Arc<dyn Link> = Arc::new(Streamable::new(endpoint, &options.limits, &ear)?);
    let wanted = options.version.unwrap_or(ProtocolVersion::NEWEST_LEGACY);
    let error = match Conversation::begin(link, ear, options.clone(), true) {
        Err(error)
            if matches!(error.kind, McpError::HttpStatus(400 | 404 | 405)) && !wanted.is_stateless() =>
        {
            error
        }
        outcome => return outcome,
    };
    let ear = Arc::new(Ear::new(options.handler.clone()));
    let cancel = Cancel::new();
    let patience = Patience::of(options.limits.connect_timeout, &cancel);
    let Ok(link) = OldStream::open(again, &options.limits, &ear, &patience) else { return Err(error) };
    Conversation::begin(Arc::new(link), ear, ClientOptions { version: Some(wanted), ..options }, false)
}
