//! Histograms over spans.

use haft_telemetry::{Attributes, ExportedSpan, SpanKind, SpanMetrics};
use haft_tool::TraceContext;

fn span(operation: &str, milliseconds: u64, more: &[(&'static str, &str)]) -> ExportedSpan {
    let mut attributes = Attributes::default();
    attributes.set("gen_ai.operation.name", operation);
    for (name, value) in more {
        attributes.set(*name, *value);
    }
    ExportedSpan {
        context: TraceContext::derived(None, &["t"]),
        parent: None,
        name: operation.to_owned(),
        kind: SpanKind::Internal,
        start_ns: 1_000,
        end_ns: 1_000 + milliseconds * 1_000_000,
        attributes,
        error: None,
    }
}

#[test]
fn durations_and_tokens_are_counted_in_the_buckets_of_the_conventions() {
    let mut metrics = SpanMetrics::default();
    metrics.add(&span("execute_tool", 10, &[("gen_ai.tool.name", "Bash")]));
    metrics.add(&span("execute_tool", 11, &[("gen_ai.tool.name", "Bash"), ("gen_ai.tool.call.id", "x")]));
    metrics.add(&span("execute_tool", 100_000, &[("gen_ai.tool.name", "Bash")]));
    let mut chat = span("chat", 500, &[("gen_ai.request.model", "m")]);
    chat.attributes.set("gen_ai.usage.input_tokens", 17_u64);
    chat.attributes.set("gen_ai.usage.output_tokens", 1_u64);
    metrics.add(&chat);
    let all = metrics.all();
    let names: Vec<_> = all.iter().map(|metric| metric.name).collect();
    let expected =
        ["gen_ai.client.operation.duration", "gen_ai.client.token.usage", "gen_ai.execute_tool.duration"];
    assert_eq!(names, expected);
    let tools = &all[2].points[0];
    assert_eq!((tools.count(), tools.buckets[0], tools.buckets[1]), (3, 1, 1));
    assert_eq!(tools.buckets.last(), Some(&1));
    assert!((tools.max - 100.0).abs() < 1e-9 && (tools.min - 0.01).abs() < 1e-9);
    assert_eq!(tools.attributes.get("gen_ai.tool.call.id"), None);
    let types: Vec<_> =
        all[1].points.iter().map(|point| point.attributes.text("gen_ai.token.type")).collect();
    assert_eq!(types, [Some("input"), Some("output")]);
}

#[test]
fn series_are_bounded_whatever_the_tools_are_called() {
    let mut metrics = SpanMetrics::default();
    for number in 0..10_000 {
        metrics.add(&span("execute_tool", 1, &[("gen_ai.tool.name", &format!("tool{number}"))]));
    }
    let all = metrics.all();
    assert!(all[0].points.len() <= 201, "{}", all[0].points.len());
    assert_eq!(all[0].points.iter().map(haft_telemetry::HistogramPoint::count).sum::<u64>(), 10_000);
}
