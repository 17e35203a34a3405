//! `ReadMcpResource`: a resource of a connected MCP server.

use haft_tool::prelude::*;

/// Read a resource of a connected MCP server.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    server: String,
    uri: String,
}

pub(super) struct ReadMcpResource;

impl Tool for ReadMcpResource {
    const NAME: &'static str = "ReadMcpResource";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Inspect];
    const NEEDS: Option<ToolNeed> = Some(ToolNeed::McpServers);
    type Input = Input;
    type Plan = Input;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Input>, ToolError> {
        for (field, text) in [("server", &input.server), ("uri", &input.uri)] {
            if text.is_empty() {
                return Err(ToolError::invalid_arguments(format!("{field}: it is empty")));
            }
        }
        let what = format!("the resource {} of the server {}", input.uri, input.server);
        Ok(Planned::new([Effect::Inspect { what }], input))
    }

    fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        world.host().resource(&input.server, &input.uri)
    }
}
