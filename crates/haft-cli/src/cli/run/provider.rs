//! Which model answers: by flags, by settings, by the keys in the environment, or on this machine.

use std::sync::Arc;

use haft_agent::RunState;
use haft_model::{
    CLAUDE_COMPLEX_MODEL, Endpoint, HttpModel, Model, ModelError, ModelErrorKind, ModelSet, PROVIDERS,
    ProviderSettings, ScriptModel,
};
use haft_runtime::Runtime;
use haft_tool::{Cancel, ErrorKind, HttpStreams, Secret, ToolError};

use super::super::screen::{self, FAINT, styled};
use super::args::{ModelArgs, SCRIPT};
use super::claude_program::{self, CLAUDE_CLI};
use super::local_servers::{self, LISTING_TIMEOUT};
use super::recording::{ModelRecording, RecordingStreams, ReplayStreams};
use crate::config::ModelSection;

/// Largest script or recording.
const MAX_SCRIPT_BYTES: u64 = 256 << 20;

/// The models of providers that have no server to ask: for the answers, and for summaries.
const DEFAULT_MODELS: &[(&str, &str, &str)] = &[
    ("anthropic", "claude-sonnet-5-5", "claude-haiku-5-5"),
    ("openai", "gpt-6.1-sol", "gpt-6-luna"),
    ("gemini", "gemini-4-argon", "gemini-3.5-flash-lite"),
];

/// The model of a provider that answers unless another is named, if the provider has no server to ask.
pub(in crate::cli) fn default_model(provider: &str) -> Option<&'static str> {
    DEFAULT_MODELS.iter().find(|(name, _, _)| *name == provider).map(|(_, model, _)| *model)
}

/// The model that answers.
pub(super) struct ChosenModel {
    pub(super) model: Arc<dyn Model>,
    /// The model for summaries and simple prompts, if it is another one.
    pub(super) fast: Option<String>,
}

impl ChosenModel {
    /// Both models, to choose between them for a prompt.
    pub(super) fn models(&self) -> ModelSet {
        let complex = self.model.model().to_owned();
        let fast = self.fast.clone().unwrap_or_else(|| complex.clone());
        ModelSet { model: Arc::clone(&self.model), fast, complex }
    }
}

/// A provider, and why it was chosen if the user did not name it.
struct ProviderChoice {
    settings: ProviderSettings,
    model: Option<String>,
    why: Option<String>,
}

/// Chooses the model and makes it. A run that is continued keeps its own, unless flags name another.
pub(super) fn choose(
    flags: &ModelArgs,
    section: &ModelSection,
    max_turns: Option<u32>,
    earlier: Option<&RunState>,
    runtime: &Runtime,
) -> Result<ChosenModel, ToolError> {
    if let Some(path) = &flags.replay {
        return replayed(&ModelRecording::read(path, MAX_SCRIPT_BYTES)?);
    }
    let is_own = |run: &&RunState| {
        run.provider != SCRIPT && flags.provider.as_ref().is_none_or(|provider| *provider == run.provider)
    };
    let names_another = flags.script.is_some() || (flags.provider.is_none() && flags.base_url.is_some());
    let earlier = earlier.filter(is_own).filter(|_| !names_another);
    let named = flags.provider.as_deref().or_else(|| earlier.map(|run| run.provider.as_str()));
    let named = named.or(section.provider.as_deref());
    if named == Some(SCRIPT) || (named.is_none() && flags.script.is_some()) {
        let path = flags.script.as_deref().ok_or_else(|| {
            ToolError::invalid_arguments("--provider script needs the answers: --script FILE")
        })?;
        let script = haft_files::read_named(path, MAX_SCRIPT_BYTES)?;
        let script =
            ScriptModel::parse(&String::from_utf8_lossy(&script)).map_err(|error| as_tool_error(&error))?;
        return Ok(ChosenModel { model: Arc::new(script), fast: None });
    }
    if named == Some(CLAUDE_CLI) {
        return claude_cli(flags, section, max_turns, earlier, runtime);
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let choice = match named.or_else(|| implied(flags, section)) {
        Some(provider) => {
            ProviderChoice { settings: ProviderSettings::new(provider), model: None, why: None }
        }
        None => unnamed(runtime, &variable)?,
    };
    let ProviderChoice { mut settings, model: found, why } = choice;
    settings.api_key = flags.api_key.clone().or(settings.api_key);
    let provider = settings.provider.clone();
    // The settings of one provider say nothing about another.
    let own = section.provider.as_deref().is_none_or(|of| of == provider);
    let section = if own { section } else { &ModelSection::default() };
    // The format of one server says nothing about another.
    let address = earlier.and_then(|run| run.address.as_ref()).filter(|_| flags.base_url.is_none());
    settings.base_url = flags
        .base_url
        .clone()
        .or_else(|| address.map(|address| address.base_url.clone()))
        .or_else(|| section.base_url.clone())
        .or(settings.base_url);
    settings.wire = flags.wire.or(address.map(|address| address.wire)).or(section.wire).or(settings.wire);
    let endpoint = settings.resolve(&variable).map_err(|error| as_tool_error(&error))?;
    let http = runtime.http_service().streams_for(vec![endpoint.authority()]);
    let earlier_model = earlier.map(|run| earlier_model(run, flags, section));
    let default = DEFAULT_MODELS.iter().find(|(name, _, _)| *name == provider);
    let model = flags.model.clone().or(earlier_model).or_else(|| section.name.clone()).or(found);
    let model = match model.or_else(|| default.map(|(_, model, _)| (*model).to_owned())) {
        Some(model) => model,
        None => listed(&endpoint, http.as_ref())?,
    };
    if let Some(why) = why {
        screen::note(&styled(
            FAINT,
            &format!("{model} of {} answers, because {why}", endpoint.provider.title),
        ));
    }
    let is_default = default.is_some_and(|(_, name, _)| *name == model);
    let fast = default.filter(|_| is_default).map(|(_, _, fast)| (*fast).to_owned());
    let fast = flags.fast_model.clone().or_else(|| section.fast.clone()).or(fast);
    let http: Arc<dyn HttpStreams> = match &flags.record {
        Some(path) => Arc::new(RecordingStreams::create(path, http, &endpoint, &model)?),
        None => http,
    };
    Ok(ChosenModel { model: Arc::new(HttpModel::new(endpoint, model, http)), fast })
}

/// The `claude` program as the model.
fn claude_cli(
    flags: &ModelArgs,
    section: &ModelSection,
    max_turns: Option<u32>,
    earlier: Option<&RunState>,
    runtime: &Runtime,
) -> Result<ChosenModel, ToolError> {
    let section =
        if section.provider.as_deref() == Some(CLAUDE_CLI) { section } else { &ModelSection::default() };
    let model = flags.model.clone().or_else(|| earlier.map(|run| earlier_model(run, flags, section)));
    let model = model.or_else(|| section.name.clone()).unwrap_or_else(|| CLAUDE_COMPLEX_MODEL.to_owned());
    let models = claude_program::models(runtime, &model, max_turns)?;
    let tools = "`claude` answers with Haft's tools in place of its own";
    screen::note(&styled(FAINT, &format!("{model} of {tools}")));
    let fast = flags.fast_model.clone().or_else(|| section.fast.clone()).unwrap_or(models.fast);
    Ok(ChosenModel { model: models.model, fast: Some(fast) })
}

/// The model of a run that is continued. Where prompts are routed, the last one may have been for the fast model.
fn earlier_model(run: &RunState, flags: &ModelArgs, section: &ModelSection) -> String {
    let routes = flags.route || section.route.unwrap_or(false);
    if routes && run.start.provider == run.provider { run.start.model.clone() } else { run.model.clone() }
}

/// The provider that a URL stands for.
fn implied(flags: &ModelArgs, section: &ModelSection) -> Option<&'static str> {
    (flags.base_url.is_some() || section.base_url.is_some()).then_some("compatible")
}

