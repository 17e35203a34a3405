//! OTLP requests as JSON: ids in hexadecimal, 64-bit numbers as strings.

use haft_tool::{Value, hex, json};

use crate::names;
use crate::span::{AttributeValue, Attributes, ExportedSpan, TelemetryResource};
use crate::span_metrics::{HistogramMetric, HistogramPoint};

const ERROR_STATUS_CODE: u64 = 2;
const CUMULATIVE_CODE: u64 = 2;

/// An `ExportTraceServiceRequest`.
pub fn traces_json(resource: &TelemetryResource, spans: &[ExportedSpan]) -> Value {
    let spans: Vec<Value> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes(&resource.attributes)},
        "scopeSpans": [{"scope": scope(), "spans": spans, "schemaUrl": names::SCHEMA_URL}],
        "schemaUrl": names::SCHEMA_URL,
    }]})
}

/// An `ExportMetricsServiceRequest` with what was counted from `start_ns` to `now_ns`.
pub fn metrics_json(
    resource: &TelemetryResource,
    metrics: &[HistogramMetric],
    start_ns: u64,
    now_ns: u64,
) -> Value {
    let metric = |metric: &HistogramMetric| {
        let points = metric.points.iter().map(|one| point(one, metric.bounds, start_ns, now_ns));
        json!({
            "name": metric.name, "description": metric.description, "unit": metric.unit,
            "histogram": {"dataPoints": points.collect::<Vec<_>>(), "aggregationTemporality": CUMULATIVE_CODE},
        })
    };
    let metrics: Vec<Value> = metrics.iter().map(metric).collect();
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes(&resource.attributes)},
        "scopeMetrics": [{"scope": scope(), "metrics": metrics, "schemaUrl": names::SCHEMA_URL}],
        "schemaUrl": names::SCHEMA_URL,
    }]})
}

fn scope() -> Value {
    json!({"name": names::SCOPE, "version": env!("CARGO_PKG_VERSION")})
}

fn span(span: &ExportedSpan) -> Value {
    let mut json = json!({
        "traceId": hex(&span.context.trace_id),
        "spanId": hex(&span.context.span_id),
        "flags": span.context.flags,
        "name": span.name,
        "kind": span.kind as u64,
        "startTimeUnixNano": span.start_ns.to_string(),
        "endTimeUnixNano": span.end_ns.to_string(),
        "attributes": attributes(&span.attributes),
    });
    if let Some(parent) = &span.parent {
        json["parentSpanId"] = json!(hex(parent));
    }
    if !span.context.state.is_empty() {
        json["traceState"] = json!(span.context.state);
    }
    if let Some(error) = &span.error {
        json["status"] = json!({"code": ERROR_STATUS_CODE, "message": error});
    }
    json
}

fn point(point: &HistogramPoint, bounds: &[f64], start_ns: u64, now_ns: u64) -> Value {
    let buckets: Vec<String> = point.buckets.iter().map(u64::to_string).collect();
    json!({
        "startTimeUnixNano": start_ns.to_string(),
        "timeUnixNano": now_ns.to_string(),
        "count": point.count().to_string(),
        "sum": point.sum,
        "min": point.min,
        "max": point.max,
        "bucketCounts": buckets,
        "explicitBounds": bounds,
        "attributes": attributes(&point.attributes),
    })
}

fn attributes(attributes: &Attributes) -> Value {
    let pair = |(name, value): (&str, &AttributeValue)| json!({"key": name, "value": any_value(value)});
    Value::Array(attributes.iter().map(pair).collect())
}

fn any_value(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::Text(text) => json!({"stringValue": text}),
        AttributeValue::Int(number) => json!({"intValue": number.to_string()}),
        AttributeValue::Float(number) => json!({"doubleValue": number}),
        AttributeValue::Bool(is) => json!({"boolValue": is}),
        AttributeValue::Texts(texts) => {
            let values: Vec<Value> = texts.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"arrayValue": {"values": values}})
        }
    }
}
