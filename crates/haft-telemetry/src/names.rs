//! The names of attributes, operations and metrics: the semantic conventions for generative AI, and Haft's own.

pub(crate) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";
pub(crate) const SCOPE: &str = "haft";

pub(crate) const INVOKE_AGENT: &str = "invoke_agent";
pub(crate) const CHAT: &str = "chat";
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(crate) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(crate) const AGENT_ID: &str = "gen_ai.agent.id";
pub(crate) const AGENT_DESCRIPTION: &str = "gen_ai.agent.description";
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(crate) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(crate) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(crate) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(crate) const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const SERVER_ADDRESS: &str = "server.address";
pub(crate) const SERVER_PORT: &str = "server.port";

pub(crate) const CALL: &str = "haft.call";
pub(crate) const DIALECT: &str = "haft.dialect";
pub(crate) const DECISION: &str = "haft.decision";
pub(crate) const RULE: &str = "haft.rule";
pub(crate) const SCOPE_STATUS: &str = "haft.scope.status";
pub(crate) const REVERSIBLE: &str = "haft.reversible";
pub(crate) const CHANGES: &str = "haft.changes";
pub(crate) const DENIALS: &str = "haft.denials";
pub(crate) const EXIT_CODE: &str = "haft.exit_code";
pub(crate) const UNDOES: &str = "haft.undoes";
pub(crate) const ERROR_MESSAGE: &str = "haft.error.message";
pub(crate) const WORKSPACE: &str = "haft.workspace";
pub(crate) const CHANGED_PATHS: &str = "haft.changed_paths";
pub(crate) const STOP: &str = "haft.stop";
pub(crate) const COST_USD: &str = "haft.cost_usd";
pub(crate) const INFERENCES: &str = "haft.inference_calls";
pub(crate) const FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub(crate) const RETRIES: &str = "haft.retries";
pub(crate) const TOOL_CALLS: &str = "haft.tool_calls";

/// The provider's name in the conventions, or its own if they have none.
pub(crate) fn provider(name: &str) -> &str {
    // The name may be followed by a host.
    match name.split(['@', '/', ' ']).next().unwrap_or(name) {
        "gemini" => "gcp.gemini",
        "claude-cli" => "anthropic",
        plain => plain,
    }
}
