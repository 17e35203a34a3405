//! Calls by tool, dialect and outcome, with how long they took.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use haft_ledger::CountedCall;
use haft_tool::ErrorKind;

use super::text::{MetricsText, number};
use crate::call_span::scope_status;

/// How many tools are counted separately. A server may offer any number.
const MAX_TOOLS: usize = 200;
const MAX_NAME_BYTES: usize = 64;
const OTHER: &str = "other";
/// Shown for a tool that is not registered: its name was written by a model.
const UNKNOWN: &str = "unknown";
/// Shown for the tools of MCP servers, whose names others chose.
const MCP_TOOLS: &str = "mcp";

const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0];

/// How long the calls of a tool took.
#[derive(Default)]
struct DurationHistogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

#[derive(Default)]
pub(super) struct CallCounters {
    /// By tool, dialect and outcome.
    outcomes: BTreeMap<(String, String, &'static str), u64>,
    durations: BTreeMap<String, DurationHistogram>,
    errors: BTreeMap<&'static str, u64>,
    sandbox: BTreeMap<&'static str, u64>,
    denials: u64,
    undos: u64,
    tools: BTreeSet<String>,
}

impl CallCounters {
    /// Counts a call that has ended.
    pub(super) fn add(&mut self, call: &CountedCall) {
        let tool = self.tool(call);
        let dialect = call.dialect.as_deref().filter(|name| is_name(name)).unwrap_or(UNKNOWN).to_owned();
        *self.outcomes.entry((tool.clone(), dialect, call.state.word())).or_default() += 1;
        self.durations.entry(tool).or_default().add(Duration::from_micros(call.duration_us).as_secs_f64());
        if let Some(kind) = call.error_kind {
            *self.errors.entry(kind.name()).or_default() += 1;
        }
        if let Some(enforcement) = &call.enforcement {
            *self.sandbox.entry(scope_status(enforcement)).or_default() += 1;
        }
        self.denials += call.denials as u64;
        self.undos += u64::from(call.is_undo);
    }

    fn tool(&mut self, call: &CountedCall) -> String {
        let name = match call.tool.as_str() {
            _ if call.error_kind == Some(ErrorKind::NotFound) => UNKNOWN,
            name if name.starts_with("mcp__") => MCP_TOOLS,
            name if !is_name(name) => OTHER,
            name if !self.tools.contains(name) && self.tools.len() >= MAX_TOOLS => OTHER,
            name => name,
        };
        self.tools.insert(name.to_owned());
        name.to_owned()
    }

    pub(super) fn write(&self, text: &mut MetricsText) {
        let name = "haft_calls_total";
        text.head(name, "Calls that have ended, by tool, dialect and outcome.", "counter");
        for ((tool, dialect, outcome), count) in &self.outcomes {
            let labels = [("tool", tool.as_str()), ("dialect", dialect), ("outcome", outcome)];
            text.sample(name, &labels, number(*count));
        }
        let name = "haft_call_duration_seconds";
        text.head(name, "How long calls took, by tool.", "histogram");
        for (tool, histogram) in &self.durations {
            histogram.write(name, tool, text);
        }
        for (name, label, help, counts) in [
            (
                "haft_call_errors_total",
                "error_type",
                "Calls that failed, by the kind of error.",
                &self.errors,
            ),
            (
                "haft_commands_total",
                "sandbox",
                "Calls with commands, by how the scope was enforced.",
                &self.sandbox,
            ),
        ] {
            text.head(name, help, "counter");
            for (value, count) in counts {
                text.sample(name, &[(label, value)], number(*count));
            }
        }
        text.counter("haft_denials_total", "What the scope refused to commands.", self.denials);
        text.counter("haft_undos_total", "Calls that undid or redid others.", self.undos);
    }
}

impl DurationHistogram {
    fn add(&mut self, seconds: f64) {
        // Each bucket counts everything up to its bound.
        for (bucket, bound) in self.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= bound);
        }
        self.count += 1;
        self.seconds += seconds;
    }

    fn write(&self, name: &str, tool: &str, text: &mut MetricsText) {
        let bucket = format!("{name}_bucket");
        for (count, bound) in self.buckets.iter().zip(BUCKETS) {
            text.sample(&bucket, &[("tool", tool), ("le", &bound.to_string())], number(*count));
        }
        text.sample(&bucket, &[("tool", tool), ("le", "+Inf")], number(self.count));
        text.sample(&format!("{name}_sum"), &[("tool", tool)], self.seconds);
        text.sample(&format!("{name}_count"), &[("tool", tool)], number(self.count));
    }
}

/// Whether a text is a plain name, and not a sentence, path or command.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !text.is_empty() && text.len() <= MAX_NAME_BYTES && text.bytes().all(is_plain)
}
