//! One definition of a tool, and its erased form behind one registration line.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Bound, Effect, ErrorKind, Output, Planning, Reads, SideEffect, ToolError, World, close_names, schema_of,
};

/// A tool: its name, its typed input, its effects and how to perform it.
///
/// The input type's doc comment is what the model reads as the tool's description; its fields' doc comments
/// describe the parameters. Schema, `--help`, MCP form and rules are all made from this one definition.
pub trait Tool: Send + Sync + 'static {
    /// The arguments. Give it `#[serde(deny_unknown_fields)]`, so that a misspelt field is told to the caller.
    type Input: DeserializeOwned + JsonSchema + Send + 'static;

    /// The name the caller uses.
    fn name(&self) -> &str;

    /// What kind of thing the tool does.
    fn side_effect(&self) -> SideEffect;

    /// What this call will touch. Pure: look at the input, touch nothing.
    fn plan(&self, input: &Self::Input, planning: &Planning) -> Result<Vec<Effect>, ToolError>;

    /// Does it. The World is the only door to the machine and holds the call to its scope.
    ///
    /// Runs on a thread of its own, so it may block (unless its side effect is [`SideEffect::None`]); a long loop should
    /// look at [`World::cancelled`].
    fn perform(
        &self,
        input: Self::Input,
        world: &dyn World,
    ) -> impl Future<Output = Result<Output, ToolError>> + Send;

    /// How much of the result the caller sees.
    fn bound(&self) -> Bound {
        Bound::default()
    }

    /// Whether a number beyond the range that the schema shows is taken as the nearest one inside it, not refused.
    fn clamps(&self) -> bool {
        false
    }

    /// The schema of its structured result where that is the whole result, not facts beside the text: for a result type
    /// `Given`, `Some(result_schema_of::<Given>)`. It is made only when somebody wants to see it.
    fn gives(&self) -> Option<fn() -> Value> {
        None
    }
}

/// A tool as callers see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// The name to call.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its result, where that is one value and known beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What kind of thing it does.
    pub side_effect: SideEffect,
}

/// The future of a performed call.
pub type Performing<'a> = Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + 'a>>;

/// A call whose arguments have been understood and which can now be planned and performed.
pub trait Prepared: Send {
    /// See [`Tool::plan`].
    fn plan(&self, planning: &Planning) -> Result<Vec<Effect>, ToolError>;
    /// See [`Tool::perform`].
    fn perform(self: Box<Self>, world: &dyn World) -> Performing<'_>;
}

/// Any tool, its input type forgotten.
pub trait AnyTool: Send + Sync {
    /// The name the caller uses.
    fn name(&self) -> &str;
    /// What kind of thing the tool does.
    fn side_effect(&self) -> SideEffect;
    /// The tool as callers see it.
    fn definition(&self) -> Definition;
    /// How much of the result the caller sees.
    fn bound(&self) -> Bound;
    /// See [`Tool::clamps`].
    fn clamps(&self) -> bool {
        false
    }
    /// Whether it is somebody else's, who holds the arguments to a schema of their own.
    fn is_foreign(&self) -> bool {
        false
    }
    /// See [`Tool::gives`].
    fn gives(&self) -> Option<fn() -> Value> {
        None
    }
    /// Turns arguments that fit the schema into a call that can be performed.
    fn prepare(self: Arc<Self>, arguments: Value) -> Result<Box<dyn Prepared>, ToolError>;
}

impl<T: Tool> AnyTool for T {
    fn name(&self) -> &str {
        Tool::name(self)
    }

    fn side_effect(&self) -> SideEffect {
        Tool::side_effect(self)
    }

    fn definition(&self) -> Definition {
        let mut input_schema = schema_of::<T::Input>();
        let description =
            match input_schema.as_object_mut().and_then(|schema| schema.shift_remove("description")) {
                Some(Value::String(description)) => description,
                _ => String::new(),
            };
        Definition {
            name: Tool::name(self).to_owned(),
            description,
            input_schema,
            output_schema: Tool::gives(self).map(|schema| schema()),
            side_effect: Tool::side_effect(self),
        }
    }

    fn bound(&self) -> Bound {
        Tool::bound(self)
    }

    fn clamps(&self) -> bool {
        Tool::clamps(self)
    }

    fn gives(&self) -> Option<fn() -> Value> {
        Tool::gives(self)
    }

    fn prepare(self: Arc<Self>, arguments: Value) -> Result<Box<dyn Prepared>, ToolError> {
        let input = serde_json::from_value(arguments)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        Ok(Box::new(Typed { tool: self, input }))
    }
}

struct Typed<T: Tool> {
    tool: Arc<T>,
    input: T::Input,
}

impl<T: Tool> Prepared for Typed<T> {
    fn plan(&self, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        self.tool.plan(&self.input, planning)
    }

    fn perform(self: Box<Self>, world: &dyn World) -> Performing<'_> {
        let Self { tool, input } = *self;
        Box::pin(async move { tool.perform(input, world).await })
    }
}

/// A named set of tools in a vocabulary that models know.
#[derive(Clone)]
pub struct Dialect {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its tools, in the order they are shown.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// Further names that callers may use, and the tool each of them means.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Whether names are found in any case.
    pub any_case: bool,
    /// Where its tools may read.
    pub reads: Reads,
    /// Where its tools never write, whatever the scope says.
    pub blocked: &'static [&'static str],
    /// Files outside the workspace that one of its tools keeps, because the user's settings say so.
    pub keeps: Vec<(&'static str, PathBuf)>,
    /// Hosts that one of its tools asks if nobody names another, as `host` or `host:port`.
    pub asks: Vec<(&'static str, &'static str)>,
}

impl std::fmt::Debug for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tools: Vec<_> = self.tools.iter().map(|tool| tool.name().to_owned()).collect();
        f.debug_struct("Dialect").field("name", &self.name).field("tools", &tools).finish_non_exhaustive()
    }
}

impl Dialect {
    /// The same dialect with only these of its tools, in this order, by any of their names.
    pub fn only<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Result<Self, ToolError> {
        let mut chosen = Vec::new();
        for name in names {
            let wire = self.canonical(name);
            let found = self.tools.iter().find(|tool| tool.name() == wire).ok_or_else(|| {
                let all = || self.tools.iter().map(|tool| tool.name());
                let hint = match close_names(name, all()).as_slice() {
                    [] => format!("there are: {}", all().collect::<Vec<_>>().join(", ")),
                    near => format!("did you mean {}?", near.join(" or ")),
                };
                let known = format!("the dialect {} has no tool {name:?}; {hint}", self.name);
                ToolError::new(ErrorKind::NotFound, known)
            })?;
            chosen.push(Arc::clone(found));
        }
        self.keeps.retain(|(keeper, _)| chosen.iter().any(|tool| tool.name() == *keeper));
        self.tools = chosen;
        Ok(self)
    }

    /// The name on the wire that `name` stands for, itself if it is none of this dialect's.
    pub fn canonical(&self, name: &str) -> String {
        let same = |known: &str| if self.any_case { known.eq_ignore_ascii_case(name) } else { known == name };
        if let Some(tool) = self.tools.iter().find(|tool| same(tool.name())) {
            return tool.name().to_owned();
        }
        let alias = self.aliases.iter().find(|(alias, _)| same(alias));
        alias.map_or_else(|| name.to_owned(), |(_, name)| (*name).to_owned())
    }
}
