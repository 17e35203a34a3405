//! The proxies of `haft serve`, from the settings and the keys in the environment.

use std::sync::Arc;
use std::time::Duration;

use haft_ledger::Ledger;
use haft_model::{HttpModel, MODEL_RETRY, ModelTimeouts, ProviderSettings};
use haft_net::http::HttpService;
use haft_server::proxy::{Proxies, ProxyFamily, ProxyModel, ProxyModels, SearchProxy, SearchSource};
use haft_tool::{Cancel, RetryPolicy};
use haft_tools::WebSearch;

use super::proxy_section::ProxyProviderSection;
use super::{Config, VariableLookup};

/// How long providers may be silent. Clients give up earlier and retry.
const TIMEOUTS: ModelTimeouts = ModelTimeouts {
    stream: Duration::from_mins(2),
    whole: Duration::from_mins(5),
    comments: Duration::from_mins(5),
};
/// One attempt, because clients retry and the attempts would multiply.
const RETRY: RetryPolicy = RetryPolicy { attempts: 1, ..MODEL_RETRY };

/// The proxies, with warnings for the user.
pub(crate) struct ConfiguredProxies {
    /// The proxies.
    pub proxies: Proxies,
    /// Warnings about settings that cannot be used.
    pub warnings: Vec<String>,
}

impl Config {
    /// The proxies for these settings and this process's environment. A proxy that is not set up answers with the reason.
    pub(crate) fn proxies(&self, http: &Arc<HttpService>, ledger: Ledger) -> ConfiguredProxies {
        self.proxies_with(http, ledger, &|name| std::env::var(name).ok())
    }

    fn proxies_with(
        &self,
        http: &Arc<HttpService>,
        ledger: Ledger,
        variable: VariableLookup<'_>,
    ) -> ConfiguredProxies {
        let mut warnings = Vec::new();
        let mut model = |family: ProxyFamily| {
            let model = self.proxy_model(family, http, variable);
            if let Err(why) = &model
                && *self.values.proxy.of(family) != ProxyProviderSection::default()
            {
                warnings.push(format!("proxy.{} cannot be used: {why}", family.name()));
            }
            model
        };
        let models = ProxyModels {
            openai: model(ProxyFamily::Openai),
            anthropic: model(ProxyFamily::Anthropic),
            vertex: model(ProxyFamily::Vertex),
        };
        let source = self.search_source(http, &mut warnings);
        ConfiguredProxies { proxies: Proxies::new(models, SearchProxy::new(source, ledger)), warnings }
    }

    fn proxy_model(
        &self,
        family: ProxyFamily,
        http: &Arc<HttpService>,
        variable: VariableLookup<'_>,
    ) -> Result<ProxyModel, String> {
        let section = self.values.proxy.of(family);
        let provider = section.provider.as_deref().unwrap_or(match family {
            ProxyFamily::Openai => "openai",
            ProxyFamily::Anthropic => "anthropic",
            ProxyFamily::Vertex => "gemini",
        });
        // If `haft -p` uses the same provider, its settings apply here too.
        let own = Some(&self.values.model).filter(|own| own.provider.as_deref() == Some(provider));
        let api_key = match &section.api_key {
            None => None,
            Some(key) => Some(key.resolve(variable).ok_or("the variable that api_key names is not set")?),
        };
        let settings = ProviderSettings {
            base_url: section.base_url.clone().or_else(|| own?.base_url.clone()),
            wire: section.wire.or_else(|| own?.wire),
            api_key,
            ..ProviderSettings::new(provider)
        };
        let endpoint = settings.resolve(variable).map_err(|error| error.to_string())?;
        let http = http.streams_for(vec![endpoint.authority()]);
        let own_model = section.model.clone();
        // Without a model of its own, each request names one.
        let model = HttpModel::new(endpoint, own_model.clone().unwrap_or_default(), http);
        let model = model.with_retry(RETRY).with_timeouts(TIMEOUTS);
        Ok(ProxyModel { model: Arc::new(model), own_model })
    }

