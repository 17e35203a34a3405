//! Events as text: readable JSON, also of arguments that are nested too deep to be read back.
//!
//! A long list of changes is kept beside its event, so that listing calls does not mean reading it.

use std::borrow::Cow;

use haft_tool::{Change, Hash, Receipt, ToolError, Value};
use serde::{Deserialize, Serialize};

use crate::Event;

/// `serde_json` reads no deeper than 128 levels; the event itself needs a few of them.
const DEEPEST_INPUT: usize = 120;
/// How many changes stand in the event itself.
const MOST_INSIDE: usize = 200;
/// How the text of an event begins whose changes stand elsewhere.
const ELSEWHERE: &str = "{\"changes_in\":";

/// An event as text.
pub(crate) struct Encoded {
    pub(crate) body: String,
    /// The changes, where they are too many to stand in the event, and the hash by which it names them.
    pub(crate) changes: Option<(blake3::Hash, Vec<u8>)>,
}

#[derive(Serialize)]
struct WithChangesElsewhere<'a> {
    changes_in: &'a str,
    #[serde(flatten)]
    event: Event<'a>,
}

#[derive(Deserialize)]
struct ChangesIn {
    changes_in: Hash,
}

pub(crate) fn encode(event: &Event<'_>) -> Result<Encoded, ToolError> {
    let receipt = event.receipt();
    let (deep, long) = (deeper_than(&receipt.input, DEEPEST_INPUT), receipt.changes.len() > MOST_INSIDE);
    if !deep && !long {
        return Ok(Encoded { body: serde_json::to_string(event)?, changes: None });
    }
    let changes = if long { Vec::new() } else { receipt.changes.clone() };
    let input = if deep { Value::String(receipt.input.to_string()) } else { receipt.input.clone() };
    let inside = event.with(Cow::Owned(slim(receipt, input, changes)));
    if !long {
        return Ok(Encoded { body: serde_json::to_string(&inside)?, changes: None });
    }
    let list = serde_json::to_vec(&receipt.changes)?;
    let hash = blake3::hash(&list);
    let outside = WithChangesElsewhere { changes_in: &hash.to_hex(), event: inside };
    Ok(Encoded { body: serde_json::to_string(&outside)?, changes: Some((hash, list)) })
}

/// The receipt with another input and other changes; the list it has is never copied.
fn slim(receipt: &Receipt, input: Value, changes: Vec<Change>) -> Receipt {
    Receipt {
        input,
        changes,
        session: receipt.session.clone(),
        call_id: receipt.call_id.clone(),
        tool: receipt.tool.clone(),
        workspace: receipt.workspace.clone(),
        effects: receipt.effects.clone(),
        decision: receipt.decision.clone(),
        error: receipt.error.clone(),
        reversible: receipt.reversible.clone(),
        undoes: receipt.undoes.clone(),
        full_output: receipt.full_output.clone(),
        enforcement: receipt.enforcement.clone(),
        denials: receipt.denials.clone(),
        notes: receipt.notes.clone(),
        id: receipt.id,
        state: receipt.state,
        error_kind: receipt.error_kind,
        started_at: receipt.started_at,
        duration_us: receipt.duration_us,
    }
}

/// The event, and the hash of its changes where they stand elsewhere.
pub(crate) fn decode(text: &str) -> Result<(Event<'static>, Option<Hash>), ToolError> {
    let elsewhere = text.starts_with(ELSEWHERE);
    let changes = elsewhere.then(|| serde_json::from_str::<ChangesIn>(text)).transpose()?;
    Ok((serde_json::from_str(text)?, changes.map(|changes| changes.changes_in)))
}

fn deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| deeper_than(item, levels - 1)),
        Value::Object(fields) => levels == 0 || fields.values().any(|field| deeper_than(field, levels - 1)),
        _ => false,
    }
}
