//! What tokens cost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::TokenUsage;

const TOKENS_PER_PRICE: f64 = 1_000_000.0;

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ModelPrice {
    /// Of the request.
    pub input: f64,
    /// Of the answer.
    pub output: f64,
    /// Of what is read from the cache; the price of input if it is not given.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// Of what is written to the cache; the price of input if it is not given.
    #[serde(default)]
    pub cache_write: Option<f64>,
}

impl ModelPrice {
    /// What these tokens cost.
    #[expect(clippy::cast_precision_loss, reason = "no one uses 2^52 tokens")]
    pub fn cost(&self, usage: &TokenUsage) -> f64 {
        let price = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read.unwrap_or(self.input)),
            (usage.cache_write, self.cache_write.unwrap_or(self.input)),
        ];
        price.iter().map(|(tokens, price)| *tokens as f64 * price / TOKENS_PER_PRICE).sum()
    }
}

/// Prices by provider and model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PriceTable {
    /// By model, or by `provider/model`, which counts first.
    prices: BTreeMap<String, ModelPrice>,
}

impl PriceTable {
    /// The vendors' list prices of November 2026.
    pub fn list() -> Self {
        let mut prices = BTreeMap::new();
        for (provider, model, input, output, cache_read, cache_write) in LIST_PRICES {
            let (cache_read, cache_write) = (Some(*cache_read), *cache_write);
            let price = ModelPrice { input: *input, output: *output, cache_read, cache_write };
            prices.insert(format!("{provider}/{model}"), price);
        }
        Self { prices }
    }

    /// Adds the user's own prices, by model or by `provider/model`. They replace those of the list.
    #[must_use]
    pub fn with(mut self, own: impl IntoIterator<Item = (String, ModelPrice)>) -> Self {
        for (name, price) in own {
            // A name without a provider means that model wherever it runs.
            let suffix = format!("/{name}");
            self.prices.retain(|known, _| name.contains('/') || !known.ends_with(&suffix));
            self.prices.insert(name, price);
        }
        self
    }

    /// The price of a model; a name with a date at its end is the model without it. `None` if it is not known.
    pub fn price(&self, provider: &str, model: &str) -> Option<ModelPrice> {
        let find = |model: &str| {
            let named = self.prices.get(&format!("{provider}/{model}"));
            named.or_else(|| self.prices.get(model)).copied()
        };
        find(model).or_else(|| find(without_date(model)?))
    }

    /// What these tokens cost in US dollars; `None` if the price is not known, which is not the same as nothing.
    pub fn cost(&self, provider: &str, model: &str, usage: &TokenUsage) -> Option<f64> {
        self.price(provider, model).map(|price| price.cost(usage))
    }
}

