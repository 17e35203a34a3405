//! Sends texts while they are written: the output of running calls and the answers of models.

use std::collections::HashMap;

use bytes::Bytes;
use haft_ledger::{FeedEntry, Ledger, LiveSource};
use haft_tool::{ToolError, json};

use super::render::transient;
use crate::api::live_tail;

/// Bytes of a text sent at a time. If it grows faster, clients get its end and request the rest.
const MAX_PART_BYTES: usize = 32 << 10;

/// How far each text has been sent.
#[derive(Default)]
pub(super) struct LiveTexts {
    calls: HashMap<i64, u64>,
    runs: HashMap<String, u64>,
}

impl LiveTexts {
    /// Forgets the answers of these entries' sessions, because they are complete.
    pub(super) fn forget_answers<'a>(&mut self, entries: impl Iterator<Item = &'a FeedEntry>) {
        for entry in entries {
            self.runs.remove(&entry.session);
        }
    }

    /// Sends what was added since the last time.
    pub(super) fn poll(&mut self, ledger: &Ledger, mut send: impl FnMut(Bytes)) -> Result<(), ToolError> {
        let calls = ledger.running_call_ids()?;
        self.calls.retain(|id, _| calls.contains(id));
        for id in calls {
            let next = self.calls.entry(id).or_insert(0);
            if let Some(part) = live_tail(ledger, LiveSource::Call(id), *next, MAX_PART_BYTES)
                && !part.text.is_empty()
            {
                *next = part.next;
                send(transient(
                    "output",
                    &json!({ "call": id, "from": part.from, "next": part.next, "text": part.text }),
                ));
            }
        }
        let runs: Vec<String> = ledger.driven_runs()?.into_iter().map(|run| run.session).collect();
        self.runs.retain(|session, _| runs.contains(session));
        for session in runs {
            let next = self.runs.entry(session.clone()).or_insert(0);
            let Some(part) = live_tail(ledger, LiveSource::Run(&session), *next, MAX_PART_BYTES) else {
                // The answer is complete, so the next one begins at 0.
                *next = 0;
                continue;
            };
            if !part.text.is_empty() {
                *next = part.next;
                send(transient(
                    "answer",
                    &json!({ "session": session, "from": part.from, "next": part.next, "text": part.text }),
                ));
            }
        }
        Ok(())
    }
}
