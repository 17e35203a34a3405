//! Spans that wait to be sent.

use std::collections::VecDeque;

use crate::span::ExportedSpan;

/// How many spans one request has at most.
const MAX_BATCH_SPANS: usize = 512;
const MAX_BATCH_BYTES: usize = 4 << 20;
/// How much is kept while the collector does not answer. Beyond that the oldest spans are dropped.
const MAX_QUEUED_BYTES: usize = 16 << 20;

/// A queue whose memory is bounded.
#[derive(Default)]
pub(crate) struct SpanQueue {
    spans: VecDeque<ExportedSpan>,
    bytes: usize,
    /// How many spans were dropped.
    pub(crate) dropped: u64,
}

impl SpanQueue {
    pub(crate) fn push(&mut self, span: ExportedSpan) {
        self.bytes += span.weight();
        self.spans.push_back(span);
        while self.bytes > MAX_QUEUED_BYTES {
            let Some(oldest) = self.spans.pop_front() else { break };
            self.bytes -= oldest.weight();
            self.dropped += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub(crate) fn len(&self) -> u64 {
        self.spans.len() as u64
    }

    /// Whether there is enough for a request.
    pub(crate) fn is_full(&self) -> bool {
        self.spans.len() >= MAX_BATCH_SPANS || self.bytes >= MAX_BATCH_BYTES
    }

    /// The oldest spans, for one request. They stay until they are removed.
    pub(crate) fn batch(&mut self) -> &[ExportedSpan] {
        let all = &*self.spans.make_contiguous();
        let mut bytes = 0;
        let fits = |span: &&ExportedSpan| {
            bytes += span.weight();
            bytes <= MAX_BATCH_BYTES
        };
        // At least one, however large it is.
        let count = all.iter().take(MAX_BATCH_SPANS).take_while(fits).count().max(1);
        &all[..count.min(all.len())]
    }

    /// Removes the oldest spans.
    pub(crate) fn remove(&mut self, count: usize) {
        for span in self.spans.drain(..count.min(self.spans.len())) {
            self.bytes -= span.weight();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::{Attributes, SpanKind};
    use haft_tool::TraceContext;

    fn span(text_bytes: usize) -> ExportedSpan {
        let mut attributes = Attributes::default();
        attributes.set("text", "x".repeat(text_bytes));
        ExportedSpan {
            context: TraceContext::derived(None, &["t"]),
            parent: None,
            name: "n".to_owned(),
            kind: SpanKind::Internal,
            start_ns: 0,
            end_ns: 0,
            attributes,
            error: None,
        }
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_spans_are_dropped() {
        let mut queue = SpanQueue::default();
        for _ in 0..100 {
            queue.push(span(1 << 20));
        }
        assert!(queue.bytes <= MAX_QUEUED_BYTES);
        assert_eq!(queue.len() + queue.dropped, 100);
        assert_eq!(queue.batch().len(), 3);
        queue.remove(3);
        while !queue.is_empty() {
            queue.remove(1);
        }
        assert_eq!(queue.bytes, 0);
        queue.push(span(MAX_BATCH_BYTES + 1));
        assert_eq!(queue.batch().len(), 1);
    }
}
