//! The interface of what is served.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{ChangeNotifier, RequestContext};
use crate::wire::RpcError;

/// A server's name and version.
#[derive(Debug, Clone)]
pub struct ServerIdentity {
    /// The name for programs.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The version.
    pub version: &'static str,
}

/// The declared capabilities of a server; every server has tools.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol has as many switches")]
pub struct ServerCapabilities {
    /// Resources.
    pub resources: bool,
    /// Notifications about changed resources.
    pub subscriptions: bool,
    /// Prompts.
    pub prompts: bool,
    /// Completion of arguments.
    pub completions: bool,
    /// Log messages.
    pub logging: bool,
    /// Calls that are answered with a task.
    pub tasks: bool,
}

/// How long a result may be cached, and for whom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheHint {
    /// For how many milliseconds.
    pub ttl_ms: u64,
    /// Whether it is the same for all clients.
    pub public: bool,
}

/// One page of a list.
#[derive(Debug, Clone, Default)]
pub struct ListPage {
    /// The items, in the protocol's form.
    pub items: Vec<Value>,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// How long the page may be cached.
    pub cache: CacheHint,
}

impl ListPage {
    /// The page of `all` that begins at `cursor`, with at most `page_size` items.
    pub fn new(
        all: Vec<Value>,
        cursor: Option<&str>,
        page_size: usize,
        cache: CacheHint,
    ) -> Result<Self, RpcError> {
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                let start = cursor.parse::<usize>().ok().filter(|start| *start > 0 && *start < all.len());
                let unknown = || format!("Unknown cursor: {cursor:?}. Start again without a cursor.");
                start.ok_or_else(|| RpcError::invalid_params(unknown()))?
            }
        };
        let next = (start + page_size < all.len()).then(|| (start + page_size).to_string());
        Ok(Self { items: all.into_iter().skip(start).take(page_size).collect(), next, cache })
    }
}

/// What a server offers. Methods that take a context may block; each call has its own thread.
pub trait McpService: Send + Sync {
    /// The server's name and version.
    fn identity(&self) -> ServerIdentity;

    /// Instructions for the model of a client that declares these capabilities. Must not block.
    fn instructions(&self, client_capabilities: &Value) -> Option<String> {
        let _ = client_capabilities;
        None
    }

    /// The capabilities besides tools.
    fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities::default()
    }

    /// Receives the notifier for changed lists and resources, once, before any request.
    fn set_notifier(&self, notifier: &ChangeNotifier) {
        let _ = notifier;
    }

    /// Lists the tools, always in the same order.
    fn list_tools(&self, cursor: Option<&str>, context: &Arc<RequestContext>) -> Result<ListPage, RpcError>;

    /// Calls a tool. A failed call is a result with `isError`; an error is for calls that are invalid.
    fn call_tool(
        &self,
        name: &str,
        arguments: Value,
        context: &Arc<RequestContext>,
    ) -> Result<Value, RpcError>;

    /// The input schema of a tool that requires arguments in headers as well (`x-mcp-header`).
    fn header_schema(&self, name: &str) -> Option<Value> {
        let _ = name;
        None
    }

    /// Lists the resources.
    fn list_resources(
        &self,
        cursor: Option<&str>,
        context: &Arc<RequestContext>,
    ) -> Result<ListPage, RpcError> {
        let _ = (cursor, context);
        Ok(ListPage::default())
    }

    /// Lists the templates of resource URIs.
    fn list_resource_templates(
        &self,
        cursor: Option<&str>,
        context: &Arc<RequestContext>,
    ) -> Result<ListPage, RpcError> {
        let _ = (cursor, context);
        Ok(ListPage::default())
    }

    /// Reads a resource; returns its contents in the protocol's form.
    fn read_resource(
        &self,
        uri: &str,
        context: &Arc<RequestContext>,
    ) -> Result<(Vec<Value>, CacheHint), RpcError> {
        Err(RpcError::resource_not_found(uri, context.version()))
    }

    /// Whether clients can subscribe to changes of this resource. Must not block.
    fn can_subscribe(&self, uri: &str) -> bool {
        let _ = uri;
        false
    }

    /// Lists the prompts.
    fn list_prompts(
        &self,
        cursor: Option<&str>,
        context: &Arc<RequestContext>,
    ) -> Result<ListPage, RpcError> {
        let _ = (cursor, context);
        Ok(ListPage::default())
    }

    /// Returns one prompt with these arguments.
    fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        context: &Arc<RequestContext>,
    ) -> Result<Value, RpcError> {
        let _ = (arguments, context);
        Err(RpcError::invalid_params(format!("Unknown prompt: {name:?}")))
    }

    /// Completes an argument; returns values and their total number.
    fn complete(
        &self,
        params: &Value,
        context: &Arc<RequestContext>,
    ) -> Result<(Vec<String>, usize), RpcError> {
        let _ = (params, context);
        Ok((Vec::new(), 0))
    }
}
