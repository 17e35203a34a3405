//! Histograms over the spans of this process, as the semantic conventions define them.

use std::collections::BTreeMap;

use crate::names;
use crate::span::{AttributeValue, Attributes, ExportedSpan};

/// How many series a metric has. Further ones are counted together.
const MAX_SERIES: usize = 200;
const OVERFLOW: &str = "otel.metric.overflow";

const SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const FIRST_CHUNK_SECONDS: &[f64] =
    &[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const COUNTS: &[f64] = &[0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];

/// The metrics, by their indexes in [`KINDS`].
#[derive(Clone, Copy)]
enum SpanMetric {
    OperationDuration,
    FirstChunk,
    TokenUsage,
    AgentDuration,
    AgentInferences,
    AgentToolCalls,
    ToolDuration,
}

/// What a metric is called and how it counts.
struct MetricKind {
    name: &'static str,
    description: &'static str,
    unit: &'static str,
    bounds: &'static [f64],
}

const KINDS: [MetricKind; 7] = [
    MetricKind {
        name: "gen_ai.client.operation.duration",
        description: "How long an answer of a model took.",
        unit: "s",
        bounds: SECONDS,
    },
    MetricKind {
        name: "gen_ai.client.operation.time_to_first_chunk",
        description: "How long it took until an answer began to arrive.",
        unit: "s",
        bounds: FIRST_CHUNK_SECONDS,
    },
    MetricKind {
        name: "gen_ai.client.token.usage",
        description: "Tokens of an answer and its request.",
        unit: "{token}",
        bounds: TOKENS,
    },
    MetricKind {
        name: "gen_ai.invoke_agent.duration",
        description: "How long a turn of an agent took.",
        unit: "s",
        bounds: SECONDS,
    },
    MetricKind {
        name: "gen_ai.invoke_agent.inference_calls",
        description: "How often a model was asked in a turn.",
        unit: "{call}",
        bounds: COUNTS,
    },
    MetricKind {
        name: "gen_ai.invoke_agent.tool_calls",
        description: "How many calls of tools a turn had.",
        unit: "{call}",
        bounds: COUNTS,
    },
    MetricKind {
        name: "gen_ai.execute_tool.duration",
        description: "How long a call of a tool took.",
        unit: "s",
        bounds: SECONDS,
    },
];

/// A metric with its series.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramMetric {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub description: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The upper bounds of all buckets but the last.
    pub bounds: &'static [f64],
    /// Its series.
    pub points: Vec<HistogramPoint>,
}

/// One series of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramPoint {
    /// What its values have in common.
    pub attributes: Attributes,
    /// How many values each bucket has.
    pub buckets: Vec<u64>,
    /// The sum of the values.
    pub sum: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl HistogramPoint {
    fn new(attributes: Attributes, bounds: &[f64]) -> Self {
        let buckets = vec![0; bounds.len() + 1];
        Self { attributes, buckets, sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }

    fn add(&mut self, value: f64, bounds: &[f64]) {
        let at = bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len());
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket += 1;
        }
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// How many values it has.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// The metrics of this process.
#[derive(Debug, Default)]
pub struct SpanMetrics {
    series: [BTreeMap<String, HistogramPoint>; KINDS.len()],
}

impl SpanMetrics {
    /// Counts a span.
    pub fn add(&mut self, span: &ExportedSpan) {
        let attributes = &span.attributes;
        let count = |name: &str| {
            let number = u32::try_from(attributes.int(name)?.max(0)).unwrap_or(u32::MAX);
            Some(f64::from(number))
        };
        match attributes.text(names::OPERATION) {
            Some(names::CHAT) => {
                let of = attributes.only(&[
                    names::OPERATION,
                    names::PROVIDER,
                    names::REQUEST_MODEL,
                    names::RESPONSE_MODEL,
                    names::SERVER_ADDRESS,
                    names::SERVER_PORT,
                    names::ERROR_TYPE,
                ]);
                self.add_value(SpanMetric::OperationDuration, of.clone(), span.seconds());
                if let Some(AttributeValue::Float(seconds)) = attributes.get(names::FIRST_CHUNK) {
                    self.add_value(SpanMetric::FirstChunk, of.clone(), *seconds);
                }
                for (kind, name) in [("input", names::INPUT_TOKENS), ("output", names::OUTPUT_TOKENS)] {
                    if let Some(tokens) = count(name) {
                        let mut of = of.clone();
                        of.set(names::TOKEN_TYPE, kind);
                        self.add_value(SpanMetric::TokenUsage, of, tokens);
                    }
                }
            }
            Some(names::INVOKE_AGENT) => {
                let of = attributes.only(&[
                    names::OPERATION,
                    names::PROVIDER,
                    names::AGENT_NAME,
                    names::ERROR_TYPE,
                ]);
                self.add_value(SpanMetric::AgentDuration, of.clone(), span.seconds());
                for (metric, name) in [
                    (SpanMetric::AgentInferences, names::INFERENCES),
                    (SpanMetric::AgentToolCalls, names::TOOL_CALLS),
                ] {
                    if let Some(calls) = count(name) {
                        self.add_value(metric, of.clone(), calls);
                    }
                }
            }
            Some(names::EXECUTE_TOOL) => {
                let of = attributes.only(&[names::OPERATION, names::TOOL_NAME, names::ERROR_TYPE]);
                self.add_value(SpanMetric::ToolDuration, of, span.seconds());
            }
            _ => {}
        }
    }

    fn add_value(&mut self, metric: SpanMetric, attributes: Attributes, value: f64) {
        let (Some(kind), Some(series)) = (KINDS.get(metric as usize), self.series.get_mut(metric as usize))
        else {
            return;
        };
        let mut attributes = attributes;
        let mut key = key_of(&attributes);
        if !series.contains_key(&key) && series.len() >= MAX_SERIES {
            attributes = Attributes::default();
            attributes.set(OVERFLOW, true);
            key = key_of(&attributes);
        }
        let point = series.entry(key).or_insert_with(|| HistogramPoint::new(attributes, kind.bounds));
        point.add(value, kind.bounds);
    }

    /// The metrics that have values.
    pub fn all(&self) -> Vec<HistogramMetric> {
        let metric = |(kind, series): (&MetricKind, &BTreeMap<String, HistogramPoint>)| {
            let MetricKind { name, description, unit, bounds } = *kind;
            let points = series.values().cloned().collect();
            (!series.is_empty()).then_some(HistogramMetric { name, description, unit, bounds, points })
        };
        KINDS.iter().zip(&self.series).filter_map(metric).collect()
    }
}

fn key_of(attributes: &Attributes) -> String {
    attributes.iter().map(|(name, value)| format!("{name}={value:?};")).collect()
}