    fn search_source(
        &self,
        http: &Arc<HttpService>,
        warnings: &mut Vec<String>,
    ) -> Result<SearchSource, String> {
        if let Some(path) = &self.values.proxy.search_file {
            if path.is_absolute() {
                return Ok(SearchSource::File(path.clone()));
            }
            let why = "proxy.search_file is not an absolute path".to_owned();
            warnings.push(why.clone());
            return Err(why);
        }
        match WebSearch::configured(&self.values.tools.web_search) {
            Ok(Some(engine)) => {
                let http = http.client_for(vec![engine.host()], Cancel::new());
                Ok(SearchSource::Engine { engine: Box::new(engine), http })
            }
            Ok(None) => {
                Err("Set GOOGLE_API_KEY and GOOGLE_CSE_ID, BRAVE_API_KEY, TAVILY_API_KEY or SEARXNG_URL, or \
                             [tools.web_search] in haft.toml"
                    .to_owned())
            }
            Err(error) => {
                warnings.push(format!("the search proxy cannot be used: {}", error.message));
                Err(error.message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use haft_server::proxy::{LoomReply, LoomRequest};

    use super::*;

    const KEYS: &[(&str, &str)] =
        &[("OPENAI_API_KEY", "sk-1"), ("GEMINI_API_KEY", "g-1"), ("MY_KEY", "m-1"), ("BRAVE_API_KEY", "b-1")];

    fn variable(name: &str) -> Option<String> {
        KEYS.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    #[expect(clippy::disallowed_methods, reason = "the test writes the file that the code reads")]
    fn config(text: &str) -> Config {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("haft.toml");
        std::fs::write(&path, text).unwrap();
        let config = Config::read(Some(path), directory.path(), &variable).unwrap();
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        config
    }

    fn model(text: &str, family: ProxyFamily) -> Result<ProxyModel, String> {
        config(text).proxy_model(family, &Arc::default(), &variable)
    }

    fn address(text: &str, family: ProxyFamily) -> String {
        let proxy = model(text, family).unwrap();
        let address = proxy.model.address().unwrap();
        format!("{} {} {}", proxy.model.provider(), address.base_url, address.wire)
    }

    #[test]
    fn keys_in_the_environment_set_up_the_families() {
        assert_eq!(address("", ProxyFamily::Openai), "openai https://api.openai.com/v1 openai-responses");
        let gemini = "gemini https://generativelanguage.googleapis.com gemini";
        assert_eq!(address("", ProxyFamily::Vertex), gemini);
        let why = model("", ProxyFamily::Anthropic).err().unwrap();
        assert!(why.contains("Set ANTHROPIC_API_KEY"), "{why}");
    }

    #[test]
    fn settings_name_another_provider_for_a_family() {
        let text = "[proxy.anthropic]\nprovider = \"compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"qwen\"\n";
        assert_eq!(address(text, ProxyFamily::Anthropic), "compatible http://127.0.0.1:9/v1 openai-chat");
        assert_eq!(model(text, ProxyFamily::Anthropic).unwrap().own_model.as_deref(), Some("qwen"));
        let keyed = "[proxy.openai]\nprovider = \"openrouter\"\napi_key = \"${MY_KEY}\"\n";
        assert!(address(keyed, ProxyFamily::Openai).starts_with("openrouter https://openrouter.ai"));
        let unset = model("[proxy.openai]\napi_key = \"${NO_KEY}\"\n", ProxyFamily::Openai).err().unwrap();
        assert_eq!(unset, "the variable that api_key names is not set");
    }

    #[test]
    fn the_provider_of_runs_is_the_same_one_here() {
        let own =
            "[model]\nprovider = \"openai\"\nbase_url = \"http://127.0.0.1:9\"\nwire = \"openai-chat\"\n";
        assert_eq!(address(own, ProxyFamily::Openai), "openai http://127.0.0.1:9 openai-chat");
        assert!(address(own, ProxyFamily::Vertex).starts_with("gemini https://"));
        let both = format!("{own}[proxy.openai]\nbase_url = \"http://127.0.0.1:8\"\n");
        assert_eq!(address(&both, ProxyFamily::Openai), "openai http://127.0.0.1:8 openai-chat");
    }

    #[test]
    fn searches_go_to_the_file_else_to_the_engine_of_the_tools() {
        let source = |text: &str| {
            let mut warnings = Vec::new();
            let source = config(text).search_source(&Arc::default(), &mut warnings);
            (source, warnings)
        };
        let (found, _) = source("[proxy]\nsearch_file = \"/srv/pages.json\"\n");
        assert!(matches!(found, Ok(SearchSource::File(path)) if path.ends_with("pages.json")));
        let (found, warnings) = source("");
        assert!(matches!(found, Ok(SearchSource::Engine { engine, .. }) if engine.name() == "Brave Search"));
        assert!(warnings.is_empty());
        for text in ["[proxy]\nsearch_file = \"pages.json\"\n", "[tools.web_search]\nbackend = \"loom\"\n"] {
            let (found, warnings) = source(text);
            assert!(found.is_err() && warnings.len() == 1, "{text}");
        }
    }

    #[test]
    fn only_settings_that_cannot_be_used_are_warned_of() {
        let home = tempfile::tempdir().unwrap();
        let text = "[proxy.anthropic]\nmodel = \"x\"\n[proxy.vertex]\nprovider = \"nothing\"\n";
        let ledger = Ledger::open(home.path().join("ledger")).unwrap();
        let ConfiguredProxies { proxies, warnings } =
            config(text).proxies_with(&Arc::default(), ledger, &variable);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].starts_with("proxy.anthropic cannot be used: There is no key"), "{warnings:?}");
        assert!(warnings[1].starts_with("proxy.vertex cannot be used: There is no provider"), "{warnings:?}");
        let request = LoomRequest { method: "POST", path: "anthropic/complete", body: b"{}" };
        let reply = proxies.respond(&request, &Cancel::new(), &mut |_| false);
        let LoomReply::Whole(response) = reply else { unreachable!("it is not configured") };
        assert!(response.status == 503 && response.body.contains("There is no key"), "{response:?}");
    }
}
