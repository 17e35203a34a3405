//! Several changes of one settings file, and how to take them back when the file has changed since.

use haft_tool::Value;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{json as jsonc, toml, yaml};

/// The format of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingsFormat {
    /// With comments and trailing commas where the program accepts them.
    Json,
    Toml,
    Yaml,
}

/// One change of a settings file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SettingChange {
    /// Sets a value.
    Set { path: Vec<String>, value: Value },
    /// Adds values to a list, unless it has them.
    Add { path: Vec<String>, values: Vec<Value> },
}

impl SettingChange {
    pub(crate) fn set(path: &[&str], value: Value) -> Self {
        Self::Set { path: path.iter().map(ToString::to_string).collect(), value }
    }

    pub(crate) fn add(path: &[&str], values: &[&str]) -> Self {
        let path = path.iter().map(ToString::to_string).collect();
        Self::Add { path, values: values.iter().map(|value| json!(value)).collect() }
    }
}

/// How one change is reverted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RevertStep {
    path: Vec<String>,
    /// The value before the change.
    old: Option<Value>,
    /// The values that were added to a list; `None` if the value was set.
    added: Option<Vec<Value>>,
    /// How many of the tables on the path were there before.
    tables: usize,
}

impl RevertStep {
    /// Takes back an entry of Haft's that was there before as well.
    pub(crate) fn forget_old(&mut self) {
        self.old = None;
    }
}

impl SettingsFormat {
    /// Returns the text with the changes, and how to take them back.
    pub(crate) fn apply(
        self,
        text: &str,
        changes: &[SettingChange],
    ) -> Result<(String, Vec<RevertStep>), String> {
        let (mut text, mut steps) = (text.to_owned(), Vec::new());
        for change in changes {
            let (SettingChange::Set { path, .. } | SettingChange::Add { path, .. }) = change;
            // Values of YAML are not read: an entry of Haft's name is Haft's own.
            let old = if self == Self::Yaml { None } else { self.find(&text, path)? };
            let tables = (1..path.len()).take_while(|count| self.has_table(&text, &path[..*count])).count();
            let (value, added) = match change {
                SettingChange::Set { value, .. } => (value.clone(), None),
                SettingChange::Add { values, .. } => {
                    let mut list = match &old {
                        None => Vec::new(),
                        Some(Value::Array(list)) => list.clone(),
                        Some(_) => return Err(format!("{} is not a list", path.join("."))),
                    };
                    let added: Vec<Value> =
                        values.iter().filter(|value| !list.contains(value)).cloned().collect();
                    list.extend(added.iter().cloned());
                    (Value::Array(list), Some(added))
                }
            };
            if old.as_ref() != Some(&value) {
                text = self.set(&text, path, &value)?;
            }
            steps.push(RevertStep { path: path.clone(), old, added, tables });
        }
        Ok((text, steps))
    }

    /// Returns the text without the changes; what others have changed since stays.
    pub(crate) fn revert(self, text: &str, steps: &[RevertStep]) -> Result<String, String> {
        let mut text = text.to_owned();
        for RevertStep { path, old, added, tables } in steps.iter().rev() {
            let Some(now) = self.find(&text, path)? else { continue };
            let restored = match (added, now) {
                (None, _) => old.clone(),
                (Some(added), Value::Array(list)) => {
                    let left: Vec<Value> = list.into_iter().filter(|value| !added.contains(value)).collect();
                    (old.is_some() || !left.is_empty()).then_some(Value::Array(left))
                }
                (Some(_), now) => Some(now),
            };
            text = match restored {
                Some(value) => self.set(&text, path, &value)?,
                None => self.without(&text, path, *tables)?,
            };
        }
        Ok(text)
    }

    /// Removes a value, and the tables above it that were created for it and hold nothing else.
    fn without(self, text: &str, path: &[String], tables: usize) -> Result<String, String> {
        let mut text = self.remove(text, path)?.unwrap_or_else(|| text.to_owned());
        for count in (tables + 1..path.len()).rev() {
            let table = &path[..count];
            if self.find(&text, table)? != Some(json!({})) {
                break;
            }
            text = self.remove(&text, table)?.unwrap_or(text);
        }
        Ok(text)
    }

