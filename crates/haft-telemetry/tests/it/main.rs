//! The form of what is sent, and Prometheus' text, through the public interface.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and starts the program that it compares with"
)]

mod ledger;
mod otlp;
mod prometheus;
mod prometheus_text;
mod span_metrics;
