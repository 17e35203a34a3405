//! The tools of a runtime, by name.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::runtime::WeakRuntime;
use haft_tool::{
    AnyTool, Bound, Definition, Dialect, ErrorForm, ErrorKind, Output, Reads, Resource, ToolError,
    close_names,
};

/// A tool and its definition, which is made on first use.
pub(crate) struct RegisteredTool {
    pub(crate) tool: Arc<dyn AnyTool>,
    /// Where it may read, if its dialect is not the runtime's.
    pub(crate) reads: Option<Reads>,
    definition: OnceLock<Definition>,
}

/// Tools that can appear and disappear while the runtime exists: those of MCP servers.
pub trait ToolSource: Send + Sync {
    /// Receives the runtime that uses the tools, before any other method is called.
    fn attach(&self, runtime: WeakRuntime);
    /// The tools that are known now.
    fn tools(&self) -> Vec<Arc<dyn AnyTool>>;
    /// The tool of that name, if it is known now.
    fn find(&self, name: &str) -> Option<Arc<dyn AnyTool>>;
    /// Whether a server that is not connected yet may have a tool of that name.
    fn may_have(&self, name: &str) -> bool;
    /// Why the tool of that name is not available, if it would belong to this source.
    fn why_missing(&self, name: &str) -> Option<ToolError>;
    /// Connects the servers that are not connected yet, for at most `limit`. Blocks.
    fn connect_all(&self, limit: Duration);
    /// The same for the servers that may have a tool of that name. Blocks.
    fn connect_for_tool(&self, name: &str, limit: Duration);
    /// Calls `listener` whenever the list of tools has changed.
    fn on_change(&self, listener: Box<dyn Fn() + Send + Sync>);
    /// The resources of one server, or of all. Blocks.
    fn resources(&self, server: Option<&str>) -> Result<Vec<Resource>, ToolError>;
    /// The contents of a resource. Blocks.
    fn resource(&self, server: &str, uri: &str) -> Result<Output, ToolError>;
    /// Closes every connection. Blocks.
    fn close(&self);
}

impl RegisteredTool {
    pub(crate) fn of(tool: Arc<dyn AnyTool>) -> Self {
        Self { tool, reads: None, definition: OnceLock::new() }
    }

    pub(crate) fn definition(&self) -> &Definition {
        self.definition.get_or_init(|| self.tool.definition())
    }
}

/// The tools of a runtime, in the order they are shown.
#[derive(Default)]
pub struct Registry {
    entries: Vec<Arc<RegisteredTool>>,
    by_name: HashMap<String, usize>,
    aliases: HashMap<String, String>,
    any_case: bool,
    errors: ErrorForm,
    server_results: Option<Bound>,
    listed_last: &'static [&'static str],
    allowed: Option<HashSet<String>>,
    disabled: HashSet<String>,
}

impl Registry {
    /// A registry of a dialect's tools, under its names and aliases.
    pub fn of(dialect: &Dialect) -> Self {
        let mut registry = Self {
            any_case: dialect.any_case,
            errors: dialect.errors,
            server_results: dialect.server_results,
            listed_last: dialect.listed_last,
            ..Self::default()
        };
        for tool in &dialect.tools {
            registry.register(Arc::clone(tool));
        }
        for (alias, name) in dialect.aliases {
            registry.aliases.insert(registry.key(alias).into_owned(), (*name).to_owned());
        }
        registry
    }

    /// Adds the tools of another dialect, which keep its behaviour. A name that is taken is an error.
    pub fn add(&mut self, dialect: &Dialect) -> Result<(), ToolError> {
        for tool in &dialect.tools {
            let name = tool.name();
            if self.by_name.contains_key(&*self.key(name)) {
                return Err(ToolError::invalid_arguments(format!(
                    "Two tools are called {name:?}. Leave out {name} or {}:{name}",
                    dialect.name
                )));
            }
            self.put(Arc::clone(tool), Some(dialect.reads.clone()));
        }
        Ok(())
    }

