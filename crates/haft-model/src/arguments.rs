//! The arguments of a call as models write them.

use haft_tool::Arguments;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallArguments {
    /// A JSON object.
    Object(Map<String, Value>),
    /// Text that is no JSON object. The model gets an error as the call's result.
    Invalid(String),
}

impl CallArguments {
    /// Reads what a model wrote. The second value says how it was interpreted, if it was no object.
    ///
    /// Nothing and `null` mean no arguments; an object inside a JSON string is taken out of it.
    pub fn parse(text: &str) -> (Self, Option<String>) {
        if text.trim().is_empty() {
            return (Self::Object(Map::new()), Some("The arguments were empty; {} was used.".to_owned()));
        }
        match serde_json::from_str(text) {
            Ok(value) => Self::from_value(value),
            Err(_) => (Self::Invalid(text.to_owned()), None),
        }
    }

    /// [`CallArguments::parse`] for a value that is parsed already.
    pub fn from_value(value: Value) -> (Self, Option<String>) {
        match value {
            Value::Object(object) => (Self::Object(object), None),
            Value::Null => {
                (Self::Object(Map::new()), Some("The arguments were null; {} was used.".to_owned()))
            }
            Value::String(inner) => match serde_json::from_str(&inner) {
                Ok(Value::Object(object)) => (
                    Self::Object(object),
                    Some("The arguments were a JSON string; it was parsed.".to_owned()),
                ),
                _ => (Self::Invalid(Value::String(inner).to_string()), None),
            },
            other => (Self::Invalid(other.to_string()), None),
        }
    }

    /// The arguments as a JSON object. Invalid text becomes the only member of one, because servers refuse a history in which
    /// arguments are anything else.
    pub(crate) fn to_object(&self) -> Value {
        match self {
            Self::Object(object) => Value::Object(object.clone()),
            Self::Invalid(text) => json!({"invalid_arguments": text}),
        }
    }

    /// The JSON text of [`CallArguments::to_object`].
    pub(crate) fn to_text(&self) -> String {
        self.to_object().to_string()
    }
}

impl From<CallArguments> for Arguments {
    fn from(arguments: CallArguments) -> Self {
        match arguments {
            CallArguments::Object(object) => Self::from(object),
            CallArguments::Invalid(text) => Self::Raw(text),
        }
    }
}
