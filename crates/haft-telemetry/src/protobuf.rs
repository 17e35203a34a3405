//! OTLP requests as protocol buffers, with the field numbers of opentelemetry-proto 1.x.

use crate::names;
use crate::proto_writer::ProtoWriter;
use crate::span::{AttributeValue, Attributes, ExportedSpan, TelemetryResource};
use crate::span_metrics::{HistogramMetric, HistogramPoint};

const ERROR_STATUS_CODE: u64 = 2;
const CUMULATIVE_CODE: u64 = 2;

/// An `ExportTraceServiceRequest`.
pub fn trace_request(resource: &TelemetryResource, spans: &[ExportedSpan]) -> Vec<u8> {
    let mut request = ProtoWriter::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |to| attributes(to, 1, &resource.attributes));
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, scope);
            for one in spans {
                scope_spans.message(2, |to| span(to, one));
            }
            scope_spans.text(3, names::SCHEMA_URL);
        });
        resource_spans.text(3, names::SCHEMA_URL);
    });
    request.into_bytes()
}

/// An `ExportMetricsServiceRequest` with what was counted from `start_ns` to `now_ns`.
pub fn metrics_request(
    resource: &TelemetryResource,
    metrics: &[HistogramMetric],
    start_ns: u64,
    now_ns: u64,
) -> Vec<u8> {
    let mut request = ProtoWriter::default();
    request.message(1, |resource_metrics| {
        resource_metrics.message(1, |to| attributes(to, 1, &resource.attributes));
        resource_metrics.message(2, |scope_metrics| {
            scope_metrics.message(1, scope);
            for metric in metrics {
                scope_metrics.message(2, |to| histogram(to, metric, start_ns, now_ns));
            }
            scope_metrics.text(3, names::SCHEMA_URL);
        });
        resource_metrics.text(3, names::SCHEMA_URL);
    });
    request.into_bytes()
}

fn scope(to: &mut ProtoWriter) {
    to.text(1, names::SCOPE);
    to.text(2, env!("CARGO_PKG_VERSION"));
}

fn span(to: &mut ProtoWriter, span: &ExportedSpan) {
    to.bytes(1, &span.context.trace_id);
    to.bytes(2, &span.context.span_id);
    to.text(3, &span.context.state);
    if let Some(parent) = &span.parent {
        to.bytes(4, parent);
    }
    to.text(5, &span.name);
    to.varint(6, span.kind as u64);
    to.fixed64(7, span.start_ns);
    to.fixed64(8, span.end_ns);
    attributes(to, 9, &span.attributes);
    if let Some(error) = &span.error {
        to.message(15, |status| {
            status.text(2, error);
            status.varint(3, ERROR_STATUS_CODE);
        });
    }
    to.fixed32(16, u32::from(span.context.flags));
}

fn histogram(to: &mut ProtoWriter, metric: &HistogramMetric, start_ns: u64, now_ns: u64) {
    to.text(1, metric.name);
    to.text(2, metric.description);
    to.text(3, metric.unit);
    to.message(9, |histogram| {
        for one in &metric.points {
            histogram.message(1, |to| point(to, one, metric.bounds, start_ns, now_ns));
        }
        histogram.varint(2, CUMULATIVE_CODE);
    });
}

fn point(to: &mut ProtoWriter, point: &HistogramPoint, bounds: &[f64], start_ns: u64, now_ns: u64) {
    to.fixed64(2, start_ns);
    to.fixed64(3, now_ns);
    to.fixed64(4, point.count());
    to.double_of_choice(5, point.sum);
    to.packed_fixed64(6, point.buckets.iter().copied());
    to.packed_fixed64(7, bounds.iter().map(|bound| bound.to_bits()));
    attributes(to, 9, &point.attributes);
    to.double_of_choice(11, point.min);
    to.double_of_choice(12, point.max);
}

fn attributes(to: &mut ProtoWriter, field: u32, attributes: &Attributes) {
    for (name, value) in attributes.iter() {
        to.message(field, |pair| {
            pair.text(1, name);
            pair.message(2, |to| any_value(to, value));
        });
    }
}

fn any_value(to: &mut ProtoWriter, value: &AttributeValue) {
    match value {
        AttributeValue::Text(text) => to.bytes_of_choice(1, text.as_bytes()),
        AttributeValue::Bool(is) => to.varint_of_choice(2, u64::from(*is)),
        AttributeValue::Int(number) => to.varint_of_choice(3, number.cast_unsigned()),
        AttributeValue::Float(number) => to.double_of_choice(4, *number),
        AttributeValue::Texts(texts) => to.message(5, |array| {
            for text in texts {
                array.message(1, |value| value.bytes_of_choice(1, text.as_bytes()));
            }
        }),
    }
}
