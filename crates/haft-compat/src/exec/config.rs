//! The settings of Codex that matter to a run, from words `KEY=VALUE`.

use std::path::PathBuf;

use toml_edit::{DocumentMut, Item, Value as TomlValue};

/// What commands may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecSandbox {
    /// Nothing.
    ReadOnly,
    /// The workspace.
    WorkspaceWrite,
    /// Everything.
    DangerFullAccess,
}

/// Settings of Codex.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecConfig {
    /// `model`.
    pub model: Option<String>,
    /// `openai_base_url`.
    pub base_url: Option<String>,
    /// `model_reasoning_effort`.
    pub effort: Option<String>,
    /// `sandbox_mode`.
    pub sandbox: Option<ExecSandbox>,
    /// `sandbox_workspace_write.network_access`.
    pub network_access: Option<bool>,
    /// `sandbox_workspace_write.writable_roots`.
    pub writable_roots: Vec<PathBuf>,
    /// Whether the web may be searched: `web_search`, `tools.web_search`.
    pub web_search: Option<bool>,
    /// `developer_instructions`.
    pub instructions: Option<String>,
    /// Keys that have no meaning here.
    pub unknown: Vec<String>,
}

impl ExecSandbox {
    /// The names in flags and settings.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("read-only", Self::ReadOnly),
        ("workspace-write", Self::WorkspaceWrite),
        ("danger-full-access", Self::DangerFullAccess),
    ];

    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
    }
}

impl ExecConfig {
    /// Takes one word `KEY=VALUE`. The value is TOML, or the text as it is where it is none. Says what is wrong with a value of a key that
    /// is known.
    pub fn set(&mut self, word: &str) -> Result<(), String> {
        let (key, written) = word.split_once('=').ok_or_else(|| format!("{word:?} is not KEY=VALUE"))?;
        let (key, value) = (key.trim(), value(written.trim()));
        let text =
            || value.as_str().map(str::to_owned).ok_or_else(|| format!("{key} is not a text: {written}"));
        let flag = || value.as_bool().ok_or_else(|| format!("{key} is not true or false: {written}"));
        match key {
            "model" => self.model = Some(text()?),
            "openai_base_url" => self.base_url = Some(text()?),
            "model_reasoning_effort" => self.effort = Some(text()?),
            "developer_instructions" => self.instructions = Some(text()?),
            "sandbox_mode" => {
                let mode = ExecSandbox::from_name(&text()?);
                self.sandbox = Some(mode.ok_or_else(|| format!("{key} has no mode {written}"))?);
            }
            "sandbox_workspace_write.network_access" => self.network_access = Some(flag()?),
            "sandbox_workspace_write.writable_roots" => self.writable_roots = paths(key, &value)?,
            "sandbox_workspace_write" => self.set_members(key, &value)?,
            "tools.web_search" => self.web_search = Some(flag()?),
            "web_search" => self.web_search = Some(text()? != "disabled"),
            // No user is asked in this form: what would ask is denied.
            "approval_policy" => drop(text()?),
            key => self.unknown.push(key.to_owned()),
        }
        Ok(())
    }

    /// Takes the members of a table as if each had been given.
    fn set_members(&mut self, key: &str, value: &TomlValue) -> Result<(), String> {
        let table = value.as_inline_table().ok_or_else(|| format!("{key} is not a table"))?;
        table.iter().try_for_each(|(name, value)| self.set(&format!("{key}.{name}={value}")))
    }
}

fn value(written: &str) -> TomlValue {
    let document: Option<DocumentMut> = format!("value = {written}").parse().ok();
    let only = document.filter(|document| document.len() == 1);
    let parsed = only.and_then(|document| document.get("value").and_then(Item::as_value).cloned());
    parsed.unwrap_or_else(|| TomlValue::from(written))
}

fn paths(key: &str, value: &TomlValue) -> Result<Vec<PathBuf>, String> {
    let wrong = || format!("{key} is not a list of paths");
    let path = |item: &TomlValue| item.as_str().map(PathBuf::from).ok_or_else(wrong);
    value.as_array().ok_or_else(wrong)?.iter().map(path).collect()
}
