//! Which tools the model may call.

use haft_runtime::Runtime;
use haft_tool::{Definition, ErrorKind, ToolError, close_names};

/// Which tools the model may call: all, none, or those of a list, but for those of another list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedTools {
    only: Option<Vec<String>>,
    except: Vec<String>,
}

impl AllowedTools {
    /// All tools that the runtime offers.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only these tools; none if the list is empty.
    pub fn only(names: impl IntoIterator<Item = String>) -> Self {
        Self { only: Some(names.into_iter().collect()), except: Vec::new() }
    }

    /// The same without these tools.
    #[must_use]
    pub fn except(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.except.extend(names);
        self
    }

    /// What both this and `other` allow.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        let only = match (&self.only, &other.only) {
            (Some(own), Some(_)) => Some(own.iter().filter(|name| other.allows(name)).cloned().collect()),
            (own, others) => own.clone().or_else(|| others.clone()),
        };
        let except = self.except.iter().chain(&other.except).cloned().collect();
        Self { only, except }
    }

    /// Whether the model is offered tools at all: false only for an empty list.
    pub fn tools_enabled(&self) -> bool {
        self.only.as_ref().is_none_or(|names| !names.is_empty())
    }

    /// Whether the tool with this name may be called.
    pub fn allows(&self, name: &str) -> bool {
        let is_listed = |names: &[String]| names.iter().any(|listed| covers(listed, name));
        self.only.as_deref().is_none_or(is_listed) && !is_listed(&self.except)
    }

    /// The tools of a runtime that may be called, as the model sees them.
    pub(crate) fn definitions(&self, runtime: &Runtime) -> Vec<Definition> {
        if !self.tools_enabled() {
            return Vec::new();
        }
        let mut definitions = runtime.definitions();
        definitions.retain(|tool| self.allows(&tool.name));
        definitions
    }

    /// Why a call of this tool is not made: it is not known, or not one of the allowed ones. The model may use any of its names.
    pub(crate) fn refusal(&self, name: &str, runtime: &Runtime) -> Option<ToolError> {
        let known = runtime.registry().get(name).map(|tool| tool.name().to_owned());
        if known.is_some() || runtime.may_have_tool(name) {
            let wire_name = known.as_deref().unwrap_or(name);
            return (!self.allows(wire_name)).then(|| self.unknown(name, runtime));
        }
        Some(self.unknown(name, runtime))
    }

    /// The error for a tool that the model cannot call, with those that it can.
    fn unknown(&self, name: &str, runtime: &Runtime) -> ToolError {
        let offered: Vec<String> =
            self.definitions(runtime).into_iter().map(|definition| definition.name).collect();
        let near = close_names(name, offered.iter().map(String::as_str));
        let near = match near.as_slice() {
            [] => String::new(),
            near => format!(" Did you mean {}?", near.join(" or ")),
        };
        let list = match offered.as_slice() {
            [] => "There are no tools in this run: answer without them.".to_owned(),
            offered => format!("The tools are: {}.", offered.join(", ")),
        };
        ToolError::new(ErrorKind::NotFound, format!("There is no tool {name:?}.{near} {list}"))
    }
}

/// Whether an entry of a list stands for the tool: its name, or a server's name for all of its tools.
fn covers(listed: &str, name: &str) -> bool {
    let server = listed.strip_suffix('*').unwrap_or(listed).trim_end_matches("__");
    listed == name
        || (server.starts_with("mcp__")
            && name.strip_prefix(server).is_some_and(|rest| rest.starts_with("__")))
}
