//! OpenTelemetry and Prometheus metrics and traces, made from the ledger.
//!
//! Spans are made from receipts ([`call_span`]) and from the events of runs ([`run_spans`]): by the [`Exporter`] while Haft
//! runs, or later by [`session_spans`]. They are written as OTLP in protobuf ([`protobuf`]) or JSON ([`json`]). OTLP metrics
//! are made from the spans ([`span_metrics`]), Prometheus metrics from the ledger ([`LedgerMetrics`]).
//!
//! Never here: a measurement that is not in the ledger, a socket, or contents of calls that the user does not want sent.

mod call_span;
mod content;
mod exporter;
mod json;
mod names;
mod old_session;
mod partial_success;
mod prometheus;
mod proto_writer;
mod protobuf;
mod run_spans;
mod sender;
mod settings;
mod span;
mod span_metrics;
mod span_queue;

pub use content::ContentCapture;
pub use exporter::{ExportReport, Exporter, ExporterParts};
pub use json::{metrics_json, traces_json};
pub use old_session::{session_batches, session_spans};
pub use partial_success::RejectedItems;
pub use prometheus::LedgerMetrics;
pub use protobuf::{metrics_request, trace_request};
pub use sender::{OtlpSender, SendError};
pub use settings::{OtelSection, TelemetrySettings, inherited_trace};
pub use span::{AttributeValue, Attributes, ExportedSpan, SpanKind, TelemetryResource};
pub use span_metrics::{HistogramMetric, HistogramPoint, SpanMetrics};
