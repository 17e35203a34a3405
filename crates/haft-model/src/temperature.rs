//! Temperatures that models refuse: many accept only their own.

use std::collections::BTreeSet;
use std::sync::Mutex;

use haft_tool::lock;

use crate::{ModelError, ModelEvent};

/// How many refusals are remembered. A forgotten one costs a request.
const MAX_REMEMBERED_COUNT: usize = 256;

/// The temperatures that were refused, by model.
#[derive(Default)]
pub(crate) struct RefusedTemperatures(Mutex<BTreeSet<(String, u64)>>);

impl RefusedTemperatures {
    pub(crate) fn contains(&self, model: &str, temperature: f64) -> bool {
        lock(&self.0).contains(&(model.to_owned(), temperature.to_bits()))
    }

    pub(crate) fn add(&self, model: &str, temperature: f64) {
        let mut refused = lock(&self.0);
        if refused.len() >= MAX_REMEMBERED_COUNT {
            refused.clear();
        }
        refused.insert((model.to_owned(), temperature.to_bits()));
    }
}

/// Whether an error says that the model does not accept the temperature. Providers have no common code for it.
pub(crate) fn is_refused(error: &ModelError) -> bool {
    matches!(error.status, Some(400 | 422)) && error.message.to_ascii_lowercase().contains("temperature")
}

/// What the user is told.
pub(crate) fn notice(title: &str, model: &str, temperature: f64) -> ModelEvent {
    ModelEvent::Notice {
        text: format!("{model} of {title} does not accept the temperature {temperature}; it was left out."),
    }
}
