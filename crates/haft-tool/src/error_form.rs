//! How a dialect writes errors.

use serde_json::{Value, json};

use crate::ErrorKind;

/// How the errors of a dialect are written for the model.
#[derive(Debug, Clone, Copy, Default)]
pub enum ErrorForm {
    /// The message alone.
    #[default]
    Message,
    /// The dialect's name of the kind, a colon and the message.
    Named(fn(ErrorKind) -> &'static str),
    /// A JSON object: the message as `error`, the dialect's name of the kind as `kind`, and the details.
    Json(fn(ErrorKind) -> &'static str),
}

impl ErrorForm {
    /// The text of an error.
    pub fn write(self, kind: ErrorKind, message: String, details: Option<&Value>) -> String {
        match self {
            Self::Message => message,
            Self::Named(name) => format!("{}: {message}", name(kind)),
            Self::Json(name) => {
                let mut object = json!({"error": message, "kind": name(kind)});
                if let (Value::Object(object), Some(Value::Object(details))) = (&mut object, details) {
                    for (field, value) in details {
                        object.entry(field).or_insert_with(|| value.clone());
                    }
                }
                object.to_string()
            }
        }
    }
}
