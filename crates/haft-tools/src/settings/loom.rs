//! `[tools.loom]`: the server behind Loom's `oracle` and `web_search`.

use haft_tool::ToolError;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::ops::api::address;

/// The server behind Loom's `oracle` and `web_search`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoomServer {
    /// Its address; `http://127.0.0.1:8080` if nothing is said.
    pub server_url: Option<String>,
    /// The model that the oracle asks; `gpt-4o` if nothing is said.
    pub oracle_model: Option<String>,
}

impl LoomServer {
    /// Where it is if nothing is said.
    pub(crate) const DEFAULT: &'static str = "127.0.0.1:8080";

    /// Statuses after which it is asked again.
    pub(crate) const RETRIED: &'static [u16] = &[408, 429, 502, 503, 504];

    /// A path on the server.
    pub(crate) fn at(&self, path: &str) -> Result<Url, ToolError> {
        let server = self.server_url.clone().unwrap_or_else(|| format!("http://{}", Self::DEFAULT));
        let mut url = address("tools.loom.server_url (LOOM_SERVER_URL)", &server)?;
        url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
        Ok(url)
    }

    pub(crate) fn oracle_model(&self) -> &str {
        self.oracle_model.as_deref().unwrap_or("gpt-4o")
    }

    pub(super) fn take_env(&mut self, var: &dyn Fn(&str) -> Option<String>) {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        self.server_url = var("LOOM_SERVER_URL").or(self.server_url.take());
        self.oracle_model = var("LOOM_SERVER_ORACLE_MODEL").or(self.oracle_model.take());
    }
}