    /// The value at a path; of YAML only whether there is one.
    pub(crate) fn find(self, text: &str, path: &[String]) -> Result<Option<Value>, String> {
        let all = match self {
            Self::Json => jsonc::read(text)?.unwrap_or_default(),
            Self::Toml => toml::read(text)?,
            Self::Yaml => return Ok(self.remove(text, path)?.map(|_| Value::Null)),
        };
        Ok(path.iter().try_fold(&all, |value, name| value.get(name)).cloned())
    }

    fn has_table(self, text: &str, path: &[String]) -> bool {
        self != Self::Yaml
            && self.find(text, path).is_ok_and(|found| found.is_some_and(|value| value.is_object()))
    }

    fn set(self, text: &str, path: &[String], value: &Value) -> Result<String, String> {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match (self, names.as_slice(), value) {
            (Self::Json, names, value) => jsonc::put(text, names, value),
            (Self::Toml, names, value) => toml::put(text, names, value),
            (Self::Yaml, [block, name], Value::Object(entry)) => yaml::put(text, block, name, entry),
            (Self::Yaml, ..) => Err(super::NOT_UNDERSTOOD.to_owned()),
        }
    }

    /// Returns the text without the value at a path; `None` if there is none.
    pub(crate) fn remove(self, text: &str, path: &[String]) -> Result<Option<String>, String> {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match (self, names.as_slice()) {
            (Self::Json, names) => jsonc::remove(text, names),
            (Self::Toml, names) => toml::remove(text, names),
            (Self::Yaml, [block, name]) => yaml::remove(text, block, name),
            (Self::Yaml, _) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes() -> Vec<SettingChange> {
        vec![
            SettingChange::set(&["mcpServers", "haft"], json!({"command": "/x/haft", "args": ["mcp"]})),
            SettingChange::add(&["permissions", "deny"], &["Bash", "Edit"]),
            SettingChange::set(&["features", "shell_tool"], json!(false)),
        ]
    }

    #[test]
    fn reverting_restores_what_was_there() {
        for (format, text) in [
            (SettingsFormat::Json, "{}"),
            (
                SettingsFormat::Json,
                "{\n  \"permissions\": {\n    \"deny\": [\n      \"Edit\"\n    ]\n  }\n}\n",
            ),
            (SettingsFormat::Json, "{\n  \"features\": {\n    \"shell_tool\": true\n  }\n}\n"),
            (SettingsFormat::Toml, ""),
            (SettingsFormat::Toml, "model = \"m\"\n\n[features]\nshell_tool = true # mine\nother = 1\n"),
            (SettingsFormat::Toml, "[permissions]\ndeny = [\"Edit\"]\n"),
        ] {
            let (with, steps) = format.apply(text, &changes()).unwrap();
            let stored = serde_json::to_string(&steps).unwrap();
            let steps: Vec<RevertStep> = serde_json::from_str(&stored).unwrap();
            assert_ne!(with, text);
            assert_eq!(format.apply(&with, &changes()).unwrap().0, with, "a second time changes nothing");
            let without = format.revert(&with, &steps).unwrap();
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(bare(&without), bare(text), "{with}");
        }
    }

    #[test]
    fn what_others_changed_since_stays() {
        let (with, steps) = SettingsFormat::Json.apply("{}", &changes()).unwrap();
        let with = jsonc::put(&with, &["permissions", "deny"], &json!(["Bash", "WebFetch", "Edit"])).unwrap();
        let with = jsonc::put(&with, &["mcpServers", "other"], &json!({"command": "o"})).unwrap();
        let with = jsonc::put(&with, &["theme"], &json!("dark")).unwrap();
        let without = SettingsFormat::Json.revert(&with, &steps).unwrap();
        let left = jsonc::read(&without).unwrap().unwrap();
        let expected = json!({
            "mcpServers": {"other": {"command": "o"}}, "permissions": {"deny": ["WebFetch"]}, "theme": "dark",
        });
        assert_eq!(left, expected);
        assert_eq!(SettingsFormat::Json.revert("{\"a\": 1}", &steps).unwrap(), "{\"a\": 1}");
    }

    #[test]
    fn a_value_of_another_kind_is_refused() {
        let changes = [SettingChange::add(&["permissions", "deny"], &["Bash"])];
        assert!(SettingsFormat::Json.apply("{\"permissions\": {\"deny\": \"all\"}}", &changes).is_err());
        assert!(SettingsFormat::Json.apply("{\"permissions\": 1}", &changes).is_err());
    }
}