/// The provider where nothing names one: by its key or its URL in the environment, else on this machine.
fn unnamed(
    runtime: &Runtime,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ProviderChoice, ToolError> {
    for provider in PROVIDERS.iter().filter(|provider| provider.name != "ollama") {
        let variables = if provider.needs_key { provider.key_variables } else { provider.url_variables };
        if let Some(name) = variables.iter().find(|name| variable(name).is_some()) {
            let settings = ProviderSettings::new(provider.name);
            return Ok(ProviderChoice { settings, model: None, why: Some(format!("{name} is set")) });
        }
    }
    let (found, warnings) = local_servers::find(runtime, variable);
    screen::warnings(&warnings);
    let found = found.ok_or_else(|| {
        ToolError::invalid_arguments(
            "No model is configured, and no local server answers. There are three ways to continue:\n  \
             set a key: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY\n  \
             start a local server, for example: ollama serve\n  \
             name a server: --base-url URL --model MODEL, or [model] in haft.toml",
        )
    })?;
    let why = format!("{} runs at {}", found.title, found.url);
    Ok(ProviderChoice { settings: found.settings, model: Some(found.model), why: Some(why) })
}

/// The first model that the server lists.
fn listed(endpoint: &Endpoint, http: &dyn HttpStreams) -> Result<String, ToolError> {
    let title = endpoint.provider.title;
    let ask = |why: &str| ToolError::invalid_arguments(format!("{why} Name a model with --model."));
    if endpoint.provider.name == "openrouter" {
        return Err(ask("OpenRouter has many models."));
    }
    let models = local_servers::models(endpoint, http, LISTING_TIMEOUT, &Cancel::new()).map_err(|error| {
        ask(&format!("{title} at {} did not list its models: {}.", endpoint.display_url(), error.message))
    })?;
    models.into_iter().next().ok_or_else(|| ask(&format!("{title} lists no models.")))
}

/// The model of a recording.
fn replayed(recording: &ModelRecording) -> Result<ChosenModel, ToolError> {
    let settings = ProviderSettings {
        base_url: Some(recording.head.base_url.clone()),
        wire: Some(recording.head.wire),
        api_key: Some(Secret::new("replayed")),
        ..ProviderSettings::new(&recording.head.provider)
    };
    let endpoint = settings.resolve(&|_| None).map_err(|error| as_tool_error(&error))?;
    let http = Arc::new(ReplayStreams::new(recording.exchanges.clone()));
    Ok(ChosenModel { model: Arc::new(HttpModel::new(endpoint, &recording.head.model, http)), fast: None })
}

/// The error of a command whose model cannot be used.
fn as_tool_error(error: &ModelError) -> ToolError {
    let kind = match error.kind {
        ModelErrorKind::Settings | ModelErrorKind::Auth | ModelErrorKind::Script => {
            ErrorKind::InvalidArguments
        }
        ModelErrorKind::UnknownModel => ErrorKind::NotFound,
        _ => ErrorKind::ExecutionFailed,
    };
    ToolError::new(kind, error.to_string())
}
