//! The query of a request.

use std::path::PathBuf;

use super::error::ApiError;

/// The parameters of a URL.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        Self(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// The value of a parameter, unless it is missing or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A parameter that is a number, if it is given.
    pub(crate) fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.parse();
        number.map(Some).map_err(|_| ApiError::bad_request(format!("{name}: {value:?} is not a number.")))
    }

    /// How many entries are wanted: `limit` or else the default, at most `max`.
    pub(crate) fn limit(&self, default: usize, max: usize) -> Result<usize, ApiError> {
        Ok(self.number("limit")?.unwrap_or(default).clamp(1, max))
    }

    /// Whether a parameter is set to 1 or true.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        matches!(self.get(name), Some("1" | "true"))
    }

    /// A parameter that is an absolute path.
    pub(crate) fn path(&self, name: &str) -> Result<Option<PathBuf>, ApiError> {
        let path = self.get(name).map(haft_tool::path_from_text);
        match path {
            Some(path) if !path.is_absolute() => {
                Err(ApiError::bad_request(format!("{name}: {} is not an absolute path.", path.display())))
            }
            path => Ok(path),
        }
    }
}
