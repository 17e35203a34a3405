//! Protocol buffers are decoded correctly by OpenTelemetry's own message types, and say the same as the JSON.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_telemetry::{
    AttributeValue, Attributes, ExportedSpan, HistogramMetric, HistogramPoint, SpanKind, TelemetryResource,
    metrics_json, metrics_request, trace_request, traces_json,
};
use haft_tool::{TraceContext, Value, json};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

/// The Python that has OpenTelemetry's messages.
const PYTHON: &str = "HAFT_OTEL_PYTHON";
const CASES: usize = 300;

/// The lines that the reader prints for these.
fn read(lines: &[Value]) -> Vec<String> {
    let python = std::env::var_os(PYTHON);
    assert!(
        python.is_some(),
        "{PYTHON} is not set: run this test by `cargo xtask test`, or `eval \"$(cargo xtask peers)\"` first"
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/read_otlp.py");
    let mut reader = Command::new(python.unwrap());
    let mut reader = reader.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = reader.stdin.take().unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = reader.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn attribute_value() -> impl Strategy<Value = AttributeValue> {
    prop_oneof![
        any::<String>().prop_map(AttributeValue::Text),
        any::<i64>().prop_map(AttributeValue::Int),
        any::<f64>()
            .prop_filter("JSON has no other", |number| number.is_finite())
            .prop_map(AttributeValue::Float),
        any::<bool>().prop_map(AttributeValue::Bool),
        vec(any::<String>(), 0..3).prop_map(AttributeValue::Texts),
    ]
}

fn attributes() -> impl Strategy<Value = Attributes> {
    vec((any::<String>(), attribute_value()), 0..5).prop_map(|pairs| {
        let mut attributes = Attributes::default();
        for (name, value) in pairs {
            attributes.set(name, value);
        }
        attributes
    })
}

fn context() -> impl Strategy<Value = TraceContext> {
    (1_u128.., any::<[u8; 8]>(), any::<u8>(), "[ -~]{0,20}").prop_map(|(trace, span_id, flags, state)| {
        TraceContext { trace_id: u128::to_be_bytes(trace), span_id, flags, state }
    })
}

fn span() -> impl Strategy<Value = ExportedSpan> {
    let kind = prop_oneof![Just(SpanKind::Internal), Just(SpanKind::Client)];
    let parent = proptest::option::of(any::<[u8; 8]>());
    let error = proptest::option::of("[a-z_]{0,8}");
    (context(), parent, any::<String>(), kind, any::<u64>(), any::<u64>(), attributes(), error).prop_map(
        |(context, parent, name, kind, start_ns, end_ns, attributes, error)| ExportedSpan {
            context,
            parent,
            name,
            kind,
            start_ns,
            end_ns,
            attributes,
            error,
        },
    )
}

fn point() -> impl Strategy<Value = HistogramPoint> {
    let number = || -1e300..1e300_f64;
    (attributes(), vec(0..1_000_000_u64, 4), number(), number(), number()).prop_map(
        |(attributes, buckets, sum, min, max)| HistogramPoint { attributes, buckets, sum, min, max },
    )
}

fn metric() -> impl Strategy<Value = HistogramMetric> {
    vec(point(), 0..3).prop_map(|points| HistogramMetric {
        name: "a.metric",
        description: "What it counts.",
        unit: "{call}",
        bounds: &[0.0, 0.5, 128.0],
        points,
    })
}

#[test]
fn any_spans_and_metrics_are_read_the_same_from_protocol_buffers_and_json() {
    let mut runner = TestRunner::deterministic();
    let mut lines = Vec::new();
    for _ in 0..CASES {
        let attributes = attributes().new_tree(&mut runner).unwrap().current();
        let resource = TelemetryResource { attributes };
        let spans = vec(span(), 0..4).new_tree(&mut runner).unwrap().current();
        lines.push(json!({
            "signal": "traces",
            "protobuf": STANDARD.encode(trace_request(&resource, &spans)),
            "json": traces_json(&resource, &spans),
        }));
        let metrics = vec(metric(), 0..3).new_tree(&mut runner).unwrap().current();
        let (start, now) = (any::<u64>().new_tree(&mut runner).unwrap().current(), 7);
        lines.push(json!({
            "signal": "metrics",
            "protobuf": STANDARD.encode(metrics_request(&resource, &metrics, start, now)),
            "json": metrics_json(&resource, &metrics, start, now),
        }));
    }
    let said = read(&lines);
    assert_eq!(said.len(), lines.len());
    for (line, said) in lines.iter().zip(said) {
        assert_eq!(said, "same", "{line}");
    }
}
