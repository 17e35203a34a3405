//! Where and how one provider is reached.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_tool::Secret;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::provider::{ANTHROPIC_TOKEN_VARIABLE, ollama_url, provider};
use crate::schema::strict_schema;
use crate::wire::{ANTHROPIC_VERSION, ChatVariant, Codec, OLD_ANTHROPIC_VERSION, WireOptions};
use crate::{ModelError, ModelErrorKind, OutputSchema, ProviderInfo, Wire};

/// What the user can set about a provider. The environment fills in what is missing.
#[derive(Clone, Default)]
pub struct ProviderSettings {
    /// The provider's name.
    pub provider: String,
    /// The base URL.
    pub base_url: Option<String>,
    /// The key.
    pub api_key: Option<Secret>,
    /// The wire format.
    pub wire: Option<Wire>,
    /// The value of `anthropic-version`.
    pub anthropic_version: Option<String>,
    /// See [`WireOptions::gemini_openapi`].
    pub gemini_openapi: bool,
    /// See [`WireOptions::strict_tools`].
    pub strict_tools: bool,
    /// Further headers of each request.
    pub headers: Vec<(String, Secret)>,
}

/// Where a model was reached, without keys and credentials: enough to reach it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAddress {
    /// The base URL.
    pub base_url: String,
    /// The wire format.
    pub wire: Wire,
}

/// Where and how one provider is reached.
#[derive(Clone)]
pub struct Endpoint {
    /// The provider.
    pub provider: &'static ProviderInfo,
    /// The provider's name, with its host unless that is the vendor's own: who understands the opaque parts of an answer.
    pub identity: String,
    /// The wire format.
    pub wire: Wire,
    /// What differs between servers of that format.
    pub options: WireOptions,
    /// Whether the version of Anthropic's protocol is Haft's choice, so that an older one may be tried.
    pub(crate) may_change_version: bool,
    pub(crate) key: Option<Secret>,
    base_url: Url,
    is_vendor: bool,
    has_bearer_token: bool,
    headers: Vec<(String, Secret)>,
}

impl ProviderSettings {
    /// Settings for a provider, with everything else from the environment.
    pub fn new(provider: impl Into<String>) -> Self {
        Self { provider: provider.into(), ..Self::default() }
    }

    /// Completes the settings. `variable` looks up a variable of the environment.
    pub fn resolve(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<Endpoint, ModelError> {
        let provider = provider(&self.provider)?;
        let set = |name: &&str| variable(name).filter(|value| !value.trim().is_empty());
        let fail = |kind, message: String| ModelError::new(kind, provider.name, message);
        let given = self.base_url.clone().or_else(|| provider.url_variables.iter().find_map(set));
        let given = given.map(|url| if provider.name == "ollama" { ollama_url(&url) } else { url });
        let Some(text) = given.as_deref().or(provider.base_url) else {
            return Err(fail(ModelErrorKind::Settings, format!("{} has no URL", provider.title))
                .with_advice(format!("Set --base-url or {}.", provider.url_variables.join(" or "))));
        };
        let mut base_url = parse_url(text).map_err(|why| {
            fail(ModelErrorKind::Settings, format!("The base URL of {} is not usable: {why}", provider.title))
                .with_advice("Use a URL such as http://127.0.0.1:8080/v1.")
        })?;
        let credentials = take_credentials(&mut base_url);
        let vendor_host = provider.base_url.and_then(|url| Url::parse(url).ok());
        let is_vendor = vendor_host.is_some_and(|vendor| vendor.origin() == base_url.origin());
        let wire = self.wire.unwrap_or_else(|| default_wire(provider, is_vendor));
        if !provider.wires.contains(&wire) {
            let known: Vec<&str> = provider.wires.iter().map(|wire| wire.name()).collect();
            return Err(fail(
                ModelErrorKind::Settings,
                format!("{} does not speak the wire format {wire}", provider.title),
            )
            .with_advice(format!("Use --wire with one of: {}.", known.join(", "))));
        }
        let found = provider.key_variables.iter().find_map(|name| Some((*name, set(name)?)));
        let has_bearer_token = self.api_key.is_none()
            && found.as_ref().is_some_and(|(name, _)| *name == ANTHROPIC_TOKEN_VARIABLE);
        let key = self.api_key.clone().or_else(|| found.map(|(_, value)| Secret::new(value.trim())));
        if key.is_none() && provider.needs_key && is_vendor {
            return Err(fail(ModelErrorKind::Auth, format!("There is no key for {}", provider.title))
                .with_advice(format!("Set {}.", provider.key_variables.join(" or "))));
        }
        let host = base_url.host_str().unwrap_or_default();
        let host = base_url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let default_version = if is_vendor { ANTHROPIC_VERSION } else { OLD_ANTHROPIC_VERSION };
        Ok(Endpoint {
            provider,
            identity: if is_vendor { provider.name.to_owned() } else { format!("{}@{host}", provider.name) },
            wire,
            options: WireOptions {
                chat: match provider.name {
                    "openai" if is_vendor => ChatVariant::Openai,
                    "openrouter" => ChatVariant::Openrouter,
                    "litellm" => ChatVariant::Litellm,
                    _ => ChatVariant::Compatible,
                },
                anthropic_version: self
                    .anthropic_version
                    .clone()
                    .unwrap_or_else(|| default_version.to_owned()),
                gemini_openapi: self.gemini_openapi,
                strict_tools: self.strict_tools,
            },
            may_change_version: self.anthropic_version.is_none(),
            key,
            base_url,
            is_vendor,
            has_bearer_token,
            headers: credentials.into_iter().chain(self.headers.iter().cloned()).collect(),
        })
    }
}

/// OpenAI's own host gets Responses; what else calls itself OpenAI mostly knows Chat Completions only.
fn default_wire(provider: &ProviderInfo, is_vendor: bool) -> Wire {
    match provider.name {
        "openai" if !is_vendor => Wire::OpenaiChat,
        _ => provider.wires.first().copied().unwrap_or(Wire::OpenaiChat),
    }
}

fn parse_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.trim()).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        other => Err(format!("its scheme is {other}, not http or https")),
    }
}

