//! The section `[proxy]`: what `haft serve` offers to clients that hold no keys.

use std::path::PathBuf;

use haft_model::Wire;
use haft_server::proxy::ProxyFamily;
use haft_tool::Secret;
use serde::{Deserialize, Serialize};

/// The settings of the proxies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ProxySection {
    /// Who answers `/proxy/openai/…`.
    pub openai: ProxyProviderSection,
    /// Who answers `/proxy/anthropic/…`.
    pub anthropic: ProxyProviderSection,
    /// Who answers `/proxy/vertex/…`.
    pub vertex: ProxyProviderSection,
    /// A file with pages that are searched in place of the web.
    pub search_file: Option<PathBuf>,
}

/// Who answers one family of paths.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ProxyProviderSection {
    /// The provider, if not the one that the family is named after.
    pub provider: Option<String>,
    /// The URL of the provider.
    pub base_url: Option<String>,
    /// Its key, or `${NAME}` for the key in a variable.
    pub api_key: Option<Secret>,
    /// The wire format.
    pub wire: Option<Wire>,
    /// The model that answers every request, whichever model it names.
    pub model: Option<String>,
}

impl ProxySection {
    /// The settings of a family.
    pub(super) fn of(&self, family: ProxyFamily) -> &ProxyProviderSection {
        match family {
            ProxyFamily::Openai => &self.openai,
            ProxyFamily::Anthropic => &self.anthropic,
            ProxyFamily::Vertex => &self.vertex,
        }
    }
}
