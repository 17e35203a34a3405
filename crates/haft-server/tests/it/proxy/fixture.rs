//! Proxies in front of upstream servers.

use std::sync::Arc;
use std::time::Duration;

use haft_ledger::Ledger;
use haft_model::{HttpModel, MODEL_RETRY, Model, ModelTimeouts, ProviderSettings, Wire};
use haft_net::http::HttpService;
use haft_net::server::WholeResponse;
use haft_server::proxy::{
    LoomReply, LoomRequest, Proxies, ProxyModel, ProxyModels, SearchProxy, SearchSource,
};
use haft_tool::{Cancel, RetryPolicy, Secret, Value};
use tempfile::TempDir;

use super::upstream::Upstream;

/// The key, which no response may contain.
pub(crate) const KEY: &str = "sk-very-secret";

/// Long enough for a server that answers, however slow the machine is.
const LONG: Duration = Duration::from_mins(2);

pub(crate) struct ProxyFixture {
    pub(crate) proxies: Proxies,
    pub(crate) home: TempDir,
}

pub(crate) fn unset() -> Result<ProxyModel, String> {
    Err("Set THE_KEY.".to_owned())
}

pub(crate) fn proxied(model: impl Model + 'static) -> ProxyModel {
    ProxyModel { model: Arc::new(model), own_model: None }
}

/// A provider at an upstream server.
pub(crate) fn upstream_model(provider: &str, wire: Wire, upstream: &Upstream) -> HttpModel {
    upstream_within(LONG, provider, wire, upstream)
}

/// The same with a time limit.
pub(crate) fn upstream_within(limit: Duration, provider: &str, wire: Wire, upstream: &Upstream) -> HttpModel {
    let settings = ProviderSettings {
        base_url: Some(upstream.url.clone()),
        api_key: Some(Secret::new(KEY)),
        wire: Some(wire),
        ..ProviderSettings::new(provider)
    };
    let endpoint = settings.resolve(&|_| None).unwrap();
    let http = Arc::new(HttpService::default()).streams_for(vec![endpoint.authority()]);
    HttpModel::new(endpoint, "", http)
        .with_retry(RetryPolicy { attempts: 1, ..MODEL_RETRY })
        .with_timeouts(ModelTimeouts { stream: limit, whole: limit, comments: LONG })
}

impl ProxyFixture {
    /// Proxies of which only `openai` is configured.
    pub(crate) fn openai(model: ProxyModel) -> Self {
        Self::models(ProxyModels { openai: Ok(model), anthropic: unset(), vertex: unset() })
    }

    /// Proxies of which none is configured.
    pub(crate) fn unconfigured() -> Self {
        Self::models(ProxyModels { openai: unset(), anthropic: unset(), vertex: unset() })
    }

    pub(crate) fn models(models: ProxyModels) -> Self {
        let home = tempfile::tempdir().unwrap();
        let search = SearchProxy::new(Err("Set a key.".to_owned()), ledger(&home));
        Self { proxies: Proxies::new(models, search), home }
    }

    /// Proxies with a search engine.
    pub(crate) fn search(source: SearchSource) -> Self {
        Self::search_at(tempfile::tempdir().unwrap(), source)
    }

    /// The same with a ledger that may have answers.
    pub(crate) fn search_at(home: TempDir, source: SearchSource) -> Self {
        let models = ProxyModels { openai: unset(), anthropic: unset(), vertex: unset() };
        let search = SearchProxy::new(Ok(source), ledger(&home));
        Self { proxies: Proxies::new(models, search), home }
    }

    /// Sends a request that must be answered as a whole.
    pub(crate) fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Answered {
        let request = LoomRequest { method: "POST", path, body: body.as_ref() };
        match self.proxies.respond(&request, &Cancel::new(), &mut |event| panic!("sent {event}")) {
            LoomReply::Whole(response) => Answered::new(response),
            LoomReply::Streamed => panic!("the answer was streamed"),
        }
    }

    /// Sends a request that may be answered with events.
    pub(crate) fn stream(&self, path: &str, body: &Value) -> Result<Vec<String>, Answered> {
        let (mut sent, body) = (Vec::new(), body.to_string());
        let request = LoomRequest { method: "POST", path, body: body.as_bytes() };
        let reply = self.proxies.respond(&request, &Cancel::new(), &mut |event| {
            sent.push(event);
            true
        });
        match reply {
            LoomReply::Streamed => Ok(sent),
            LoomReply::Whole(response) => {
                assert!(sent.is_empty(), "{sent:?}");
                Err(Answered::new(response))
            }
        }
    }
}

pub(crate) fn ledger(home: &TempDir) -> Ledger {
    Ledger::open(home.path().join("ledger")).unwrap()
}

/// A response that was sent as a whole.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

impl Answered {
    fn new(response: WholeResponse) -> Self {
        let WholeResponse { status, headers, body } = response;
        assert!(!body.contains(KEY), "{body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status == 200, body.get("error").is_none(), "{status} {body}");
        Self { status, headers, body }
    }

    pub(crate) fn error(&self) -> &str {
        self.body["error"].as_str().unwrap()
    }
}
