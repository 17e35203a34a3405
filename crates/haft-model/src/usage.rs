//! Tokens.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The tokens of one or more answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// Tokens of requests that were neither read from a cache nor written to it.
    pub input: u64,
    /// Tokens of answers, reasoning included.
    pub output: u64,
    /// Tokens that were read from the provider's cache.
    pub cache_read: u64,
    /// Tokens that were written to it.
    pub cache_write: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
}

impl TokenUsage {
    /// All tokens, in and out.
    pub fn total(&self) -> u64 {
        self.context().saturating_add(self.output)
    }

    /// The tokens of the request, cached or not.
    pub fn context(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Adds the tokens of another answer.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.reasoning, other.reasoning),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

/// The number at a JSON pointer, if there is one.
pub(crate) fn count(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}