/// `model` of `model-20251001` or `model-2025-10-01`.
fn without_date(model: &str) -> Option<&str> {
    let is_date = |text: &str| {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        digits == 8 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    [9, 11].into_iter().find_map(|length| {
        let at = model.len().checked_sub(length)?;
        let date = model.get(at..)?.strip_prefix('-')?;
        is_date(date).then(|| model.get(..at))?
    })
}

type ListPrice = (&'static str, &'static str, f64, f64, f64, Option<f64>);

/// Provider, model, input, output, read from the cache, written to the cache.
#[rustfmt::skip]
const LIST_PRICES: &[ListPrice] = &[
    ("anthropic", "claude-fable-5", 10.0, 50.0, 1.0, Some(12.5)),
    ("anthropic", "claude-fable-5-1", 10.0, 50.0, 0.25, Some(12.5)),
    ("anthropic", "claude-haiku-4-5", 1.0, 5.0, 0.1, Some(1.25)),
    ("anthropic", "claude-haiku-5-5", 0.1, 0.5, 0.01, Some(0.125)),
    ("anthropic", "claude-opus-4-5", 5.0, 25.0, 0.5, Some(6.25)),
    ("anthropic", "claude-opus-4-6", 5.0, 25.0, 0.5, Some(6.25)),
    ("anthropic", "claude-opus-4-7", 5.0, 25.0, 0.5, Some(6.25)),
    ("anthropic", "claude-opus-4-8", 5.0, 25.0, 0.5, Some(6.25)),
    ("anthropic", "claude-opus-5", 5.0, 25.0, 0.5, Some(6.25)),
    ("anthropic", "claude-opus-5-5", 4.0, 20.0, 0.2, Some(5.0)),
    ("anthropic", "claude-sonnet-4-5", 3.0, 15.0, 0.3, Some(3.75)),
    ("anthropic", "claude-sonnet-4-6", 3.0, 15.0, 0.3, Some(3.75)),
    ("anthropic", "claude-sonnet-5", 2.0, 10.0, 0.2, Some(2.5)),
    ("anthropic", "claude-sonnet-5-5", 2.0, 10.0, 0.1, Some(2.5)),
    ("gemini", "gemini-2.5-flash", 0.3, 2.5, 0.03, None),
    ("gemini", "gemini-2.5-flash-lite", 0.1, 0.4, 0.01, None),
    ("gemini", "gemini-2.5-pro", 1.25, 10.0, 0.125, None),
    ("gemini", "gemini-3.1-flash-lite", 0.25, 1.5, 0.025, None),
    ("gemini", "gemini-3.1-pro-preview", 2.0, 12.0, 0.2, None),
    ("gemini", "gemini-3.5-flash", 1.5, 9.0, 0.15, None),
    ("gemini", "gemini-3.5-flash-lite", 0.3, 2.5, 0.03, None),
    ("gemini", "gemini-3.8-flash", 0.75, 3.75, 0.075, None),
    ("gemini", "gemini-4-argon", 2.0, 10.0, 0.1, None),
    ("openai", "gpt-4.1", 2.0, 8.0, 0.5, None),
    ("openai", "gpt-4.1-mini", 0.4, 1.6, 0.1, None),
    ("openai", "gpt-4o", 2.5, 10.0, 1.25, None),
    ("openai", "gpt-4o-mini", 0.15, 0.6, 0.075, None),
    ("openai", "gpt-5", 1.25, 10.0, 0.125, None),
    ("openai", "gpt-5-mini", 0.25, 2.0, 0.025, None),
    ("openai", "gpt-5-nano", 0.05, 0.4, 0.005, None),
    ("openai", "gpt-5.1", 1.25, 10.0, 0.125, None),
    ("openai", "gpt-5.1-codex", 1.25, 10.0, 0.125, None),
    ("openai", "gpt-5.2", 1.75, 14.0, 0.175, None),
    ("openai", "gpt-5.3-codex", 1.75, 14.0, 0.175, None),
    ("openai", "gpt-5.4", 2.5, 15.0, 0.25, None),
    ("openai", "gpt-5.4-mini", 0.75, 4.5, 0.075, None),
    ("openai", "gpt-5.5", 5.0, 30.0, 0.5, None),
    ("openai", "gpt-5.6", 4.0, 20.0, 0.4, Some(5.0)),
    ("openai", "gpt-5.6-luna", 0.2, 1.2, 0.02, Some(0.25)),
    ("openai", "gpt-5.6-sol", 4.0, 20.0, 0.4, Some(5.0)),
    ("openai", "gpt-5.6-terra", 2.0, 12.0, 0.2, Some(2.5)),
    ("openai", "gpt-6-astra", 10.0, 50.0, 1.0, Some(12.5)),
    ("openai", "gpt-6-luna", 0.1, 0.5, 0.01, Some(0.125)),
    ("openai", "gpt-6-sol", 2.0, 10.0, 0.2, Some(2.5)),
    ("openai", "gpt-6.1-sol", 2.0, 10.0, 0.1, Some(2.5)),
    ("openai", "gpt-6.1-terra", 1.0, 5.0, 0.05, Some(1.25)),
];
