//! What users set about tools: one section per operation, read from `haft.toml` and the environment by the doors.

mod loom;
mod memory;
mod search;

use serde::{Deserialize, Serialize};

use crate::ops::api::host_of;
use crate::ops::search as engines;

pub use loom::LoomServer;
pub use memory::MemoryFile;
pub use search::{GoogleSearch, KeyedSearch, SearchBackend, Searxng, WebSearch};

/// What users set about tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Who searches the web.
    pub web_search: WebSearch,
    /// The server behind Loom's tools.
    pub loom: LoomServer,
    /// Where the memory is.
    pub memory: MemoryFile,
    /// The MCP servers by name, as they stand in the file.
    pub mcp_servers: serde_json::Map<String, serde_json::Value>,
}

impl Settings {
    /// The same settings with what the environment says, which counts more than a file. `var` looks a variable up.
    #[must_use]
    pub fn with_env(mut self, var: &dyn Fn(&str) -> Option<String>) -> Self {
        self.web_search.take_env(var);
        self.loom.take_env(var);
        self
    }

    /// The hosts that these settings name, as `host` or `host:port`: tools reach them without a question.
    pub fn endpoints(&self) -> Vec<String> {
        let search = engines::chosen(&self.web_search, &self.loom).ok().flatten();
        let search = search.map(|backend| host_of(backend.url()));
        let loom = self.loom.server_url.as_ref().and_then(|_| self.loom.at("").ok());
        search.into_iter().chain(loom.map(|url| host_of(&url))).collect()
    }
}

#[cfg(test)]
mod tests {
    use haft_tool::{Secret, json};

    use super::*;

    #[test]
    fn the_environment_counts_more_than_a_file_and_keys_are_not_shown() {
        let file: Settings = serde_json::from_value(json!({
            "web_search": {"brave": {"api_key": "old"}, "google": {"cse_id": "cx"}},
            "loom": {"server_url": "http://10.0.0.7:8080/"},
        }))
        .unwrap();
        let env = |name: &str| match name {
            "BRAVE_API_KEY" => Some("new".to_owned()),
            "SEARXNG_URL" => Some("http://localhost:8888".to_owned()),
            "TAVILY_API_KEY" => Some(String::new()),
            _ => None,
        };
        let settings = file.with_env(&env);
        assert_eq!(settings.web_search.brave.api_key, Some(Secret::new("new")));
        assert_eq!(settings.web_search.tavily.api_key, None, "an empty variable says nothing");
        assert_eq!(settings.web_search.google.cse_id.as_deref(), Some("cx"));
        assert_eq!(settings.endpoints(), ["localhost:8888", "10.0.0.7:8080"]);
        let keyed = Settings::default().with_env(&|name| (name == "TAVILY_API_KEY").then(|| "k".to_owned()));
        assert_eq!(keyed.endpoints(), ["api.tavily.com"], "a key says which server may be asked");
        assert!(Settings::default().endpoints().is_empty());
        assert!(!format!("{settings:?}{}", json!(settings)).contains("new"));
    }
}
