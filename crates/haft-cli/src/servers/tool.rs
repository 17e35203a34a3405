//! A server's tool as a tool of the runtime: planned, decided, recorded and bounded like every other.

use std::sync::Arc;

use haft_tool::{
    AnyTool, Bound, Definition, Effect, EffectKind, Output, Perform, Planned, Planning, Progress, ToolError,
    World,
};
use serde_json::Value;

use super::held::Held;
use super::result::output;
use haft_mcp::client::portable::PortableTool;
use haft_mcp::client::{self, McpError, ToolCallOptions};

/// How much of a result is shown; the whole of it is in the ledger.
const MOST_CHARS: usize = 100_000;

/// A server's tool.
pub(super) struct RemoteTool {
    name: String,
    held: Arc<Held>,
    tool: PortableTool,
}

impl RemoteTool {
    pub(super) fn new(name: &str, held: &Arc<Held>, tool: &PortableTool) -> Self {
        Self { name: name.to_owned(), held: Arc::clone(held), tool: tool.clone() }
    }

    fn planned_effects(&self) -> Vec<Effect> {
        let grants =
            self.held.known().map(|known| known.grants(&self.held.entry).clone()).unwrap_or_default();
        vec![Effect::Serve {
            server: self.held.entry.name.clone(),
            reaches: self.held.entry.reaches() || grants.reaches(),
            writes: grants.writes || grants.unheld,
        }]
    }

    fn call(&self, arguments: &Value, world: &dyn World) -> Result<Output, ToolError> {
        let client = self.held.client()?;
        self.held.ground.catch_up(&self.held.entry.name, &client)?;
        // The list may be another one now that somebody has asked for it.
        let offered = self.held.tools().is_some_and(|tools| tools.contains(&self.tool));
        if !offered {
            let (tool, server) = (&self.tool.name, &self.held.entry.name);
            return Err(ToolError::denied(format!(
                "the tool {tool} of the server {server} is gone, or is not what you were shown: `haft mcp get {server}` tells \
                 more, `haft mcp trust {server}` allows what changed"
            )));
        }
        let progress = |progress: &client::ProgressUpdate| {
            let fraction = progress.total.filter(|total| *total > 0.0).map(|total| progress.progress / total);
            #[expect(clippy::cast_possible_truncation, reason = "a fraction needs no more")]
            let fraction = fraction.map(|fraction| fraction.clamp(0.0, 1.0) as f32);
            world.progress(Progress { fraction, message: progress.message.clone(), ..Progress::default() });
        };
        let options = ToolCallOptions { progress: &progress, ..ToolCallOptions::new(world.cancelled()) };
        client.call_tool(&self.tool.name, arguments, &options).map(output).map_err(|error| {
            if matches!(error.kind, McpError::Disconnected | McpError::Unreachable | McpError::Closed) {
                self.held.lost(&client);
            }
            self.held.told(&error)
        })
    }
}

impl AnyTool for RemoteTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn effects(&self) -> &[EffectKind] {
        // Whatever the server says of its tools: that is a hint and no promise.
        &[EffectKind::Serve]
    }

    fn definition(&self) -> Definition {
        Definition {
            name: self.name.clone(),
            description: self.tool.description.clone(),
            input_schema: self.tool.input_schema.clone(),
            // Nobody holds a server to what it says it gives, so it is not said in our name.
            output_schema: None,
            side_effect: self.side_effect(),
        }
    }

    fn bound(&self) -> Bound {
        Bound { max_chars: MOST_CHARS, ..Bound::default() }
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn plan(self: Arc<Self>, arguments: Value, _at: &Planning) -> Result<Planned<Perform>, ToolError> {
        let effects = self.planned_effects();
        Ok(Planned::new(effects, Box::new(move |world| self.call(&arguments, world))))
    }
}
