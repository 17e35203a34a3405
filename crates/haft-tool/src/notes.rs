//! What a session keeps between its calls.

use serde_json::Value;

use crate::ToolError;

/// What a session keeps between its calls, by name: for example its list of todos.
///
/// A note that a call takes is on the call's receipt, and later calls of the session find the newest.
pub trait Notes: Send + Sync {
    /// The note of that name, if the session has one.
    fn note(&self, name: &str) -> Result<Option<Value>, ToolError>;
    /// Takes a note. It holds once the call has ended well.
    fn take_note(&self, name: &str, note: Value) -> Result<(), ToolError>;
}

/// A World whose calls share nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoNotes;

impl Notes for NoNotes {
    fn note(&self, _name: &str) -> Result<Option<Value>, ToolError> {
        Ok(None)
    }

    fn take_note(&self, _name: &str, _note: Value) -> Result<(), ToolError> {
        Ok(())
    }
}
