//! Cost.

use haft_model::{ModelPrice, PriceTable, TokenUsage};

const USAGE: TokenUsage =
    TokenUsage { input: 1_000_000, output: 1_000_000, cache_read: 1_000_000, cache_write: 0, reasoning: 5 };

fn close(cost: Option<f64>, expected: f64) {
    assert!(cost.is_some_and(|cost| (cost - expected).abs() < 1e-9), "{cost:?}");
}

#[test]
fn known_models_have_a_price_with_and_without_a_date() {
    let prices = PriceTable::list();
    close(prices.cost("anthropic", "claude-sonnet-4-5", &USAGE), 18.3);
    close(prices.cost("anthropic", "claude-sonnet-4-5-20250929", &USAGE), 18.3);
    close(prices.cost("openai", "gpt-5-2025-08-07", &USAGE), 11.375);
}

#[test]
fn unknown_price_is_unknown_and_not_nothing() {
    let prices = PriceTable::list();
    assert_eq!(prices.cost("ollama", "llama", &USAGE), None);
    assert_eq!(prices.cost("litellm", "gpt-5", &USAGE), None, "another provider may ask for another price");
    assert_eq!(prices.cost("openai", "gpt-5-turbo", &USAGE), None);
}

#[test]
fn own_prices_replace_those_of_the_list() {
    let own = |input| ModelPrice { input, output: 0.0, cache_read: None, cache_write: None };
    let prices =
        PriceTable::list().with([("gpt-5".to_owned(), own(1.0)), ("ollama/llama".to_owned(), own(3.0))]);
    close(prices.cost("openai", "gpt-5", &USAGE), 2.0);
    close(prices.cost("litellm", "gpt-5", &USAGE), 2.0);
    close(prices.cost("ollama", "llama", &USAGE), 6.0);
    let json = r#"{"m": {"input": 1, "output": 2}}"#;
    let table: PriceTable = serde_json::from_str(json).unwrap();
    close(table.cost("x", "m", &USAGE), 4.0);
}

#[test]
fn usage_adds_up() {
    let mut sum = USAGE;
    sum.add(&USAGE);
    assert_eq!((sum.total(), sum.context(), sum.reasoning), (6_000_000, 4_000_000, 10));
}
