//! `oracle`: a question to another model.

use haft_tool::prelude::*;
use haft_tool::{ModelRequest, ModelRole};

use crate::ops::api::host_of;
use crate::ops::oracle::{OracleAnswer, OracleQuestion, SYSTEM_PROMPT, ask};
use crate::settings::LoomSettings;

const DEFAULT_TOKENS: u32 = 512;
const DEFAULT_TEMPERATURE: f64 = 0.2;

/// Ask another model for advice: hard reasoning, a review, special knowledge. It sees only what you write here.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The question or task, with everything needed to answer it.
    query: String,
    /// Which model.
    model: Option<String>,
    /// The most tokens to answer with (default 512).
    #[schemars(range(min = 16, max = 4096))]
    max_tokens: Option<u32>,
    /// How freely it answers (default 0.2).
    #[schemars(range(min = 0.0, max = 2.0))]
    temperature: Option<f64>,
    /// How it should answer, instead of short and exact.
    system_prompt: Option<String>,
}

pub(super) struct Oracle {
    pub(super) server: LoomSettings,
}

impl Oracle {
    /// Whether a model of the host is asked: it is preferred to a server that the user did not name.
    fn asks_host(&self) -> bool {
        self.server.has_host_model && self.server.server_url.is_none()
    }
}

impl Tool for Oracle {
    const NAME: &'static str = "oracle";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Reach];
    const BOUND: Bound = super::BOUND;
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<OracleAnswer>);
    type Input = Input;
    type Plan = Input;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Input>, ToolError> {
        if input.query.trim().is_empty() {
            return Err(ToolError::invalid_arguments("query: expected a question, got an empty text"));
        }
        // The provider of the run is reached by every request; a server is not.
        let effect = if self.asks_host() {
            None
        } else {
            Some(Effect::Reach { host: host_of(&self.server.url("/")?) })
        };
        Ok(Planned::new(effect, input))
    }

    fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let max_tokens = input.max_tokens.unwrap_or(DEFAULT_TOKENS);
        let system_prompt = input.system_prompt.filter(|prompt| !prompt.trim().is_empty());
        let system_prompt = system_prompt.as_deref().unwrap_or(SYSTEM_PROMPT);
        let model = input.model.filter(|model| !model.is_empty());
        let answer = if self.server.server_url.is_none() && world.host().has_model(ModelRole::Oracle) {
            let completion = ModelRequest {
                role: ModelRole::Oracle,
                model: model.or_else(|| self.server.oracle_model.clone()),
                system: Some(system_prompt.to_owned()),
                prompt: input.query,
                max_tokens,
            };
            OracleAnswer::from_text(world.host().complete(&completion, world.cancelled())?)
        } else {
            let question = OracleQuestion {
                query: &input.query,
                model: model.as_deref(),
                max_tokens,
                temperature: input.temperature.unwrap_or(DEFAULT_TEMPERATURE),
                system_prompt,
            };
            ask(world, &self.server, &question)?
        };
        Ok(Output::json(json!(answer)))
    }
}
