//! `Agent`: runs another agent.

use haft_tool::AgentRequest;
use haft_tool::prelude::*;

/// Have another agent do a task and report back. It sees nothing of this conversation, so the prompt must say everything.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The task in 3 to 5 words.
    description: String,
    /// The task, and what to report.
    prompt: String,
    subagent_type: String,
    /// The caller's own if left out.
    model: Option<AgentModel>,
    /// ID of an agent to go on with.
    resume: Option<String>,
    /// Return at once; read it with `TaskOutput`.
    run_in_background: Option<bool>,
    /// The most rounds it may take.
    #[schemars(range(min = 1))]
    max_turns: Option<u32>,
    name: Option<String>,
    team_name: Option<String>,
    mode: Option<AgentMode>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AgentModel {
    Sonnet,
    Opus,
    Haiku,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum AgentMode {
    AcceptEdits,
    BypassPermissions,
    Default,
    Delegate,
    DontAsk,
    Plan,
}

pub(super) struct Agent;

impl Tool for Agent {
    const NAME: &'static str = "Agent";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Spawn];
    const NEEDS: Option<ToolNeed> = Some(ToolNeed::AgentLoop);
    type Input = Input;
    type Plan = AgentRequest;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<AgentRequest>, ToolError> {
        for (field, text) in [("prompt", &input.prompt), ("subagent_type", &input.subagent_type)] {
            if text.trim().is_empty() {
                return Err(ToolError::invalid_arguments(format!("{field}: it is empty")));
            }
        }
        let effect = Effect::Spawn { agent: input.subagent_type.clone() };
        let order = AgentRequest {
            description: input.description,
            prompt: input.prompt,
            kind: input.subagent_type,
            model: wire_name(input.model.as_ref())?,
            resume: input.resume,
            background: input.run_in_background.unwrap_or(false),
            max_turns: input.max_turns,
            name: input.name,
            team: input.team_name,
            mode: wire_name(input.mode.as_ref())?,
            trace: None,
        };
        Ok(Planned::new([effect], order))
    }

    fn perform(&self, order: AgentRequest, world: &dyn World) -> Result<Output, ToolError> {
        let order = AgentRequest { trace: world.trace().map(|trace| trace.own), ..order };
        let report = world.host().agent(&order, &|progress| world.progress(progress), world.cancelled())?;
        let (status, text) = match &report.said {
            Some(answer) if answer.is_empty() => {
                ("completed", format!("(agent {} gave no answer)", report.id))
            }
            Some(answer) => ("completed", format!("{answer}\n\nagentId: {}", report.id)),
            None => ("async_launched", format!("Agent running in background with ID: {}", report.id)),
        };
        Ok(Output::text(text).with_structured(json!({
            "status": status, "agentId": report.id, "description": order.description,
            "totalTurns": report.turns, "totalTokens": report.tokens,
        })))
    }
}

/// The name on the wire, which hosts use too.
fn wire_name(value: Option<&impl Serialize>) -> Result<Option<String>, ToolError> {
    let value = value.map(serde_json::to_value).transpose()?;
    Ok(value.and_then(|value| value.as_str().map(str::to_owned)))
}
