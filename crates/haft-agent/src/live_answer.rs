//! The answer that is being written, for other processes that show it.

use haft_ledger::{Ledger, LiveSource, LiveWriter};
use haft_model::ModelEvent;
use haft_tool::{LiveOutput as _, ToolError};

/// Writes the text of one answer while it arrives. Dropping it removes the text: the answer is then an event of the run.
pub(crate) struct LiveAnswer<'a> {
    ledger: Option<&'a Ledger>,
    session: &'a str,
    writer: Option<LiveWriter>,
}

impl<'a> LiveAnswer<'a> {
    pub(crate) fn new(ledger: Option<&'a Ledger>, session: &'a str) -> Self {
        Self { ledger, session, writer: None }
    }

    /// Something of the answer arrived.
    pub(crate) fn on_event(&mut self, event: &ModelEvent) {
        match event {
            // The run does not depend on being watched; its log has the answer in the end.
            ModelEvent::Text { delta } if self.write(delta).is_err() => {
                (self.ledger, self.writer) = (None, None);
            }
            ModelEvent::Restarted => self.writer = None,
            _ => {}
        }
    }

    fn write(&mut self, delta: &str) -> Result<(), ToolError> {
        let Some(ledger) = self.ledger else { return Ok(()) };
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(ledger.begin_live_text(LiveSource::Run(self.session))?),
        };
        writer.push(0, delta.as_bytes())
    }
}
