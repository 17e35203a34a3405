//! A server's tool as a tool of the runtime.

use std::sync::Arc;

use haft_tool::{
    AnyTool, Bound, Content, Definition, Effect, EffectKind, Output, Perform, Planned, Planning, Progress,
    ToolError, World,
};
use serde_json::Value;

use super::arguments::check_arguments;
use super::handle::ServerHandle;
use super::tool_result::output;
use haft_mcp::client::portable::PortableTool;
use haft_mcp::client::{self, McpError, ToolCallOptions};

/// The largest result that is shown; the full text stays in the ledger.
const MAX_RESULT_CHARS: usize = 100_000;

/// A server's tool.
pub(super) struct RemoteTool {
    name: String,
    handle: Arc<ServerHandle>,
    tool: PortableTool,
}

impl RemoteTool {
    pub(super) fn new(name: &str, handle: &Arc<ServerHandle>, tool: &PortableTool) -> Self {
        Self { name: name.to_owned(), handle: Arc::clone(handle), tool: tool.clone() }
    }

    fn planned_effects(&self) -> Vec<Effect> {
        let grants =
            self.handle.known().map(|known| known.grants(&self.handle.entry).clone()).unwrap_or_default();
        vec![Effect::Serve {
            server: self.handle.entry.name.clone(),
            reaches: self.handle.entry.reaches() || grants.reaches(),
            writes: grants.writes || grants.unsandboxed,
        }]
    }

    fn call(&self, arguments: &Value, world: &dyn World) -> Result<Output, ToolError> {
        let client = self.handle.client()?;
        self.handle.context.refresh_tools(&self.handle.entry.name, &client)?;
        // Connecting may have loaded a changed tool list.
        let offered = self.handle.tools().is_some_and(|tools| tools.contains(&self.tool));
        if !offered {
            let (tool, server) = (&self.tool.name, &self.handle.entry.name);
            return Err(ToolError::denied(format!(
                "The tool {tool} of the server {server} was removed or has changed. `haft mcp get {server}` shows the change, \
                 `haft mcp trust {server}` allows it."
            )));
        }
        let progress = |progress: &client::ProgressUpdate| {
            let fraction = progress.total.filter(|total| *total > 0.0).map(|total| progress.progress / total);
            #[expect(clippy::cast_possible_truncation, reason = "a fraction needs no more")]
            let fraction = fraction.map(|fraction| fraction.clamp(0.0, 1.0) as f32);
            world.progress(Progress { fraction, message: progress.message.clone(), ..Progress::default() });
        };
        let trace = world.trace().and_then(|trace| trace.passed_on);
        let options = ToolCallOptions {
            progress: &progress,
            trace: trace.as_ref(),
            ..ToolCallOptions::new(world.cancelled())
        };
        let refusals = self.handle.refusals().map(|refusals| (refusals.control.refusal_position(), refusals));
        let result = client.call_tool(&self.tool.name, arguments, &options);
        let refused = refusals.and_then(|(position, refusals)| refusals.since(position));
        let refused = refused.map(|lines| format!("\n{lines}"));
        match result {
            Ok(result) => {
                let mut output = output(result, MAX_RESULT_CHARS);
                output.content.extend(refused.map(|lines| Content::Text { text: lines.into() }));
                Ok(output)
            }
            Err(error) => {
                if matches!(error.kind, McpError::Disconnected | McpError::Unreachable | McpError::Closed) {
                    self.handle.lost(&client);
                }
                let mut error = self.handle.tool_error(&error);
                error.message.extend(refused);
                Err(error)
            }
        }
    }
}

impl AnyTool for RemoteTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn effects(&self) -> &[EffectKind] {
        // Independent of the server's annotations, which are untrusted hints.
        &[EffectKind::Serve]
    }

    fn definition(&self) -> Definition {
        // Results are not checked against the server's output schema, so it is not passed on.
        let (description, input_schema) = (self.tool.description.clone(), self.tool.input_schema.clone());
        let mut definition = Definition::new(&self.name, description, input_schema, self.effects());
        // What the sandbox lets the server do, instead of what it says of itself.
        definition.effects = match self.planned_effects().first() {
            Some(Effect::Serve { reaches: false, writes: false, .. }) => vec![EffectKind::Inspect],
            Some(Effect::Serve { reaches: false, writes: true, .. }) => vec![EffectKind::Write],
            _ => vec![EffectKind::Serve],
        };
        definition
    }

    fn bound(&self) -> Bound {
        Bound { max_chars: MAX_RESULT_CHARS, ..Bound::default() }
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn plan(self: Arc<Self>, arguments: Value, _at: &Planning) -> Result<Planned<Perform>, ToolError> {
        check_arguments(&self.tool.server_schema, &arguments)?;
        let effects = self.planned_effects();
        Ok(Planned::new(effects, Box::new(move |world| self.call(&arguments, world))))
    }
}
