//! A value that is used and never shown.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MASK: &str = "***";

/// A key or token: read from settings, shown as `***` wherever it is printed or written.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret with this value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The secret itself or, if it is `${NAME}`, the value of that variable.
    pub fn resolve(&self, var: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        match self.0.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => var(name).map(Self),
            None => Some(self.clone()),
        }
    }

    /// `text` with the value covered, for text from elsewhere that may repeat it.
    pub fn cover(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, MASK) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_used_but_never_shown() {
        let secret: Secret = serde_json::from_str("\"xoxb-1\"").unwrap();
        assert_eq!(secret.expose(), "xoxb-1");
        assert_eq!(format!("{secret:?} {}", serde_json::to_string(&secret).unwrap()), "*** \"***\"");
        assert_eq!(secret.cover("bad token xoxb-1!"), "bad token ***!");
    }

    #[test]
    fn a_secret_may_name_a_variable() {
        let var = |name: &str| (name == "TOKEN").then(|| "t".to_owned());
        assert_eq!(Secret::new("${TOKEN}").resolve(&var), Some(Secret::new("t")));
        assert_eq!(Secret::new("${OTHER}").resolve(&var), None);
        assert_eq!(Secret::new("plain").resolve(&var), Some(Secret::new("plain")));
    }
}
