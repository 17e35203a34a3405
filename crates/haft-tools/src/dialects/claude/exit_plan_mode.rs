//! `ExitPlanMode`: asks the user to approve a plan.

use haft_tool::PlanReady;
use haft_tool::prelude::*;

/// In plan mode: say that your plan is ready and ask the user to approve it. Not for questions; use `AskUserQuestion`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The plan, in Markdown.
    plan: Option<String>,
    /// What the plan needs to be allowed.
    #[serde(rename = "allowedPrompts")]
    allowed_prompts: Option<Vec<AllowedPrompt>>,
    #[serde(rename = "pushToRemote")]
    push_to_remote: Option<bool>,
    #[serde(rename = "remoteSessionId")]
    #[expect(dead_code, reason = "accepted, because clients send it")]
    remote_session_id: Option<String>,
    #[serde(rename = "remoteSessionUrl")]
    #[expect(dead_code, reason = "accepted, because clients send it")]
    remote_session_url: Option<String>,
    #[serde(rename = "remoteSessionTitle")]
    #[expect(dead_code, reason = "accepted, because clients send it")]
    remote_session_title: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct AllowedPrompt {
    tool: PromptTool,
    /// For example "run tests".
    prompt: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
enum PromptTool {
    Bash,
}

pub(super) struct ExitPlanMode;

impl Tool for ExitPlanMode {
    const NAME: &'static str = "ExitPlanMode";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Ask];
    const NEEDS: Option<ToolNeed> = Some(ToolNeed::PlanApproval);
    type Input = Input;
    type Plan = PlanReady;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<PlanReady>, ToolError> {
        if input.push_to_remote == Some(true) {
            return Err(ToolError::invalid_arguments("pushToRemote: there is no remote session to push to"));
        }
        let allow = input.allowed_prompts.unwrap_or_default().into_iter();
        let allow = allow.map(|AllowedPrompt { tool: PromptTool::Bash, prompt }| ("Bash".to_owned(), prompt));
        Ok(Planned::new([Effect::Ask], PlanReady { plan: input.plan, allow: allow.collect() }))
    }

    fn perform(&self, plan: PlanReady, world: &dyn World) -> Result<Output, ToolError> {
        let answer = world.host().plan_ready(&plan, world.cancelled())?;
        let tools: Vec<String> = plan.allow.iter().map(|(tool, _)| tool.clone()).collect();
        world.approve_plan(&tools);
        Ok(Output::text(answer).with_structured(json!({"plan": plan.plan, "approved": true})))
    }
}
