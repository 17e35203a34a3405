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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

impl SettingsFormat {
    /// Returns the text with the changes.
    pub(crate) fn apply(self, text: &str, changes: &[SettingChange]) -> Result<String, String> {
        let mut text = text.to_owned();
        for change in changes {
            text = match change {
                SettingChange::Set { path, value } => self.set(&text, path, value)?,
                SettingChange::Add { path, values } => {
                    let old = self.list(&text, path)?;
                    let missing = |value: &&Value| !old.as_ref().is_some_and(|list| list.contains(value));
                    let new: Vec<Value> = values.iter().filter(missing).cloned().collect();
                    match (self, old) {
                        (Self::Json, Some(_)) => jsonc::append(&text, &names(path), &new)?,
                        (_, old) => {
                            let all: Value = old.into_iter().flatten().chain(new).collect();
                            self.set(&text, path, &all)?
                        }
                    }
                }
            };
        }
        Ok(text)
    }

    /// Returns the text without the changes, which were made to `base`. What is in `kept` stays, and so does what others have
    /// changed since.
    pub(crate) fn revert(
        self,
        text: &str,
        changes: &[SettingChange],
        base: &str,
        kept: &[SettingChange],
    ) -> Result<String, String> {
        let mut text = text.to_owned();
        for change in changes.iter().rev() {
            text = match change {
                SettingChange::Set { path, value } => {
                    let is_kept = |kept: &SettingChange| matches!(kept, SettingChange::Set { path: other, .. } if other == path);
                    let now = self.find(&text, path)?;
                    // Users add to an entry, which is Haft's all the same; a single value that is another one is theirs.
                    let is_haft_s = now.is_some_and(|now| value.is_object() || now == *value);
                    match self.find(base, path)? {
                        _ if !is_haft_s || kept.iter().any(is_kept) => text,
                        Some(old) => match (self, path.as_slice()) {
                            (Self::Yaml, [block, name]) => yaml::copy(&text, base, block, name)?,
                            _ => self.set(&text, path, &old)?,
                        },
                        None => self.without(&text, path, base)?,
                    }
                }
                SettingChange::Add { path, values } => {
                    let in_base = self.list(base, path)?;
                    let stays = |value: &Value| {
                        let is_kept = |kept: &SettingChange| matches!(kept, SettingChange::Add { path: other, values } if other == path && values.contains(value));
                        in_base.as_ref().is_some_and(|list| list.contains(value)) || kept.iter().any(is_kept)
                    };
                    let added: Vec<Value> = values.iter().filter(|value| !stays(value)).cloned().collect();
                    match self.find(&text, path)? {
                        Some(Value::Array(now)) if now.iter().any(|value| added.contains(value)) => {
                            let left: Vec<Value> =
                                now.into_iter().filter(|value| !added.contains(value)).collect();
                            match self {
                                _ if left.is_empty() && in_base.is_none() => {
                                    self.without(&text, path, base)?
                                }
                                Self::Json => jsonc::remove_items(&text, &names(path), &added)?,
                                _ => self.set(&text, path, &Value::Array(left))?,
                            }
                        }
                        _ => text,
                    }
                }
            };
        }
        Ok(text)
    }

