//! The table of providers and what the environment adds.

use std::sync::Arc;

use haft_model::{Endpoint, ModelErrorKind, ProviderSettings, Wire, build_provider, model_names};
use haft_tool::{Secret, json};

use crate::fixture::ScriptedStreams;

fn resolve(settings: &ProviderSettings, variables: &[(&str, &str)]) -> Endpoint {
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    settings.resolve(&variable).unwrap()
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

#[test]
fn openai_itself_gets_responses_and_others_chat() {
    let key = ("OPENAI_API_KEY", "k");
    let own = resolve(&ProviderSettings::new("openai"), &[key]);
    assert_eq!((own.wire, own.identity.as_str()), (Wire::OpenaiResponses, "openai"));
    let other =
        resolve(&ProviderSettings::new("openai"), &[key, ("OPENAI_BASE_URL", "http://localhost:8080/v1/")]);
    assert_eq!((other.wire, other.identity.as_str()), (Wire::OpenaiChat, "openai@localhost:8080"));
    assert_eq!(other.url("m", true), "http://localhost:8080/v1/chat/completions");
    assert_eq!(header(&other.headers(true), "authorization"), Some("Bearer k"));
    let chosen = ProviderSettings { wire: Some(Wire::OpenaiChat), ..ProviderSettings::new("openai") };
    assert_eq!(resolve(&chosen, &[key]).url("m", true), "https://api.openai.com/v1/chat/completions");
}

#[test]
fn anthropic_headers_depend_on_the_host() {
    let settings = ProviderSettings::new("anthropic");
    let own = resolve(&settings, &[("ANTHROPIC_API_KEY", "k")]);
    assert_eq!(own.url("m", true), "https://api.anthropic.com/v1/messages");
    let headers = own.headers(true);
    assert_eq!((header(&headers, "x-api-key"), header(&headers, "authorization")), (Some("k"), None));
    assert_eq!(header(&headers, "anthropic-version"), Some("2026-10-21"));
    let token = resolve(&settings, &[("ANTHROPIC_AUTH_TOKEN", "t")]);
    assert_eq!(header(&token.headers(true), "authorization"), Some("Bearer t"));
    let other =
        resolve(&settings, &[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://localhost:1")]);
    let headers = other.headers(true);
    assert_eq!((header(&headers, "x-api-key"), header(&headers, "authorization")), (None, Some("Bearer k")));
    assert_eq!(header(&headers, "anthropic-version"), Some("2023-06-01"));
}

#[test]
fn gemini_names_the_model_in_the_url() {
    let endpoint = resolve(&ProviderSettings::new("gemini"), &[("GOOGLE_API_KEY", "k")]);
    assert_eq!(
        endpoint.url("models/gemini-x", true),
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-x:streamGenerateContent?alt=sse"
    );
    assert!(endpoint.url("gemini-x", false).ends_with("/v1beta/models/gemini-x:generateContent"));
    let vertex = "https://aiplatform.googleapis.com/v1/publishers/google";
    let endpoint =
        resolve(&ProviderSettings::new("gemini"), &[("GOOGLE_API_KEY", "k"), ("GEMINI_BASE_URL", vertex)]);
    assert_eq!(endpoint.url("gemini-x", false), format!("{vertex}/models/gemini-x:generateContent"));
    assert_eq!(header(&endpoint.headers(false), "x-goog-api-key"), Some("k"));
}

#[test]
fn ollama_host_has_many_forms() {
    for (host, url) in [
        ("example.org", "http://example.org:11434"),
        ("example.org:99", "http://example.org:99"),
        (":99", "http://127.0.0.1:99"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:99", "http://127.0.0.1:99"),
        ("[::1]:99", "http://[::1]:99"),
        ("::1", "http://[::1]:11434"),
        ("https://ollama.com", "https://ollama.com"),
        ("http://example.org:99/sub/", "http://example.org:99/sub"),
        ("example.org/sub", "http://example.org:11434/sub"),
    ] {
        let endpoint = resolve(&ProviderSettings::new("ollama"), &[("OLLAMA_HOST", host)]);
        assert_eq!(endpoint.url("m", true), format!("{url}/api/chat"), "{host}");
    }
    for (wire, url) in [
        (Wire::OpenaiChat, "http://127.0.0.1:11434/v1/chat/completions"),
        (Wire::OpenaiResponses, "http://127.0.0.1:11434/v1/responses"),
        (Wire::Anthropic, "http://127.0.0.1:11434/v1/messages"),
    ] {
        let settings = ProviderSettings { wire: Some(wire), ..ProviderSettings::new("ollama") };
        assert_eq!(resolve(&settings, &[]).url("m", true), url);
    }
    assert_eq!(resolve(&ProviderSettings::new("ollama"), &[]).authority(), "127.0.0.1:11434");
}

#[test]
fn settings_that_cannot_work_say_what_to_set() {
    for (settings, kind, words) in [
        (ProviderSettings::new("openai"), ModelErrorKind::Auth, "OPENAI_API_KEY"),
        (ProviderSettings::new("nothing"), ModelErrorKind::Settings, "openrouter"),
        (ProviderSettings::new("compatible"), ModelErrorKind::Settings, "--base-url"),
        (
            ProviderSettings { wire: Some(Wire::Gemini), ..ProviderSettings::new("ollama") },
            ModelErrorKind::Settings,
            "--wire",
        ),
        (
            ProviderSettings { base_url: Some("file:///etc".to_owned()), ..ProviderSettings::new("litellm") },
            ModelErrorKind::Settings,
            "http or https",
        ),
    ] {
        let error = settings.resolve(&|_| None).unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn key_and_credentials_are_not_shown() {
    let settings = ProviderSettings {
        base_url: Some("http://user:pa%3Ass%20@localhost:1/v1?key=hidden".to_owned()),
        api_key: Some(Secret::new("sk-secret")),
        headers: vec![("x-team".to_owned(), Secret::new("sk-secret"))],
        ..ProviderSettings::new("compatible")
    };
    let endpoint = resolve(&settings, &[]);
    assert_eq!(header(&endpoint.headers(true), "x-team"), Some("sk-secret"));
    assert_eq!(endpoint.display_url(), "http://localhost:1/v1");
    assert_eq!(endpoint.url("m", true), "http://localhost:1/v1/chat/completions");
    let sent = endpoint.headers(true);
    let authorization: Vec<&str> =
        sent.iter().filter(|(name, _)| name == "authorization").map(|(_, value)| value.as_str()).collect();
    assert_eq!(authorization, ["Basic dXNlcjpwYTpzcyA="], "user:pa:ss and a space");
    let shown = format!("{endpoint:?}");
    assert!(!shown.contains("sk-secret") && !shown.contains("pa%3A") && !shown.contains("hidden"), "{shown}");
}

#[test]
fn one_model_does_both_unless_a_fast_one_is_named() {
    let http: Arc<ScriptedStreams> = Arc::default();
    let settings = ProviderSettings::new("ollama");
    let set = build_provider(&settings, "big", None, &|_| None, Arc::clone(&http) as _).unwrap();
    assert_eq!((set.fast.as_str(), set.complex.as_str(), set.model.provider()), ("big", "big", "ollama"));
    let set = build_provider(&settings, "big", Some("small"), &|_| None, http).unwrap();
    assert_eq!((set.fast.as_str(), set.model.model()), ("small", "big"));
}

#[test]
fn list_of_models_is_read_in_every_form() {
    for list in [
        json!({"object": "list", "data": [{"id": "a"}, {"id": "b"}]}),
        json!({"models": [{"name": "models/a"}, {"name": "models/b"}]}),
        json!({"models": [{"name": "a", "model": "a"}, {"name": "b"}]}),
    ] {
        assert_eq!(model_names(&list), ["a", "b"]);
    }
}
