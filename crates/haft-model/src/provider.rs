//! The table of providers.

use haft_tool::Value;

use crate::{ModelError, ModelErrorKind, Wire};

/// A provider that Haft knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderInfo {
    /// The name in settings.
    pub name: &'static str,
    /// The name in messages.
    pub title: &'static str,
    /// Where it is, unless the user says otherwise.
    pub base_url: Option<&'static str>,
    /// Variables with the key; the first that is set counts.
    pub key_variables: &'static [&'static str],
    /// Variables with the base URL; the first that is set counts.
    pub url_variables: &'static [&'static str],
    /// The formats it speaks, the default first.
    pub wires: &'static [Wire],
    /// Whether its own host wants a key.
    pub needs_key: bool,
}

/// All providers that are reached over HTTP.
pub const PROVIDERS: &[ProviderInfo] = &[
    ProviderInfo {
        name: "openai",
        title: "OpenAI",
        base_url: Some("https://api.openai.com/v1"),
        key_variables: &["OPENAI_API_KEY"],
        url_variables: &["OPENAI_BASE_URL"],
        wires: &[Wire::OpenaiResponses, Wire::OpenaiChat],
        needs_key: true,
    },
    ProviderInfo {
        name: "anthropic",
        title: "Anthropic",
        base_url: Some("https://api.anthropic.com"),
        key_variables: &["ANTHROPIC_API_KEY", ANTHROPIC_TOKEN_VARIABLE],
        url_variables: &["ANTHROPIC_BASE_URL"],
        wires: &[Wire::Anthropic],
        needs_key: true,
    },
    ProviderInfo {
        name: "gemini",
        title: "Gemini",
        base_url: Some("https://generativelanguage.googleapis.com"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        url_variables: &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
        wires: &[Wire::Gemini],
        needs_key: true,
    },
    ProviderInfo {
        name: "ollama",
        title: "Ollama",
        base_url: Some("http://127.0.0.1:11434"),
        key_variables: &["OLLAMA_API_KEY"],
        url_variables: &["OLLAMA_HOST"],
        wires: &[Wire::Ollama, Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Anthropic],
        needs_key: false,
    },
    ProviderInfo {
        name: "openrouter",
        title: "OpenRouter",
        base_url: Some("https://openrouter.ai/api/v1"),
        key_variables: &["OPENROUTER_API_KEY"],
        url_variables: &["OPENROUTER_BASE_URL"],
        wires: &[Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Anthropic],
        needs_key: true,
    },
    ProviderInfo {
        name: "litellm",
        title: "LiteLLM",
        base_url: Some("http://127.0.0.1:4000"),
        key_variables: &["LITELLM_API_KEY", "LITELLM_MASTER_KEY"],
        url_variables: &["LITELLM_BASE_URL", "LITELLM_PROXY_URL"],
        wires: &[Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Anthropic],
        needs_key: false,
    },
    ProviderInfo {
        name: "compatible",
        title: "The compatible server",
        base_url: None,
        key_variables: &["HAFT_API_KEY"],
        url_variables: &["HAFT_BASE_URL"],
        wires: &[Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Anthropic, Wire::Gemini, Wire::Ollama],
        needs_key: false,
    },
];

/// The variable with a token that is sent as a bearer token even to the vendor's host.
pub(crate) const ANTHROPIC_TOKEN_VARIABLE: &str = "ANTHROPIC_AUTH_TOKEN";

/// The provider with this name.
pub fn provider(name: &str) -> Result<&'static ProviderInfo, ModelError> {
    PROVIDERS.iter().find(|provider| provider.name == name).ok_or_else(|| {
        let known: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
        ModelError::new(ModelErrorKind::Settings, name, format!("There is no provider {name:?}"))
            .with_advice(format!("Use one of: {}.", known.join(", ")))
    })
}

/// Where an Ollama server is, from the forms that `OLLAMA_HOST` has: a host, a host with a port, or a URL.
pub(crate) fn ollama_url(host: &str) -> String {
    const DEFAULT_PORT: &str = "11434";
    let host = host.trim().trim_end_matches('/');
    if host.contains("://") {
        return host.to_owned();
    }
    let (authority, path) = host
        .split_once('/')
        .map_or((host, String::new()), |(authority, path)| (authority, format!("/{path}")));
    let (name, port) = match authority.rsplit_once(':') {
        // An IPv6 address without a port has colons too.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => {
            (name, if port.is_empty() { DEFAULT_PORT } else { port })
        }
        _ => (authority, DEFAULT_PORT),
    };
    // The variable also says where a server listens; that is no address to connect to.
    let name = match name {
        "" | "0.0.0.0" => "127.0.0.1",
        "::" | "[::]" => "[::1]",
        name => name,
    };
    let name =
        if name.contains(':') && !name.starts_with('[') { format!("[{name}]") } else { name.to_owned() };
    format!("http://{name}:{port}{path}")
}

/// The names of the models in the answer to a request for the list of models, in any provider's form.
pub fn model_names(list: &Value) -> Vec<String> {
    let models = ["data", "models"].iter().find_map(|field| list.get(*field).and_then(Value::as_array));
    let name = |model: &Value| {
        let name = ["id", "name", "model"].iter().find_map(|field| model.get(*field).and_then(Value::as_str));
        name.map(|name| name.strip_prefix("models/").unwrap_or(name).to_owned())
    };
    models.into_iter().flatten().filter_map(name).collect()
}
