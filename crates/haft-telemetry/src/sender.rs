//! Sends requests to the collector.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use haft_tool::{Cancel, HttpStreams, StreamRequest, clip_chars};
use url::Url;

use crate::json::{metrics_json, traces_json};
use crate::partial_success::{RejectedItems, rejected_in_json, rejected_in_protobuf};
use crate::protobuf::{metrics_request, trace_request};
use crate::settings::{OtlpFormat, TelemetrySettings};
use crate::span::{ExportedSpan, TelemetryResource};
use crate::span_metrics::HistogramMetric;

/// How much of a response is read.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
const MAX_SHOWN_CHARS: usize = 200;
/// Statuses after which the same request may be accepted later.
const RETRY_STATUSES: [u16; 4] = [429, 502, 503, 504];

/// Why a request was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendError {
    /// Whether the same request may be accepted later.
    pub may_pass: bool,
    /// What happened, and what to do.
    pub message: String,
}

/// Sends to one collector.
#[derive(Clone)]
pub struct OtlpSender {
    settings: TelemetrySettings,
    http: Arc<dyn HttpStreams>,
}

impl OtlpSender {
    /// A sender. `http` must be able to reach the hosts of the settings.
    pub fn new(settings: TelemetrySettings, http: Arc<dyn HttpStreams>) -> Self {
        Self { settings, http }
    }

    /// The same sender with this instance id among the attributes of the resource.
    #[must_use]
    pub(crate) fn with_instance(mut self, id: &str) -> Self {
        self.settings.resource.attributes.set("service.instance.id", id);
        self
    }

    pub(crate) fn sends_traces(&self) -> bool {
        self.settings.traces.is_some()
    }

    pub(crate) fn sends_metrics(&self) -> bool {
        self.settings.metrics.is_some()
    }

    /// Sends spans, and waits for at most `limit` for the response. Returns how many the collector rejected, if it took the
    /// request only in part.
    pub fn send_spans(
        &self,
        spans: &[ExportedSpan],
        limit: Duration,
    ) -> Result<Option<RejectedItems>, SendError> {
        let resource = self.resource();
        let body = match self.settings.format {
            OtlpFormat::Protobuf => trace_request(resource, spans),
            OtlpFormat::Json => traces_json(resource, spans).to_string().into_bytes(),
        };
        self.settings.traces.as_ref().map_or(Ok(None), |url| self.post(url, body, "span", limit))
    }

    /// Sends metrics that were counted since `start_ns`.
    pub(crate) fn send_metrics(
        &self,
        metrics: &[HistogramMetric],
        start_ns: u64,
        now_ns: u64,
        limit: Duration,
    ) -> Result<Option<RejectedItems>, SendError> {
        let resource = self.resource();
        let body = match self.settings.format {
            OtlpFormat::Protobuf => metrics_request(resource, metrics, start_ns, now_ns),
            OtlpFormat::Json => metrics_json(resource, metrics, start_ns, now_ns).to_string().into_bytes(),
        };
        self.settings.metrics.as_ref().map_or(Ok(None), |url| self.post(url, body, "data point", limit))
    }

    fn resource(&self) -> &TelemetryResource {
        &self.settings.resource
    }

    /// How long one request may take.
    pub fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    fn post(
        &self,
        url: &Url,
        body: Vec<u8>,
        item: &str,
        limit: Duration,
    ) -> Result<Option<RejectedItems>, SendError> {
        let until = Instant::now() + limit.min(self.settings.timeout);
        let mut headers: Vec<(String, String)> = self
            .settings
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect();
        let content_type = match self.settings.format {
            OtlpFormat::Protobuf => "application/x-protobuf",
            OtlpFormat::Json => "application/json",
        };
        headers.push(("content-type".to_owned(), content_type.to_owned()));
        let mut body = body;
        if self.settings.is_compressed {
            body = gzip(&body).map_err(|error| lasting(format!("it cannot be compressed: {error}")))?;
            headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
        }
        let request = StreamRequest { method: "POST", url: url.to_string(), headers, body: Some(body) };
        let cancel = Cancel::new();
        let left = || until.saturating_duration_since(Instant::now());
        let passing = |message: String| SendError { may_pass: true, message };
        let response = self.http.open(request, left(), &cancel).map_err(|error| passing(error.message))?;
        let (status, mut body) = (response.status, response.body);
        let mut said = Vec::new();
        // Read to its end, so that the connection can be reused. It does not matter if part of it is missing.
        while let Ok(Some(chunk)) = body.next(left(), &cancel)
            && said.len() < MAX_RESPONSE_BYTES
        {
            said.extend_from_slice(&chunk);
        }
        if (200..300).contains(&status) {
            let rejected = match self.settings.format {
                OtlpFormat::Protobuf => rejected_in_protobuf(&said),
                OtlpFormat::Json => rejected_in_json(&said),
            };
            return Ok(rejected.map(|RejectedItems { count, message }| {
                let plural = if count == 1 { "" } else { "s" };
                let why = readable(&message);
                let message = format!("{} rejected {count} {item}{plural}{why}", authority(url));
                RejectedItems { count, message }
            }));
        }
        let message = format!("{} answered {status}{}", authority(url), explained(status, &said));
        Err(SendError { may_pass: RETRY_STATUSES.contains(&status), message })
    }
}

fn lasting(message: String) -> SendError {
    SendError { may_pass: false, message }
}

fn authority(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", url.host_str().unwrap_or_default())
}

/// What the user can do, or else what the collector said.
fn explained(status: u16, said: &[u8]) -> String {
    match status {
        401 | 403 => ". Check OTEL_EXPORTER_OTLP_HEADERS or [otel.headers]".to_owned(),
        404 => ". Check the path of OTEL_EXPORTER_OTLP_ENDPOINT or otel.endpoint".to_owned(),
        _ => readable(&String::from_utf8_lossy(said)),
    }
}

/// What the collector said, after a colon; nothing if that is not text.
fn readable(text: &str) -> String {
    let is_readable = !text.is_empty() && text.chars().all(|letter| !letter.is_control());
    if is_readable { format!(": {}", clip_chars(text, MAX_SHOWN_CHARS, 0)) } else { String::new() }
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}
