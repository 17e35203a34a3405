//! One definition of a tool, and its erased form.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Bound, Effect, EffectKind, Output, Planning, SideEffect, ToolError, World, formats_of, schema_of,
};

/// A tool: its name, its typed input, its effects and its implementation.
///
/// The doc comment of the input type is the description that the model reads; the doc comments of its fields describe the
/// parameters. Schema, `--help`, MCP form and rules are generated from this one definition. A tool whose name or schema is
/// not known at compile time implements [`AnyTool`] instead.
pub trait Tool: Send + Sync + 'static {
    /// The name that callers use.
    const NAME: &'static str;
    /// Every kind of effect that a plan of this tool may contain; a plan with another kind is refused. The class shown to
    /// callers ([`SideEffect`]) is derived from it.
    const EFFECTS: &'static [EffectKind];
    /// How much of the result the caller sees.
    const BOUND: Bound = Bound::DEFAULT;
    /// Whether a number outside the range of the schema is replaced by the nearest one inside it instead of refused.
    const CLAMP_NUMBERS: bool = false;
    /// Returns the schema of the structured result, if that is the whole result and not an addition to the text. For a result
    /// type `T` it is `Some(result_schema_of::<T>)`.
    const OUTPUT_SCHEMA: Option<fn() -> Value> = None;

    /// Whether `perform` uses only the World. Then it can run in a World that changes nothing, to show the user which files a
    /// call would change.
    const HAS_PREVIEW: bool = false;

    /// What it needs besides the machine to be useful.
    const NEEDS: Option<ToolNeed> = None;

    /// The arguments. `#[serde(deny_unknown_fields)]` makes a misspelt field an error.
    type Input: DeserializeOwned + JsonSchema + Send + 'static;
    /// What `plan` resolved and `perform` needs.
    type Plan: Send + 'static;

    /// Resolves the input and declares what the call will touch. Changes nothing and does not use the machine.
    fn plan(&self, input: Self::Input, at: &Planning) -> Result<Planned<Self::Plan>, ToolError>;

    /// Performs the call. `world` is the only interface to the machine and enforces the scope.
    ///
    /// Runs on a thread of its own, so it may block; a long loop must check [`World::cancelled`].
    fn perform(&self, plan: Self::Plan, world: &dyn World) -> Result<Output, ToolError>;
}

/// What a tool needs besides the machine. An entry point that lacks it need not offer the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolNeed {
    /// An agent loop that Haft runs itself, with its todos, its subagents and its settings.
    AgentLoop,
    /// A user who can approve a plan.
    PlanApproval,
    /// A configured web search.
    SearchEngine,
    /// A user who can answer questions.
    UserAnswers,
    /// Configured MCP servers.
    McpServers,
}

/// What `plan` returns: the declared effects, and what `perform` receives.
#[derive(Debug, Clone)]
pub struct Planned<P> {
    /// What the call will touch.
    pub effects: Vec<Effect>,
    /// What was resolved, so that nothing is resolved twice.
    pub plan: P,
}

impl<P> Planned<P> {
    /// A plan with these effects.
    pub fn new(effects: impl IntoIterator<Item = Effect>, plan: P) -> Self {
        Self { effects: effects.into_iter().collect(), plan }
    }

    /// The same effects with the plan converted by `convert`.
    pub fn map<Q>(self, convert: impl FnOnce(P) -> Q) -> Planned<Q> {
        Planned { effects: self.effects, plan: convert(self.plan) }
    }
}

/// A planned call that only has to be performed.
pub type Perform = Box<dyn FnOnce(&dyn World) -> Result<Output, ToolError> + Send>;

/// A tool as callers see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Definition {
    /// The name to call.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its result, where that is one value with a known form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The class of its side effects.
    pub side_effect: SideEffect,
    /// The kinds of its effects. A definition that was read from JSON has none.
    #[serde(skip)]
    pub effects: Vec<EffectKind>,
}

impl Definition {
    /// A definition without an output schema, for a tool that implements [`AnyTool`].
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        effects: &[EffectKind],
    ) -> Self {
        let (name, description) = (name.into(), description.into());
        let side_effect = SideEffect::of(effects);
        Self { name, description, input_schema, output_schema: None, side_effect, effects: effects.to_vec() }
    }

    /// The definition of a tool with the input type `Input`.
    pub fn of<Input: JsonSchema>(name: &str, effects: &[EffectKind]) -> Self {
        let mut input_schema = schema_of::<Input>();
        let description =
            match input_schema.as_object_mut().and_then(|schema| schema.shift_remove("description")) {
                Some(Value::String(description)) => description,
                _ => String::new(),
            };
        Self::new(name, description, input_schema, effects)
    }
}

/// A tool whose input type is erased. Implemented by every [`Tool`].
pub trait AnyTool: Send + Sync {
    /// The name that callers use.
    fn name(&self) -> &str;
    /// See [`Tool::EFFECTS`].
    fn effects(&self) -> &[EffectKind];
    /// The tool as callers see it.
    fn definition(&self) -> Definition;
    /// Converts arguments that fit the schema and plans the call.
    fn plan(self: Arc<Self>, arguments: Value, at: &Planning) -> Result<Planned<Perform>, ToolError>;

    /// The arguments that stand for something else, such as a path, with what they stand for: see [`formats_of`].
    fn argument_formats(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    /// The class of its side effects.
    fn side_effect(&self) -> SideEffect {
        SideEffect::of(self.effects())
    }
    /// How much of the result the caller sees.
    fn bound(&self) -> Bound {
        Bound::DEFAULT
    }
    /// See [`Tool::CLAMP_NUMBERS`].
    fn clamp_numbers(&self) -> bool {
        false
    }
    /// See [`Tool::OUTPUT_SCHEMA`].
    fn output_schema(&self) -> Option<fn() -> Value> {
        None
    }
    /// See [`Tool::HAS_PREVIEW`].
    fn has_preview(&self) -> bool {
        false
    }
    /// See [`Tool::NEEDS`].
    fn needs(&self) -> Option<ToolNeed> {
        None
    }
    /// Whether the tool belongs to an MCP server, which checks the arguments itself.
    fn is_remote(&self) -> bool {
        false
    }
}

impl<T: Tool> AnyTool for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn effects(&self) -> &[EffectKind] {
        T::EFFECTS
    }

    fn definition(&self) -> Definition {
        let output_schema = T::OUTPUT_SCHEMA.map(|schema| schema());
        Definition { output_schema, ..Definition::of::<T::Input>(T::NAME, T::EFFECTS) }
    }

    fn plan(self: Arc<Self>, arguments: Value, at: &Planning) -> Result<Planned<Perform>, ToolError> {
        let input = serde_json::from_value(arguments)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let planned = Tool::plan(&*self, input, at)?;
        Ok(planned.map(|plan| -> Perform { Box::new(move |world| self.perform(plan, world)) }))
    }

    fn argument_formats(&self) -> Vec<(String, String)> {
        formats_of::<T::Input>()
    }

    fn bound(&self) -> Bound {
        T::BOUND
    }

    fn clamp_numbers(&self) -> bool {
        T::CLAMP_NUMBERS
    }

    fn output_schema(&self) -> Option<fn() -> Value> {
        T::OUTPUT_SCHEMA
    }

    fn has_preview(&self) -> bool {
        T::HAS_PREVIEW
    }

    fn needs(&self) -> Option<ToolNeed> {
        T::NEEDS
    }
}
