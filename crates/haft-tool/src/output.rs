//! What a tool returns, before and after `bound`.

use serde::Serialize;
use serde_json::Value;

use crate::{ErrorKind, ToolError};

/// Text whose middle may be missing, because it never fitted into memory.
///
/// Because the gap is explicit, `bound` can cut once and with true counts, instead of cutting text that was already cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Text {
    /// The beginning; the whole text if nothing is missing.
    pub head: String,
    /// How many bytes are missing between head and tail.
    #[serde(skip_serializing_if = "is_zero")]
    pub missing_bytes: u64,
    /// The end, if something is missing before it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Text {
    /// How many bytes the text had before anything went missing.
    pub fn total_bytes(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.missing_bytes
    }

    /// The whole text, with a notice where bytes are missing.
    pub fn with_gap_notice(&self) -> String {
        if self.missing_bytes == 0 {
            return format!("{}{}", self.head, self.tail);
        }
        format!("{}\n[... {} bytes were not kept ...]\n{}", self.head, self.missing_bytes, self.tail)
    }

    /// This text with another one after it, on a line of its own.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        let end = if self.missing_bytes > 0 { &mut self.tail } else { &mut self.head };
        if !end.is_empty() && !end.ends_with('\n') && next.total_bytes() > 0 {
            end.push('\n');
        }
        if next.missing_bytes > 0 && self.missing_bytes > 0 {
            // There is only one gap, so what lies between two of them becomes part of it.
            let between = (self.tail.len() + next.head.len()) as u64;
            let missing_bytes = self.missing_bytes + between + next.missing_bytes;
            return Self { head: self.head, missing_bytes, tail: next.tail };
        }
        end.push_str(&next.head);
        if next.missing_bytes > 0 {
            (self.missing_bytes, self.tail) = (next.missing_bytes, next.tail);
        }
        self
    }
}

impl From<String> for Text {
    fn from(head: String) -> Self {
        Self { head, ..Self::default() }
    }
}

impl From<&str> for Text {
    fn from(head: &str) -> Self {
        Self::from(head.to_owned())
    }
}

/// One piece of a result. Exhaustive, so that no provider format can forget a new kind of piece.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text for the model.
    Text {
        /// The text.
        text: Text,
    },
    /// An image for the model.
    Image {
        /// For example `image/png`.
        media_type: String,
        /// The image's bytes in base64.
        data: String,
    },
    /// A piece that only MCP has: audio, a resource, a link to one.
    Block {
        /// The text for other formats.
        instead: String,
        /// The piece in MCP's form.
        block: Value,
    },
}

/// What the caller sees of a result.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Output {
    /// The pieces, in order.
    pub content: Vec<Content>,
    /// The result for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Whether `structured` is the whole result instead of an addition to the content. Set by the runtime.
    #[serde(skip)]
    pub whole: bool,
    /// The kind of failure, if the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
}

impl Output {
    /// A result of one text.
    pub fn text(text: impl Into<Text>) -> Self {
        Self { content: vec![Content::Text { text: text.into() }], ..Self::default() }
    }

    /// A result of these pieces.
    pub fn pieces(content: Vec<Content>) -> Self {
        Self { content, ..Self::default() }
    }

    /// A result of one JSON value: its compact text for the model, the value for programs.
    pub fn json(value: Value) -> Self {
        Self::text(value.to_string()).with_structured(value)
    }

    /// The same result with a value for programs.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    /// The same result, marked as a failure of `kind`.
    #[must_use]
    pub fn failed(mut self, kind: ErrorKind) -> Self {
        self.error_kind = Some(kind);
        self
    }

    /// Whether the call failed.
    pub fn is_error(&self) -> bool {
        self.error_kind.is_some()
    }

    /// All pieces as one text, for formats that have only text.
    pub fn as_text(&self) -> String {
        let mut all = String::new();
        for piece in &self.content {
            match piece {
                Content::Text { text } => {
                    all.push_str(&text.head);
                    all.push_str(&text.tail);
                }
                Content::Image { media_type, data } => {
                    let bytes = data.len() / 4 * 3;
                    all.push_str(&format!("[{media_type}, about {bytes} bytes]"));
                }
                Content::Block { instead, .. } => all.push_str(instead),
            }
        }
        all
    }

    /// Whether all pieces are text.
    pub fn is_text(&self) -> bool {
        self.content.iter().all(|piece| matches!(piece, Content::Text { .. }))
    }
}

impl From<ToolError> for Output {
    fn from(error: ToolError) -> Self {
        Self { structured: error.details, ..Self::text(error.message).failed(error.kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(head: &str, missing_bytes: u64, tail: &str) -> Text {
        Text { head: head.into(), missing_bytes, tail: tail.into() }
    }

    #[test]
    fn one_text_after_another_loses_no_count() {
        assert_eq!(text("a", 0, "").then(text("b", 0, "")), text("a\nb", 0, ""));
        assert_eq!(text("a\n", 0, "").then(text("b", 5, "c")), text("a\nb", 5, "c"));
        assert_eq!(text("a", 5, "b").then(text("c", 0, "")), text("a", 5, "b\nc"));
        assert_eq!(text("a", 5, "b").then(text("c", 7, "d")), text("a", 15, "d"));
        assert_eq!(text("", 0, "").then(text("b", 0, "")), text("b", 0, ""));
        assert_eq!(text("a", 0, "").then(text("", 0, "")), text("a", 0, ""));
    }
}
