//! Settings of the tools, one section per operation, from `haft.toml` and the environment.

mod loom;
mod memory;
mod search;

use serde::{Deserialize, Serialize};

use crate::ops::api::host_of;
use crate::ops::web_search;

pub use loom::LoomSettings;
pub use memory::MemorySettings;
pub use search::{
    GoogleSearchSettings, KeyedSearchSettings, SearchBackend, SearxngSettings, WebSearchSettings,
};

/// Settings of the tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The web search backends.
    pub web_search: WebSearchSettings,
    /// The server behind Loom's tools.
    pub loom: LoomSettings,
    /// The file that holds the agent's memory.
    pub memory: MemorySettings,
    /// The MCP servers by name, unparsed.
    pub mcp_servers: serde_json::Map<String, serde_json::Value>,
}

impl Settings {
    /// Applies the environment, which overrides the file. `var` looks a variable up.
    #[must_use]
    pub fn with_env(mut self, var: &dyn Fn(&str) -> Option<String>) -> Self {
        self.web_search.apply_env(var);
        self.loom.apply_env(var);
        self
    }

    /// Whether a web search can be made.
    pub fn has_search_engine(&self) -> bool {
        web_search::configured(&self.web_search, &self.loom).is_ok_and(|engine| engine.is_some())
    }

    /// The hosts that these settings name, as `host` or `host:port`. Tools reach them without a prompt.
    pub fn endpoints(&self) -> Vec<String> {
        let search = web_search::configured(&self.web_search, &self.loom).ok().flatten();
        let search = search.map(|engine| engine.host());
        let loom = self.loom.server_url.as_ref().and_then(|_| self.loom.url("").ok());
        search.into_iter().chain(loom.map(|url| host_of(&url))).collect()
    }
}

#[cfg(test)]
mod tests {
    use haft_tool::{Secret, json};

    use super::*;

    #[test]
    fn environment_overrides_file_and_keys_are_not_printed() {
        let file: Settings = serde_json::from_value(json!({
            "web_search": {"brave": {"api_key": "old"}, "google": {"cse_id": "cx"}},
            "loom": {"server_url": "http://10.0.0.7:8080/"},
        }))
        .unwrap();
        let env = |name: &str| match name {
            "BRAVE_API_KEY" => Some("new".to_owned()),
            "SEARXNG_URL" => Some("http://localhost:8888".to_owned()),
            "TAVILY_API_KEY" => Some(String::new()),
            "LOOM_SERVER_TOKEN" => Some("newer\n".to_owned()),
            _ => None,
        };
        let settings = file.with_env(&env);
        assert_eq!(settings.web_search.brave.api_key, Some(Secret::new("new")));
        assert_eq!(settings.loom.token, Some(Secret::new("newer")), "as a file or a command ends it");
        assert_eq!(settings.web_search.tavily.api_key, None, "an empty variable is ignored");
        assert_eq!(settings.web_search.google.cse_id.as_deref(), Some("cx"));
        assert_eq!(settings.endpoints(), ["localhost:8888", "10.0.0.7:8080"]);
        let keyed = Settings::default().with_env(&|name| (name == "TAVILY_API_KEY").then(|| "k".to_owned()));
        assert_eq!(keyed.endpoints(), ["api.tavily.com"], "a key chooses its backend");
        assert!(Settings::default().endpoints().is_empty());
        assert!(!format!("{settings:?}{}", json!(settings)).contains("new"));
    }
}
