//! `ListMcpResources`: the resources of connected MCP servers.

use haft_tool::Resource;
use haft_tool::prelude::*;

/// List the resources of connected MCP servers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Only this server's.
    server: Option<String>,
}

pub(super) struct ListMcpResources;

impl Tool for ListMcpResources {
    const NAME: &'static str = "ListMcpResources";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Inspect];
    const NEEDS: Option<ToolNeed> = Some(ToolNeed::McpServers);
    type Input = Input;
    type Plan = Input;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Input>, ToolError> {
        let what = match &input.server {
            Some(server) => format!("the resources of the server {server}"),
            None => "the resources of all servers".to_owned(),
        };
        Ok(Planned::new([Effect::Inspect { what }], input))
    }

    fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let all = world.host().resources(input.server.as_deref())?;
        let text = if all.is_empty() { "No resources".to_owned() } else { all.iter().map(line).collect() };
        Ok(Output::text(text).with_structured(json!({"resources": all})))
    }
}

fn line(resource: &Resource) -> String {
    let Resource { server, uri, name, description, media_type } = resource;
    let about = description.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
    let kind = media_type.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    format!("{server}  {uri}  {name}{kind}{about}\n")
}
