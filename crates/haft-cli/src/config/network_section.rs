//! The section `[network]`: what commands may reach. `network = ["npm", "example.com"]` is short for its list.

use std::collections::BTreeMap;
use std::fmt;

use haft_tool::net::Domains;
use haft_tool::{Network, ToolError};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::sections::words;

/// The settings of the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NetworkSection {
    /// What commands may reach: `none`, `all`, or a list of domains and presets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<NetworkWords>,
    /// Names for lists of domains. A known name is extended.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub presets: BTreeMap<String, Vec<String>>,
}

impl NetworkSection {
    pub(super) fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.allow {
            None if self.presets.is_empty() => to.serialize_none(),
            Some(allow) if self.presets.is_empty() => allow.serialize(to),
            _ => Serialize::serialize(self, to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WordsOrTable;

        impl<'de> Visitor<'de> for WordsOrTable {
            type Value = NetworkSection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"none\", \"all\", a list of domains, or a table")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<NetworkSection, E> {
                let allow = Some(NetworkWords(words(text)));
                Ok(NetworkSection { allow, ..NetworkSection::default() })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<NetworkSection, A::Error> {
                let list = Vec::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(NetworkSection { allow: Some(NetworkWords(list)), ..NetworkSection::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<NetworkSection, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(table))
            }
        }

        from.deserialize_any(WordsOrTable)
    }
}

/// Settings for one project, in the user's own file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ProjectSection {
    /// What commands in this project may reach besides [`NetworkSection::allow`].
    pub network: Vec<String>,
}

/// Network access as the user writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "OneOrMany", into = "OneOrMany")]
pub(crate) struct NetworkWords(pub Vec<String>);

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected \"none\", \"all\" or a list of domains")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for NetworkWords {
    fn from(given: OneOrMany) -> Self {
        match given {
            OneOrMany::One(text) => Self(words(&text)),
            OneOrMany::Many(list) => Self(list),
        }
    }
}

impl From<NetworkWords> for OneOrMany {
    fn from(NetworkWords(words): NetworkWords) -> Self {
        match words.as_slice() {
            [one] if matches!(one.as_str(), "none" | "all") => Self::One(one.clone()),
            _ => Self::Many(words),
        }
    }
}

impl NetworkWords {
    /// The words and those of a project; a project adds to a list, and to `none`.
    pub(crate) fn with_project(self, project: &[String]) -> Self {
        match self.0.as_slice() {
            _ if project.is_empty() => self,
            [one] if one == "all" => self,
            [one] if one == "none" => Self(project.to_vec()),
            list => Self(list.iter().chain(project).cloned().collect()),
        }
    }

    /// The network access that the words mean, with the names of presets. Invalid domains are an error.
    pub(crate) fn network(&self) -> Result<Network, ToolError> {
        let words: Vec<&str> = self.0.iter().map(|word| word.trim()).collect();
        match words.as_slice() {
            ["none"] | [] => Ok(Network::None),
            ["all"] => Ok(Network::All),
            list if list.iter().any(|word| matches!(*word, "none" | "all" | "")) => {
                Err(ToolError::invalid_arguments(
                    "network: use none, all, or a comma-separated list of domains and presets",
                ))
            }
            list => {
                let list: Vec<String> = list.iter().map(|word| (*word).to_owned()).collect();
                Domains::parse(&list).map_err(|error| error.context("network"))?;
                Ok(Network::Domains(list))
            }
        }
    }
}
