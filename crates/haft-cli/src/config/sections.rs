//! The settings as types.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use haft_bus::ChannelSettings;
use haft_policy::{Mode, Preset, RuleText};
use haft_telemetry::OtelSection;
use haft_tool::close_names;
use haft_tools::{Settings, dialects};
use serde::{Deserialize, Serialize};

use super::agents_section::AgentsSection;
use super::ledger_section::LedgerSection;
use super::model_section::ModelSection;
use super::network_section::{NetworkSection, NetworkWords, ProjectSection};
use super::proxy_section::ProxySection;
use super::sandbox_section::SandboxSection;

/// All settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Sections {
    /// The set of tools.
    #[serde(with = "by_name")]
    pub dialect: Option<DialectName>,
    /// The tools that are offered, as for `--tools`; all of the dialect's by default.
    pub offer: Option<Vec<String>>,
    /// Which calls ask.
    #[serde(with = "by_name")]
    pub permission_mode: Option<Mode>,
    /// What commands may write, see, use and serve.
    #[serde(with = "SandboxSection")]
    pub sandbox: SandboxSection,
    /// What commands may reach.
    #[serde(with = "NetworkSection")]
    pub network: NetworkSection,
    /// Settings for single projects, by their directories.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub projects: BTreeMap<String, ProjectSection>,
    /// The model that `haft -p` asks.
    pub model: ModelSection,
    /// Its subagents.
    pub agents: AgentsSection,
    /// What `haft serve` offers to clients without keys.
    pub proxy: ProxySection,
    /// Rules for calls.
    pub permissions: Permissions,
    /// Settings of the tools.
    pub tools: Settings,
    /// What the ledger keeps.
    pub ledger: LedgerSection,
    /// Where telemetry is sent.
    pub otel: OtelSection,
    /// The channels for messages, by name.
    pub channels: BTreeMap<String, ChannelSettings>,
}

/// Rules, as for `--allowedTools`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Permissions {
    /// Calls that run without asking.
    pub allow: Vec<RuleText>,
    /// Calls that ask.
    pub ask: Vec<RuleText>,
    /// Calls that are denied.
    pub deny: Vec<RuleText>,
}

impl Sections {
    /// The default values of settings that have one.
    pub(super) fn defaults() -> [(&'static str, String); 4] {
        [
            ("dialect", dialects::NAMES[0].to_owned()),
            ("permission_mode", Mode::default().to_string()),
            ("sandbox", Preset::default().to_string()),
            ("network", "none".to_owned()),
        ]
    }

    /// Sets one of the settings that a variable can set.
    pub(super) fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        match name {
            "dialect" => self.dialect = Some(text.parse()?),
            "offer" => self.offer = Some(words(text)),
            "permission_mode" => self.permission_mode = Some(text.parse()?),
            "sandbox" => self.sandbox.preset = Some(text.parse()?),
            "sandbox.namespaces" => {
                self.sandbox.namespaces =
                    Some(text.parse().map_err(|_| format!("{text:?} is not true or false"))?);
            }
            "network" => self.network.allow = Some(NetworkWords(words(text))),
            other => return Err(format!("{other} cannot be set by a variable")),
        }
        Ok(())
    }
}

/// Splits a comma-separated list.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

/// The name of an existing dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DialectName(String);

impl DialectName {
    /// The name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DialectName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if dialects::NAMES.contains(&name) {
            return Ok(Self(name.to_owned()));
        }
        let near = close_names(name, dialects::NAMES.iter().copied());
        let near = near.first().map(|near| format!(". Did you mean {near}?")).unwrap_or_default();
        Err(format!("there is no dialect {name:?} (dialects: {}){near}", dialects::NAMES.join(", ")))
    }
}

impl fmt::Display for DialectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Serializes a value by its name on the command line.
pub(super) mod by_name {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the signature serde asks for")]
    pub(in super::super) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.collect_str(value),
            None => to.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(from)?.parse().map(Some).map_err(D::Error::custom)
    }
}
