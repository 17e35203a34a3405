//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

/// Writes metrics.
#[derive(Default)]
pub(super) struct MetricsText {
    text: String,
}

impl MetricsText {
    pub(super) fn finish(self) -> String {
        self.text
    }

    /// The lines before the samples of a metric.
    pub(super) fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// A sample of a counter or gauge with these labels.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.line(format_args!("{name}{labels} {value}"));
    }

    /// A counter with one sample.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        self.sample(name, &[], number(value));
    }

    /// A gauge with one sample.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.gauge_of(name, help, number(value));
    }

    pub(super) fn gauge_of(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "gauge");
        self.sample(name, &[], value);
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// A number as a sample has it.
#[expect(clippy::cast_precision_loss, reason = "a sample is a double; counts up to 2^53 are exact")]
pub(super) fn number(value: u64) -> f64 {
    value as f64
}

/// The value of a label between its quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
