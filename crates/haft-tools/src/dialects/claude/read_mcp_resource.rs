//! `ReadMcpResource`: what a resource of a connected server holds.

use haft_tool::{Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, World};
use serde::Deserialize;

/// Read a resource of a connected MCP server.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    server: String,
    uri: String,
}

pub(super) struct ReadMcpResource;

impl Tool for ReadMcpResource {
    type Input = Input;

    fn name(&self) -> &'static str {
        "ReadMcpResource"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::ReadOnly
    }

    fn plan(&self, input: &Input, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        for (field, text) in [("server", &input.server), ("uri", &input.uri)] {
            if text.is_empty() {
                return Err(ToolError::invalid_arguments(format!("{field}: it is empty")));
            }
        }
        Ok(Vec::new())
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        world.host().resource(&input.server, &input.uri).await
    }
}
