//! What almost every tool uses: `use haft_tool::prelude::*`.

pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
pub use serde_json::{Value, json};

pub use crate::{
    Bound, Effect, EffectKind, Output, Planned, Planning, Tool, ToolError, ToolNeed, World, result_schema_of,
};
