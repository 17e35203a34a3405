//! Spans and their attributes, independent of the format in which they are sent.

use std::borrow::Cow;

use haft_tool::{SpanId, TraceContext};

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// Several texts.
    Texts(Vec<String>),
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<f64> for AttributeValue {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<bool> for AttributeValue {
    fn from(is: bool) -> Self {
        Self::Bool(is)
    }
}

/// Attributes with unique names, in the order in which they were added.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attributes(Vec<(Cow<'static, str>, AttributeValue)>);

impl Attributes {
    /// Sets an attribute.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<AttributeValue>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Sets an attribute if there is a value.
    pub fn set_some(&mut self, name: &'static str, value: Option<impl Into<AttributeValue>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&AttributeValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The value of an attribute that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            AttributeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of an attribute that is a whole number.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            AttributeValue::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The attributes among `names`, in that order.
    #[must_use]
    pub fn only(&self, names: &[&'static str]) -> Self {
        let found = names.iter().filter_map(|name| Some((Cow::Borrowed(*name), self.get(name)?.clone())));
        Self(found.collect())
    }

    /// All attributes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AttributeValue)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }

    /// About how many bytes they take.
    fn weight(&self) -> usize {
        let of = |value: &AttributeValue| match value {
            AttributeValue::Text(text) => text.len(),
            AttributeValue::Texts(texts) => texts.iter().map(String::len).sum(),
            AttributeValue::Int(_) | AttributeValue::Float(_) | AttributeValue::Bool(_) => 8,
        };
        self.0.iter().map(|(name, value)| name.len() + of(value) + 32).sum()
    }
}

/// The role of a span in the trace. The numbers are those of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work of this program.
    Internal = 1,
    /// A request to another program.
    Client = 3,
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedSpan {
    /// Its ids.
    pub context: TraceContext,
    /// Its parent.
    pub parent: Option<SpanId>,
    /// What was done, one of a few values.
    pub name: String,
    /// Its role in the trace.
    pub kind: SpanKind,
    /// When it began, in nanoseconds since 1970.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What is known about it.
    pub attributes: Attributes,
    /// The kind of the error, if it failed.
    pub error: Option<String>,
}

impl ExportedSpan {
    /// How long it took, in seconds.
    pub fn seconds(&self) -> f64 {
        std::time::Duration::from_nanos(self.end_ns.saturating_sub(self.start_ns)).as_secs_f64()
    }

    /// About how many bytes it takes.
    pub(crate) fn weight(&self) -> usize {
        256 + self.name.len() + self.context.state.len() + self.attributes.weight()
    }
}

/// The sender of telemetry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TelemetryResource {
    /// The name of the service, its version, and what the user adds.
    pub attributes: Attributes,
}

/// Milliseconds as nanoseconds.
pub(crate) const fn ms_to_ns(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}
