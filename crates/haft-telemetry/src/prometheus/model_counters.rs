//! Answers, tokens and cost by model.

use std::collections::BTreeMap;

use haft_agent::{RunEvent, RunStop};
use haft_ledger::Ledger;
use haft_model::TokenUsage;

use super::text::{MetricsText, number};
use crate::names;
use crate::old_session::read_events;

/// How many models are counted separately.
const MAX_MODELS: usize = 100;
const MAX_NAME_CHARS: usize = 100;
const OTHER: &str = "other";

#[derive(Default)]
struct ModelSums {
    answers: u64,
    retries: u64,
    usage: TokenUsage,
    cost_usd: f64,
    /// How many answers had no known price.
    unpriced: u64,
}

/// By provider and model.
#[derive(Default)]
pub(super) struct ModelCounters {
    sums: BTreeMap<(String, String), ModelSums>,
    failures: u64,
}

impl ModelCounters {
    /// Counts an event if it is an answer or a failure to get one.
    pub(super) fn add(&mut self, ledger: &Ledger, session: &str, seq: u64) {
        // Other events have no answers, and a removed session has no events.
        let Ok(mut events) = read_events(ledger, session, seq, 1) else { return };
        match events.pop().filter(|logged| logged.seq == seq).map(|logged| logged.event) {
            Some(RunEvent::Answer { response, cost_usd, arrival }) => {
                let origin = &response.message.origin;
                let model = if origin.model.is_empty() { &response.model } else { &origin.model };
                let sums = self.sums(&origin.provider, model);
                sums.answers += 1;
                sums.retries += u64::from(arrival.retries);
                sums.usage.add(&response.usage);
                sums.cost_usd += cost_usd.unwrap_or(0.0);
                sums.unpriced += u64::from(cost_usd.is_none());
            }
            Some(RunEvent::TurnEnded { stop: RunStop::Failed { .. } }) => self.failures += 1,
            _ => {}
        }
    }

    fn sums(&mut self, provider: &str, model: &str) -> &mut ModelSums {
        let short = |text: &str| text.chars().take(MAX_NAME_CHARS).collect::<String>();
        let mut key = (short(names::provider(provider)), short(model));
        if !self.sums.contains_key(&key) && self.sums.len() >= MAX_MODELS {
            key = (OTHER.to_owned(), OTHER.to_owned());
        }
        self.sums.entry(key).or_default()
    }

    pub(super) fn write(&self, text: &mut MetricsText) {
        let mut each = |name: &str, help: &str, value: &dyn Fn(&ModelSums) -> f64| {
            text.head(name, help, "counter");
            for ((provider, model), sums) in &self.sums {
                text.sample(name, &[("provider", provider), ("model", model)], value(sums));
            }
        };
        each("haft_model_answers_total", "Answers of models.", &|sums| number(sums.answers));
        each("haft_model_retries_total", "Requests that were made again.", &|sums| number(sums.retries));
        each("haft_model_cost_dollars_total", "What they cost, as far as prices are known.", &|sums| {
            sums.cost_usd
        });
        each("haft_model_unpriced_answers_total", "Answers whose price is not known.", &|sums| {
            number(sums.unpriced)
        });
        let name = "haft_model_tokens_total";
        text.head(name, "Tokens of models, by type.", "counter");
        for ((provider, model), ModelSums { usage, .. }) in &self.sums {
            for (kind, count) in [
                ("input", usage.input),
                ("output", usage.output),
                ("cache_read", usage.cache_read),
                ("cache_write", usage.cache_write),
            ] {
                let labels = [("provider", provider.as_str()), ("model", model), ("type", kind)];
                text.sample(name, &labels, number(count));
            }
        }
        let help = "Turns that ended because a model could not be asked, retries included.";
        text.counter("haft_model_failures_total", help, self.failures);
    }
}
