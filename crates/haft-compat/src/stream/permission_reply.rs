//! The program's answer to the question whether a call may run.

use serde_json::{Map, Value};

use crate::hooks::PermissionUpdate;

/// The answer to `can_use_tool`.
#[derive(Debug, Clone, PartialEq)]
pub enum PermissionReply {
    /// It may run.
    Allow {
        /// With these arguments instead of its own.
        updated_input: Option<Map<String, Value>>,
        /// What is allowed from now on.
        updates: Vec<PermissionUpdate>,
        /// How many further changes could not be read.
        unread_count: usize,
    },
    /// It may not.
    Deny {
        /// Why.
        message: String,
        /// Whether the turn ends, too.
        interrupt: bool,
    },
}

impl PermissionReply {
    /// Reads an answer. Anything but a clear permission is a denial.
    pub fn read(answer: &Value) -> Self {
        let behavior = answer.get("behavior").and_then(Value::as_str).unwrap_or_default();
        let deny = |message: &str| Self::Deny { message: message.to_owned(), interrupt: false };
        match behavior {
            "allow" => {
                let updated_input = match answer.get("updatedInput") {
                    None | Some(Value::Null) => None,
                    Some(Value::Object(input)) => Some(input.clone()),
                    Some(_) => return deny("The host's updatedInput is not an object."),
                };
                let given = answer.get("updatedPermissions").and_then(Value::as_array);
                let given = given.map(Vec::as_slice).unwrap_or_default();
                let updates: Vec<PermissionUpdate> =
                    given.iter().filter_map(|update| serde_json::from_value(update.clone()).ok()).collect();
                let unread_count = given.len() - updates.len();
                Self::Allow { updated_input, updates, unread_count }
            }
            "deny" => Self::Deny {
                message: answer.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
                interrupt: answer.get("interrupt").and_then(Value::as_bool).unwrap_or(false),
            },
            _ => deny("The host's answer says neither allow nor deny."),
        }
    }

    /// The call that the answer names, if it names one.
    pub fn call_of(answer: &Value) -> Option<&str> {
        answer.get("toolUseID").or_else(|| answer.get("tool_use_id")).and_then(Value::as_str)
    }
}
