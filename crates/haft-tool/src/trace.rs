//! Where a call belongs in a distributed trace, as W3C Trace Context writes it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The longest `tracestate` that is passed on; the specification asks for at least 512 characters.
const MAX_STATE_BYTES: usize = 2_048;
const SAMPLED_FLAG: u8 = 1;

/// The id of a trace.
pub type TraceId = [u8; 16];
/// The id of a span in a trace.
pub type SpanId = [u8; 8];

/// A span of a trace: what `traceparent` and `tracestate` say.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: TraceId,
    /// The span.
    pub span_id: SpanId,
    /// The flags.
    pub flags: u8,
    /// The `tracestate` of vendors; may be empty.
    pub state: String,
}

impl TraceContext {
    /// The span that the two headers or variables name; `None` if the first is invalid. A `tracestate` that cannot be passed on
    /// is left out.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let is_state = |state: &&str| {
            state.len() <= MAX_STATE_BYTES && state.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        let state = tracestate.map(str::trim).filter(is_state).unwrap_or_default().to_owned();
        Some(Self { state, ..traceparent.parse().ok()? })
    }

    /// A span below `parent`, or in a trace of its own. Its ids are derived from `parts`, so the same parts always give the
    /// same ids.
    pub fn derived(parent: Option<&Self>, parts: &[&str]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&part.len().to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let mut ids = [0; 24];
        hasher.finalize_xof().fill(&mut ids);
        let (mut trace_id, mut span_id) = ([0; 16], [0; 8]);
        trace_id.copy_from_slice(&ids[..16]);
        span_id.copy_from_slice(&ids[16..]);
        match parent {
            Some(parent) => Self { span_id, ..parent.clone() },
            None => Self { trace_id, span_id, flags: SAMPLED_FLAG, state: String::new() },
        }
    }

    /// The span of a call.
    pub fn of_call(parent: Option<&Self>, session: &str, call_id: &str, started_at: u64) -> Self {
        Self::derived(parent, &["call", session, call_id, &started_at.to_string()])
    }

    /// Whether the program that began the trace wants it recorded.
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED_FLAG != 0
    }
}

/// The `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", hex(&self.trace_id), hex(&self.span_id), self.flags)
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of exactly this many digits, in lower case.
fn from_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let is_lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != 2 * N || !digits.bytes().all(is_lower_hex) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

impl FromStr for TraceContext {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let mut fields = text.trim().split('-');
            let [version] = from_hex::<1>(fields.next()?)?;
            let trace_id = from_hex(fields.next()?).filter(|id| *id != [0; 16])?;
            let span_id = from_hex(fields.next()?).filter(|id| *id != [0; 8])?;
            let [flags] = from_hex(fields.next()?)?;
            // Later versions may have more fields.
            let has_right_end = version != 0 || fields.next().is_none();
            (version != 0xff && has_right_end).then_some(Self {
                trace_id,
                span_id,
                flags,
                state: String::new(),
            })
        };
        read().ok_or("it is not a traceparent")
    }
}

/// A `traceparent`, with the `tracestate` after a space if there is one.
impl Serialize for TraceContext {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.state.is_empty() {
            return to.collect_str(self);
        }
        to.collect_str(&format_args!("{self} {}", self.state))
    }
}

impl<'de> Deserialize<'de> for TraceContext {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let (parent, state) = text.split_once(' ').map_or((text.as_str(), None), |(p, s)| (p, Some(s)));
        Self::parse(parent, state).ok_or_else(|| de::Error::custom("it is not a traceparent"))
    }
}

/// Where a call belongs, for what it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTrace {
    /// The span of the call.
    pub own: TraceContext,
    /// The span that commands and servers are told: that of the call if it is exported, else the one that Haft was given,
    /// because a parent that is never sent would be missing.
    pub passed_on: Option<TraceContext>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_and_written_the_same() {
        let context = TraceContext::parse(PARENT, Some("vendor=1")).unwrap();
        assert_eq!(context.to_string(), PARENT);
        assert_eq!(context.state, "vendor=1");
        let json = serde_json::to_string(&context).unwrap();
        assert_eq!(json, format!("\"{PARENT} vendor=1\""));
        assert_eq!(serde_json::from_str::<TraceContext>(&json).unwrap(), context);
    }

    #[test]
    fn what_is_no_traceparent_is_refused() {
        let upper = PARENT.to_uppercase();
        let longer = format!("{PARENT}-more");
        for wrong in [
            "",
            "00-0-0-0",
            upper.as_str(),
            longer.as_str(),
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-é4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(wrong, None), None, "{wrong}");
        }
        let later = TraceContext::parse(&longer.replacen("00", "01", 1), None).unwrap();
        assert_eq!(later.to_string(), PARENT);
        assert_eq!(TraceContext::parse(PARENT, Some("a=\nb")).unwrap().state, "");
    }

    #[test]
    fn ids_depend_on_every_part_and_stay_in_the_trace_of_the_parent() {
        let parent = TraceContext::parse(PARENT, None).unwrap();
        let call = TraceContext::of_call(Some(&parent), "s", "c", 1);
        assert_eq!(call.trace_id, parent.trace_id);
        assert_ne!(call.span_id, parent.span_id);
        assert_eq!(call, TraceContext::of_call(Some(&parent), "s", "c", 1));
        assert_ne!(call, TraceContext::of_call(Some(&parent), "s", "c", 2));
        assert_ne!(TraceContext::derived(None, &["ab", "c"]), TraceContext::derived(None, &["a", "bc"]));
        assert!(TraceContext::derived(None, &["a"]).is_sampled());
    }
}
