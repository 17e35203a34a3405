//! `[tools.loom]`: the server behind Loom's `oracle` and `web_search`.

use haft_tool::{Secret, ToolError};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::ops::api::setting_url;

/// The server behind Loom's `oracle` and `web_search`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoomSettings {
    /// Its URL. Default: `http://127.0.0.1:8080`.
    pub server_url: Option<String>,
    /// The model behind `oracle`. Default: `gpt-4o`.
    pub oracle_model: Option<String>,
    /// The token that is sent to it. Servers other than Haft's own may need none.
    pub token: Option<Secret>,
    /// Whether a model of the host answers, because the user named no server.
    #[serde(skip)]
    pub has_host_model: bool,
}

impl LoomSettings {
    /// The host and port of the default server.
    pub(crate) const DEFAULT_HOST: &'static str = "127.0.0.1:8080";

    /// Statuses after which a request is retried.
    pub(crate) const RETRIED_STATUSES: &'static [u16] = &[408, 429, 502, 503, 504];

    /// The URL of a path on the server.
    pub(crate) fn url(&self, path: &str) -> Result<Url, ToolError> {
        let server = self.server_url.clone().unwrap_or_else(|| format!("http://{}", Self::DEFAULT_HOST));
        let mut url = setting_url("tools.loom.server_url (LOOM_SERVER_URL)", &server)?;
        url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
        Ok(url)
    }

    /// The header that carries the token, if there is one.
    pub(crate) fn authorization(&self) -> Option<(String, String)> {
        let token = self.token.as_ref()?;
        Some(("Authorization".to_owned(), format!("Bearer {}", token.expose())))
    }

    /// What the user can do about a status that says that the token is missing or wrong, or that the URL is.
    pub(crate) fn advice(status: u16) -> Option<&'static str> {
        match status {
            401 | 403 => Some("set LOOM_SERVER_TOKEN (tools.loom.token) to a token of that server"),
            404 => Some("LOOM_SERVER_URL (tools.loom.server_url) does not lead to a Loom server"),
            _ => None,
        }
    }

    pub(crate) fn oracle_model(&self) -> &str {
        self.oracle_model.as_deref().unwrap_or("gpt-4o")
    }

    pub(super) fn apply_env(&mut self, var: &dyn Fn(&str) -> Option<String>) {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        self.server_url = var("LOOM_SERVER_URL").or(self.server_url.take());
        self.oracle_model = var("LOOM_SERVER_ORACLE_MODEL").or(self.oracle_model.take());
        self.token = var("LOOM_SERVER_TOKEN").map(|token| Secret::new(token.trim())).or(self.token.take());
    }
}
