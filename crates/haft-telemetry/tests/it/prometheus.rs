//! The text for Prometheus, read by a strict parser.

use std::collections::BTreeSet;

use haft_ledger::{EventLog, Expected};
use haft_telemetry::LedgerMetrics;
use haft_tool::{ErrorKind, json};

use crate::ledger::{LedgerFixture, end};
use crate::prometheus_text::{parse, value};

#[test]
fn calls_are_counted_once_by_tool_dialect_and_outcome_from_the_beginning_on() {
    let fixture = LedgerFixture::new();
    fixture.call("Read", None);
    let running = fixture.begin(|_| {});
    let metrics = LedgerMetrics::new(&fixture.ledger).unwrap();
    assert_eq!(value(&parse(&metrics.text(&fixture.ledger).unwrap()), "haft_calls_running", &[]), "1");
    fixture.call("Bash", None);
    fixture.call("Bash", Some(ErrorKind::Timeout));
    let later = fixture.begin(|_| {});
    metrics.text(&fixture.ledger).unwrap();
    end(&running, None);
    end(&later, None);
    for _ in 0..2 {
        let samples = parse(&metrics.text(&fixture.ledger).unwrap());
        let calls = |outcome| {
            let labels = [("tool", "Bash"), ("dialect", "claude"), ("outcome", outcome)];
            value(&samples, "haft_calls_total", &labels)
        };
        assert_eq!((calls("completed").as_str(), calls("failed").as_str()), ("3", "1"));
        assert_eq!(value(&samples, "haft_call_errors_total", &[("error_type", "timeout")]), "1");
        assert_eq!(value(&samples, "haft_call_duration_seconds_count", &[("tool", "Bash")]), "4");
        assert_eq!(value(&samples, "haft_ledger_calls", &[]), "2", "the size is measured once a minute");
    }
}

#[test]
fn no_label_is_what_a_user_a_model_or_a_server_wrote() {
    let fixture = LedgerFixture::new();
    let metrics = LedgerMetrics::new(&fixture.ledger).unwrap();
    for (tool, error) in [
        ("canary\"}\n1", None),
        ("/home/canary/x", None),
        ("mcp__canary__tool", None),
        ("canary", Some(ErrorKind::NotFound)),
        (&"canary".repeat(100), None),
    ] {
        fixture.call(tool, error);
    }
    let text = metrics.text(&fixture.ledger).unwrap();
    assert!(!text.contains("canary"), "{text}");
    let samples = parse(&text);
    let count = |tool| value(&samples, "haft_call_duration_seconds_count", &[("tool", tool)]);
    assert_eq!([count("other"), count("mcp"), count("unknown")], ["3", "1", "1"]);
}

#[test]
fn the_text_does_not_grow_with_the_calls() {
    let fixture = LedgerFixture::new();
    let metrics = LedgerMetrics::new(&fixture.ledger).unwrap();
    fixture.call("Bash", None);
    let lines = metrics.text(&fixture.ledger).unwrap().lines().count();
    for _ in 0..3_000 {
        fixture.call("Bash", None);
    }
    let text = metrics.text(&fixture.ledger).unwrap();
    assert_eq!(text.lines().count(), lines);
    let labels = [("tool", "Bash"), ("dialect", "claude"), ("outcome", "completed")];
    assert_eq!(value(&parse(&text), "haft_calls_total", &labels), "3001");
    for number in 0..1_000 {
        fixture.call(&format!("Tool{number}"), None);
    }
    let samples = parse(&metrics.text(&fixture.ledger).unwrap());
    let tools: BTreeSet<_> = samples.keys().filter_map(|(_, labels)| labels.get("tool")).collect();
    assert!(tools.len() <= 201, "{}", tools.len());
}

#[test]
fn tokens_and_cost_are_counted_by_model() {
    let fixture = LedgerFixture::new();
    let metrics = LedgerMetrics::new(&fixture.ledger).unwrap();
    let answer = |cost: Option<f64>| {
        json!({"event": "answer", "cost_usd": cost, "response": {
            "message": {"parts": [], "origin": {"wire": "gemini", "provider": "gemini", "model": "g-1"}},
            "stop": {"reason": "end"}, "usage": {"input": 100, "output": 7}, "model": "g-1-x",
            "elapsed": {"secs": 1, "nanos": 0},
        }})
    };
    for event in [answer(Some(0.5)), answer(None), json!({"event": "later"})] {
        fixture.ledger.append(&fixture.session, Expected::Any, &event).unwrap();
    }
    let samples = parse(&metrics.text(&fixture.ledger).unwrap());
    let of = [("provider", "gcp.gemini"), ("model", "g-1")];
    assert_eq!(value(&samples, "haft_model_answers_total", &of), "2");
    assert_eq!(value(&samples, "haft_model_cost_dollars_total", &of), "0.5");
    assert_eq!(value(&samples, "haft_model_unpriced_answers_total", &of), "1");
    let input = [of[0], of[1], ("type", "input")];
    assert_eq!(value(&samples, "haft_model_tokens_total", &input), "200");
}