    /// Whether one of the changes, which were made to `base`, is in the text.
    pub(crate) fn has_any(self, text: &str, changes: &[SettingChange], base: &str) -> Result<bool, String> {
        for change in changes {
            let is_there = match change {
                SettingChange::Set { path, value } => {
                    let (old, now) = (self.find(base, path)?, self.find(text, path)?);
                    now != old && now.is_some_and(|now| value.is_object() || now == *value)
                }
                SettingChange::Add { path, values } => {
                    let (old, now) = (self.list(base, path)?.unwrap_or_default(), self.find(text, path)?);
                    let now = now.as_ref().and_then(Value::as_array);
                    now.is_some_and(|now| {
                        values.iter().any(|value| now.contains(value) && !old.contains(value))
                    })
                }
            };
            if is_there {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes a value, and the tables above it that are not in `base` and hold nothing else.
    fn without(self, text: &str, path: &[String], base: &str) -> Result<String, String> {
        let mut text = self.remove(text, path)?.unwrap_or_else(|| text.to_owned());
        for count in (1..path.len()).rev() {
            let table = &path[..count];
            if self.find(base, table)?.is_some() || self.find(&text, table)? != Some(json!({})) {
                break;
            }
            text = self.remove(&text, table)?.unwrap_or(text);
        }
        Ok(text)
    }

    /// The value at a path; of YAML its text.
    pub(crate) fn find(self, text: &str, path: &[String]) -> Result<Option<Value>, String> {
        let all = match (self, path) {
            (Self::Json, _) => jsonc::read(text)?.unwrap_or_default(),
            (Self::Toml, _) => toml::read(text)?,
            (Self::Yaml, [block, name]) => return Ok(yaml::find(text, block, name)?.map(Value::from)),
            (Self::Yaml, _) => return Ok(None),
        };
        Ok(path.iter().try_fold(&all, |value, name| value.get(name)).cloned())
    }

    fn list(self, text: &str, path: &[String]) -> Result<Option<Vec<Value>>, String> {
        match self.find(text, path)? {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(format!("{} is not a list", path.join("."))),
        }
    }

    fn set(self, text: &str, path: &[String], value: &Value) -> Result<String, String> {
        match (self, names(path).as_slice(), value) {
            (Self::Json, names, value) => jsonc::put(text, names, value),
            (Self::Toml, names, value) => toml::put(text, names, value),
            (Self::Yaml, [block, name], Value::Object(entry)) => yaml::put(text, block, name, entry),
            (Self::Yaml, ..) => Err(super::NOT_UNDERSTOOD.to_owned()),
        }
    }

    /// Returns the text without the value at a path; `None` if there is none.
    pub(crate) fn remove(self, text: &str, path: &[String]) -> Result<Option<String>, String> {
        match (self, names(path).as_slice()) {
            (Self::Json, names) => jsonc::remove(text, names),
            (Self::Toml, names) => toml::remove(text, names),
            (Self::Yaml, [block, name]) => yaml::remove(text, block, name),
            (Self::Yaml, _) => Ok(None),
        }
    }
}

fn names(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
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
            (SettingsFormat::Json, "{\"mcpServers\": {\"haft\": {\"command\": \"mine\"}}}"),
            (SettingsFormat::Toml, ""),
            (SettingsFormat::Toml, "model = \"m\"\n\n[features]\nshell_tool = true # mine\nother = 1\n"),
            (SettingsFormat::Toml, "[permissions]\ndeny = [\"Edit\"]\n"),
        ] {
            let with = format.apply(text, &changes()).unwrap();
            assert_ne!(with, text);
            assert!(format.has_any(&with, &changes(), text).unwrap());
            assert!(!format.has_any(text, &changes(), text).unwrap());
            assert_eq!(format.apply(&with, &changes()).unwrap(), with, "a second time changes nothing");
            let without = format.revert(&with, &changes(), text, &[]).unwrap();
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(bare(&without), bare(text), "{with}");
        }
    }

    #[test]
    fn what_others_changed_since_stays() {
        let with = SettingsFormat::Json.apply("{}", &changes()).unwrap();
        let with = jsonc::put(&with, &["permissions", "deny"], &json!(["Bash", "WebFetch", "Edit"])).unwrap();
        let with = jsonc::put(&with, &["mcpServers", "other"], &json!({"command": "o"})).unwrap();
        let with = jsonc::put(&with, &["features", "shell_tool"], &json!(true)).unwrap();
        let without = SettingsFormat::Json.revert(&with, &changes(), "{}", &[]).unwrap();
        let left = jsonc::read(&without).unwrap().unwrap();
        let expected = json!({
            "mcpServers": {"other": {"command": "o"}}, "permissions": {"deny": ["WebFetch"]},
            "features": {"shell_tool": true},
        });
        assert_eq!(left, expected);
        assert_eq!(SettingsFormat::Json.revert("{\"a\": 1}", &changes(), "{}", &[]).unwrap(), "{\"a\": 1}");
    }

    #[test]
    fn a_value_of_another_kind_is_refused() {
        let changes = [SettingChange::add(&["permissions", "deny"], &["Bash"])];
        assert!(SettingsFormat::Json.apply("{\"permissions\": {\"deny\": \"all\"}}", &changes).is_err());
        assert!(SettingsFormat::Json.apply("{\"permissions\": 1}", &changes).is_err());
    }
}
