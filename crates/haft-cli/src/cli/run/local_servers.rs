//! Model servers on this machine.

use std::time::Duration;

use haft_model::{Endpoint, ProviderSettings, model_names};
use haft_runtime::Runtime;
use haft_tool::{Cancel, HttpStreams, StreamRequest, ToolError, Value};

/// How long a server may take to say that it is there.
const PROBE_TIMEOUT: Duration = Duration::from_millis(150);
/// How long a server that the user named may take to list its models.
pub(super) const LISTING_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest list of models.
const MAX_LIST_BYTES: usize = 8 << 20;

/// Names, providers and URLs, in the order in which they are preferred. Ollama's URL comes from its own variable.
const LOCAL_SERVERS: &[(&str, &str, Option<&str>)] = &[
    ("Ollama", "ollama", None),
    ("LM Studio", "compatible", Some("http://127.0.0.1:1234/v1")),
    ("llama.cpp", "compatible", Some("http://127.0.0.1:8080/v1")),
    ("vLLM", "compatible", Some("http://127.0.0.1:8000/v1")),
];

/// A server that answered.
pub(super) struct LocalServer {
    pub(super) title: &'static str,
    pub(super) url: String,
    pub(super) settings: ProviderSettings,
    pub(super) model: String,
}

/// The first local server that has a model, and warnings about those that have none. All are asked at once.
pub(super) fn find(
    runtime: &Runtime,
    variable: &dyn Fn(&str) -> Option<String>,
) -> (Option<LocalServer>, Vec<String>) {
    let mut probes = Vec::new();
    for (title, provider, url) in LOCAL_SERVERS {
        let settings =
            ProviderSettings { base_url: url.map(str::to_owned), ..ProviderSettings::new(*provider) };
        let Ok(endpoint) = settings.resolve(variable) else { continue };
        let http = runtime.http_service().streams_for(vec![endpoint.authority()]);
        let url = endpoint.display_url();
        let answer =
            std::thread::spawn(move || models(&endpoint, http.as_ref(), PROBE_TIMEOUT, &Cancel::new()));
        probes.push((*title, url, settings, answer));
    }
    let (mut found, mut warnings) = (None, Vec::new());
    for (title, url, settings, answer) in probes {
        let Ok(Ok(models)) = answer.join() else { continue };
        match models.into_iter().next() {
            Some(model) if found.is_none() => found = Some(LocalServer { title, url, settings, model }),
            Some(_) => {}
            None => warnings.push(format!("{title} runs at {url} and has no models")),
        }
    }
    (found, warnings)
}

/// The models that a server lists.
pub(super) fn models(
    endpoint: &Endpoint,
    http: &dyn HttpStreams,
    limit: Duration,
    cancel: &Cancel,
) -> Result<Vec<String>, ToolError> {
    let request = StreamRequest {
        method: "GET",
        url: endpoint.models_url(),
        headers: endpoint.headers(false),
        body: None,
    };
    let mut response = http.open(request, limit, cancel)?;
    let mut body = Vec::new();
    while body.len() < MAX_LIST_BYTES
        && let Some(bytes) = response.body.next(limit, cancel)?
    {
        body.extend_from_slice(&bytes);
    }
    if response.status != 200 {
        return Err(ToolError::failed(format!("HTTP {}", response.status)));
    }
    let list: Value = serde_json::from_slice(&body)?;
    if list.get("data").or_else(|| list.get("models")).is_none_or(|models| !models.is_array()) {
        return Err(ToolError::failed("its answer is not a list of models"));
    }
    Ok(model_names(&list))
}
