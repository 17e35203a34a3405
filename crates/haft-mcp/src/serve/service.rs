//! What is served.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Exchange, Hub};
use crate::wire::RpcError;

/// Who answers.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its name for programs.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What a model should know about the whole of it.
    pub instructions: Option<String>,
}

/// What there is to be had.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol has as many switches")]
pub struct Offers {
    /// Resources.
    pub resources: bool,
    /// Word of resources that change.
    pub watching: bool,
    /// Prompts.
    pub prompts: bool,
    /// Suggestions for arguments.
    pub completions: bool,
    /// Log messages.
    pub logging: bool,
}

/// How long, and for whom, an answer holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cached {
    /// For how many milliseconds.
    pub ttl_ms: u64,
    /// Whether it is the same for everybody.
    pub public: bool,
}

/// One page of a list.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// What is on it, as the wire has it.
    pub items: Vec<Value>,
    /// How to ask for the next one.
    pub next: Option<String>,
    /// How long it holds.
    pub cached: Cached,
}

impl Page {
    /// The page of `all` that `cursor` asks for, `most` to a page.
    pub fn of(all: Vec<Value>, cursor: Option<&str>, most: usize, cached: Cached) -> Result<Self, RpcError> {
        let from = match cursor {
            None => 0,
            Some(cursor) => {
                cursor.parse::<usize>().ok().filter(|from| *from > 0 && *from < all.len()).ok_or_else(
                    || RpcError::params(format!("There is no page {cursor:?}; begin again without a cursor")),
                )?
            }
        };
        let next = (from + most < all.len()).then(|| (from + most).to_string());
        Ok(Self { items: all.into_iter().skip(from).take(most).collect(), next, cached })
    }
}

/// What is served. Every method may block; each has a thread to itself.
pub trait Service: Send + Sync {
    /// Who answers.
    fn identity(&self) -> Identity;

    /// What there is to be had besides tools.
    fn offers(&self) -> Offers {
        Offers::default()
    }

    /// Gets the place to tell news to: lists and resources that change.
    fn listen(&self, hub: &Hub) {
        let _ = hub;
    }

    /// The tools, always in the same order.
    fn tools(&self, cursor: Option<&str>, exchange: &Arc<Exchange>) -> Result<Page, RpcError>;

    /// Calls a tool. A call that fails is a result that says so; an error is for callers that could not be understood.
    fn call(&self, name: &str, arguments: Value, exchange: &Arc<Exchange>) -> Result<Value, RpcError>;

    /// The schema of a tool's arguments, if it wants to have any of them in headers as well (`x-mcp-header`).
    fn schema(&self, name: &str) -> Option<Value> {
        let _ = name;
        None
    }

    /// The resources.
    fn resources(&self, cursor: Option<&str>, exchange: &Arc<Exchange>) -> Result<Page, RpcError> {
        let _ = (cursor, exchange);
        Ok(Page::default())
    }

    /// The shapes of addresses that lead to resources.
    fn templates(&self, cursor: Option<&str>, exchange: &Arc<Exchange>) -> Result<Page, RpcError> {
        let _ = (cursor, exchange);
        Ok(Page::default())
    }

    /// What a resource holds: its parts, as the wire has them.
    fn read(&self, uri: &str, exchange: &Arc<Exchange>) -> Result<(Vec<Value>, Cached), RpcError> {
        Err(RpcError::no_resource(uri, exchange.version()))
    }

    /// Whether changes of that resource can be told.
    fn watches(&self, uri: &str) -> bool {
        let _ = uri;
        false
    }

    /// The prompts.
    fn prompts(&self, cursor: Option<&str>, exchange: &Arc<Exchange>) -> Result<Page, RpcError> {
        let _ = (cursor, exchange);
        Ok(Page::default())
    }

    /// One prompt with these arguments.
    fn prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        exchange: &Arc<Exchange>,
    ) -> Result<Value, RpcError> {
        let _ = (arguments, exchange);
        Err(RpcError::params(format!("There is no prompt {name:?}")))
    }

    /// Suggestions for an argument: the values, and how many there are in all.
    fn complete(&self, params: &Value, exchange: &Arc<Exchange>) -> Result<(Vec<String>, usize), RpcError> {
        let _ = (params, exchange);
        Ok((Vec::new(), 0))
    }
}