    /// Adds a tool. A tool of the same name is replaced, at the same position, and returned.
    pub fn register(&mut self, tool: Arc<dyn AnyTool>) -> Option<Arc<dyn AnyTool>> {
        self.put(tool, None)
    }

    fn put(&mut self, tool: Arc<dyn AnyTool>, reads: Option<Reads>) -> Option<Arc<dyn AnyTool>> {
        let key = self.key(tool.name()).into_owned();
        let entry = Arc::new(RegisteredTool { tool, reads, definition: OnceLock::new() });
        if let Some(at) = self.by_name.get(&key) {
            let old = std::mem::replace(&mut self.entries[*at], entry);
            return Some(Arc::clone(&old.tool));
        }
        self.by_name.insert(key, self.entries.len());
        self.entries.push(entry);
        None
    }

    /// Offers only these tools from now on.
    pub fn allow_only(&mut self, names: impl IntoIterator<Item = String>) {
        self.allowed = Some(names.into_iter().map(|name| self.key(&name).into_owned()).collect());
    }

    /// Stops offering this tool.
    pub fn disable(&mut self, name: &str) {
        self.disabled.insert(self.key(name).into_owned());
    }

    /// Whether the tool is offered.
    pub fn is_allowed(&self, name: &str) -> bool {
        let key = self.key(name);
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&*key)) && !self.disabled.contains(&*key)
    }

    /// The tool of that name or alias.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    /// All tools that are offered, as callers see them.
    pub fn definitions(&self) -> Vec<Definition> {
        self.offered().map(|entry| entry.definition().clone()).collect()
    }

    /// All tools that are offered.
    pub(crate) fn offered(&self) -> impl Iterator<Item = &Arc<RegisteredTool>> {
        self.entries.iter().filter(|entry| self.is_allowed(entry.tool.name()))
    }

    /// Whether the tool is listed after those of servers.
    pub(crate) fn is_listed_last(&self, name: &str) -> bool {
        self.listed_last.contains(&name)
    }

    /// How much of the tool's result the caller sees.
    pub(crate) fn bound_of(&self, tool: &dyn AnyTool) -> Bound {
        self.server_results.filter(|_| tool.is_remote()).unwrap_or_else(|| tool.bound())
    }

    /// How errors are written for the model.
    pub(crate) fn error_form(&self) -> ErrorForm {
        self.errors
    }

    /// The names of all tools, offered or not.
    pub fn names(&self) -> Vec<String> {
        self.entries.iter().map(|entry| entry.tool.name().to_owned()).collect()
    }

    fn entry(&self, name: &str) -> Option<&Arc<RegisteredTool>> {
        let key = self.key(name);
        let at =
            self.by_name.get(&*key).or_else(|| self.by_name.get(&*self.key(self.aliases.get(&*key)?)))?;
        self.entries.get(*at)
    }

    /// The tool for a call, or the error for the caller.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<RegisteredTool>, ToolError> {
        let offered =
            || self.entries.iter().map(|entry| entry.tool.name()).filter(|name| self.is_allowed(name));
        let Some(entry) = self.entry(name) else {
            let near = close_names(name, offered());
            let hint = match near.as_slice() {
                [] => format!("The tools are: {}", offered().collect::<Vec<_>>().join(", ")),
                near => format!("Did you mean {}?", near.join(" or ")),
            };
            return Err(ToolError::new(ErrorKind::NotFound, format!("Unknown tool {name:?}. {hint}")));
        };
        if !self.is_allowed(entry.tool.name()) {
            return Err(ToolError::denied(format!("The tool {} is disabled here", entry.tool.name())));
        }
        Ok(Arc::clone(entry))
    }

    fn key<'a>(&self, name: &'a str) -> Cow<'a, str> {
        if self.any_case { Cow::Owned(name.to_lowercase()) } else { Cow::Borrowed(name) }
    }
}
