//! What the user can do about a failure.

use std::time::Duration;

use crate::{Endpoint, ModelError, ModelErrorKind};

/// What the user can do: the variable, the URL or the flag to change.
pub(crate) fn advice(error: &ModelError, endpoint: &Endpoint, longest: Duration) -> String {
    let provider = endpoint.provider;
    let url = endpoint.display_url();
    let url_settings = format!("--base-url or {}", provider.url_variables.join(" or "));
    match error.kind {
        ModelErrorKind::Auth if error.status == Some(402) || error.status == Some(429) => {
            format!("Check the credit and the quota of the {} account.", provider.title)
        }
        ModelErrorKind::Auth if endpoint.key.is_none() => {
            format!("Set {}.", provider.key_variables.join(" or "))
        }
        ModelErrorKind::Auth => {
            format!("Check the key in {}; it was sent to {url}.", provider.key_variables.join(" or "))
        }
        ModelErrorKind::RateLimit | ModelErrorKind::Overloaded => match error.retry_after {
            Some(wait) if wait > longest => format!(
                "The provider asks to wait {} s, which is too long to wait here. Try again then, or choose another model with --model.",
                wait.as_secs_f64().ceil()
            ),
            _ => "Try again later, or choose another model with --model.".to_owned(),
        },
        ModelErrorKind::ContextTooLong => {
            "Start a new conversation, or shorten this one with /compact.".to_owned()
        }
        ModelErrorKind::Refused => "Change the request, or choose another model with --model.".to_owned(),
        ModelErrorKind::UnknownModel if provider.name == "ollama" => {
            "Run `ollama pull` with the model's name, or choose another model with --model.".to_owned()
        }
        ModelErrorKind::UnknownModel => "Choose another model with --model.".to_owned(),
        ModelErrorKind::BadRequest if matches!(error.status, Some(301..=308 | 404 | 405)) => {
            format!(
                "Check the base URL {url} ({url_settings}) and the wire format {} (--wire).",
                endpoint.wire
            )
        }
        ModelErrorKind::Network if provider.name == "ollama" => {
            format!("Start the server with `ollama serve`, or set {url_settings}.")
        }
        ModelErrorKind::Network => {
            format!("Check the connection and the base URL {url} ({url_settings}).")
        }
        ModelErrorKind::Timeout => {
            format!("Try again later, or check whether {url} ({url_settings}) answers other requests.")
        }
        ModelErrorKind::Protocol => {
            format!("Check that {url} speaks the wire format {} (--wire).", endpoint.wire)
        }
        ModelErrorKind::Settings => format!("Check the base URL {url} ({url_settings})."),
        ModelErrorKind::BadRequest | ModelErrorKind::Cancelled | ModelErrorKind::Script => String::new(),
    }
}