/// Moves the user and the password of a URL into a header: URLs are shown and stored.
fn take_credentials(url: &mut Url) -> Option<(String, Secret)> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let pair = [decoded(url.username()), decoded(url.password().unwrap_or_default())].join(&b':');
    // Both fail only for URLs without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(("authorization".to_owned(), Secret::new(format!("Basic {}", STANDARD.encode(pair)))))
}

/// Does not show keys.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("identity", &self.identity)
            .field("wire", &self.wire)
            .field("url", &self.display_url())
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// The codec for this endpoint.
    pub fn codec(&self) -> Codec {
        Codec { wire: self.wire, provider: self.identity.clone(), options: self.options.clone() }
    }

    /// The base URL, for messages.
    pub fn display_url(&self) -> String {
        let mut url = self.base_url.clone();
        url.set_query(None);
        url.to_string().trim_end_matches('/').to_owned()
    }

    /// Whether the server holds an answer to this schema while tools are offered. Compatible servers let no call through then, or ignore
    /// the schema; Anthropic refuses what its own subset does not have.
    pub(crate) fn holds_schema(&self, schema: &OutputSchema) -> bool {
        match self.wire {
            Wire::OpenaiResponses => true,
            Wire::OpenaiChat => self.options.chat == ChatVariant::Openai,
            Wire::Anthropic => self.is_vendor && strict_schema(&schema.schema).is_some(),
            Wire::Gemini | Wire::Ollama => false,
        }
    }

    /// Where it is, to be stored.
    pub fn address(&self) -> ModelAddress {
        ModelAddress { base_url: self.display_url(), wire: self.wire }
    }

    /// The host, with its port if that is not the scheme's own: what must be reachable.
    pub fn authority(&self) -> String {
        let host = self.base_url.host_str().unwrap_or_default();
        self.base_url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// The URL of a request.
    pub fn url(&self, model: &str, stream: bool) -> String {
        match self.wire {
            Wire::OpenaiResponses => self.join(self.openai_version(), "responses"),
            Wire::OpenaiChat => self.join(self.openai_version(), "chat/completions"),
            Wire::Anthropic => self.join("v1", "messages"),
            Wire::Gemini => {
                let model = model.strip_prefix("models/").unwrap_or(model);
                let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
                self.join("v1beta", &format!("models/{model}:{method}"))
            }
            Wire::Ollama => self.join("", "api/chat"),
        }
    }

    /// The URL of the list of models.
    pub fn models_url(&self) -> String {
        match self.wire {
            Wire::OpenaiResponses | Wire::OpenaiChat => self.join(self.openai_version(), "models"),
            Wire::Anthropic => self.join("v1", "models"),
            Wire::Gemini => self.join("v1beta", "models"),
            Wire::Ollama => self.join("", "api/tags"),
        }
    }

    /// Base URLs of OpenAI's format contain the version, except that of Ollama, which serves other formats too.
    fn openai_version(&self) -> &'static str {
        if self.provider.name == "ollama" { "v1" } else { "" }
    }

    /// The base URL with a path below it. The version is left out if the base URL has one.
    fn join(&self, version: &str, path: &str) -> String {
        let mut base = self.base_url.clone();
        base.set_query(None);
        base.set_fragment(None);
        let base = base.as_str().trim_end_matches('/');
        let mut parts = base.rsplit('/');
        let last = parts.next().unwrap_or_default();
        // Vertex AI has its version before the publisher of the models.
        let has_version = last.starts_with('v') && last.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
            || parts.next() == Some("publishers");
        if version.is_empty() || has_version {
            format!("{base}/{path}")
        } else {
            format!("{base}/{version}/{path}")
        }
    }

    /// The headers of a request.
    pub fn headers(&self, stream: bool) -> Vec<(String, String)> {
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("user-agent".to_owned(), format!("haft/{}", env!("CARGO_PKG_VERSION"))),
        ];
        let accept = match self.wire {
            Wire::Ollama if stream => "application/x-ndjson",
            _ if stream => "text/event-stream",
            _ => "application/json",
        };
        headers.push(("accept".to_owned(), accept.to_owned()));
        if self.wire == Wire::Anthropic {
            headers.push(("anthropic-version".to_owned(), self.options.anthropic_version.clone()));
        }
        // A header of the user's own replaces the one that is made of the key.
        let has_authorization =
            self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if let Some(key) = self.key.as_ref().filter(|_| !has_authorization) {
            // If both came, Anthropic would take x-api-key; some other servers of its format know only the other.
            let header = match self.wire {
                Wire::Anthropic if self.is_vendor && !self.has_bearer_token => {
                    ("x-api-key".to_owned(), key.expose().to_owned())
                }
                Wire::Gemini => ("x-goog-api-key".to_owned(), key.expose().to_owned()),
                _ => ("authorization".to_owned(), format!("Bearer {}", key.expose())),
            };
            headers.push(header);
        }
        headers.extend(self.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())));
        headers
    }
}
