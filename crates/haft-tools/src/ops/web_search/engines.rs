//! The search backends, and which of them the settings choose. Brave has a file of its own.

use haft_tool::{HttpRequest, HttpResponse, RetryPolicy, Secret, ToolError, Value, json};

use super::{SearchEngine, SearchHit, SearchQuery, SearchResults, brave, engine, read_list};
use crate::ops::api::{parse_json, setting_url};
use crate::settings::{LoomSettings, SearchBackend, WebSearchSettings};

const TAVILY_URL: &str = "https://api.tavily.com/search";
const TAVILY_MAX_RESULTS: usize = 20;
const GOOGLE_URL: &str = "https://www.googleapis.com/customsearch/v1";
const GOOGLE_MAX_RESULTS: usize = 10;

/// The backend that the settings name, else the first one that is set up.
pub(crate) fn configured(
    settings: &WebSearchSettings,
    loom_settings: &LoomSettings,
) -> Result<Option<SearchEngine>, ToolError> {
    let WebSearchSettings {
        backend,
        endpoint: endpoint_url,
        searxng: own,
        brave,
        tavily: keyed,
        google: cse,
    } = settings;
    let backend = backend.or(match () {
        () if endpoint_url.is_some() => Some(SearchBackend::Endpoint),
        () if own.url.is_some() => Some(SearchBackend::Searxng),
        () if brave.api_key.is_some() => Some(SearchBackend::Brave),
        () if keyed.api_key.is_some() => Some(SearchBackend::Tavily),
        () if cse.api_key.is_some() && cse.cse_id.is_some() => Some(SearchBackend::Google),
        () => None,
    });
    let Some(backend) = backend else { return Ok(None) };
    let engine = match backend {
        SearchBackend::Endpoint => endpoint(required(endpoint_url.as_ref(), "tools.web_search.endpoint")?),
        SearchBackend::Searxng => {
            searxng(required(own.url.as_ref(), "SEARXNG_URL (tools.web_search.searxng.url)")?)
        }
        SearchBackend::Brave => {
            let key = required(brave.api_key.as_ref(), "BRAVE_API_KEY (tools.web_search.brave.api_key)")?;
            brave::brave(key, brave.url.as_deref())
        }
        SearchBackend::Tavily => {
            let key = required(keyed.api_key.as_ref(), "TAVILY_API_KEY (tools.web_search.tavily.api_key)")?;
            tavily(key, keyed.url.as_deref())
        }
        SearchBackend::Google => {
            let key = required(cse.api_key.as_ref(), "GOOGLE_API_KEY (tools.web_search.google.api_key)")?;
            let id = required(cse.cse_id.as_ref(), "GOOGLE_CSE_ID (tools.web_search.google.cse_id)")?;
            google(key, id, cse.url.as_deref())
        }
        SearchBackend::Loom => loom(loom_settings),
    };
    engine.map(Some)
}

fn required<'a, T>(value: Option<&'a T>, setting: &str) -> Result<&'a T, ToolError> {
    value.ok_or_else(|| {
        ToolError::failed(format!("the chosen search backend is not set up: {setting} is missing; set it"))
    })
}

/// Any URL that takes `q` and `count`. A response in an unknown form is passed on as it is.
fn endpoint(url: &str) -> Result<SearchEngine, ToolError> {
    /// Where services put the list of results, and the fields of a result.
    const LISTS: [&str; 7] =
        ["/results", "/web/results", "/items", "/organic", "/organic_results", "/hits", "/data"];
    const URLS: [&str; 3] = ["url", "link", "href"];
    const SNIPPETS: [&str; 5] = ["snippet", "description", "content", "text", "body"];
    fn hit(item: &Value) -> Option<SearchHit> {
        let present = |fields: &[&'static str]| {
            fields.iter().find(|field| item.get(**field).is_some_and(Value::is_string)).copied()
        };
        SearchHit::parse(item, present(&URLS)?, present(&SNIPPETS).unwrap_or_default())
    }
    fn parse(response: &HttpResponse) -> SearchResults {
        let value = serde_json::from_slice(&response.body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&response.body).into_owned()));
        let mut lists = std::iter::once("").chain(LISTS).filter_map(|at| value.pointer(at));
        let Some(list) = lists.find(|list| list.is_array()) else {
            return SearchResults { raw: value, ..SearchResults::default() };
        };
        let hits = list.as_array().into_iter().flatten().filter_map(hit).collect();
        SearchResults { hits, raw: list.clone(), note: None }
    }
    let url = setting_url("tools.web_search.endpoint", url)?;
    let request: super::BuildRequest =
        |engine, query| engine.get(&[("q", &query.text), ("count", &query.max_results.to_string())]);
    Ok(engine("The search endpoint", url, None, request, |_, response| Ok(parse(response))))
}

/// A SearXNG instance; `url` may end in `/search`.
fn searxng(url: &str) -> Result<SearchEngine, ToolError> {
    fn request(engine: &SearchEngine, query: &SearchQuery) -> HttpRequest {
        engine.get(&[("q", &query.sites.add_to(&query.text)), ("format", "json")])
    }
    fn parse(name: &str, response: &HttpResponse) -> Result<SearchResults, ToolError> {
        let response = parse_json(name, response)?;
        let failed =
            |engine: &Value| Some(format!("{} ({})", engine.get(0)?.as_str()?, engine.get(1)?.as_str()?));
        let failed: Vec<String> =
            response["unresponsive_engines"].as_array().into_iter().flatten().filter_map(failed).collect();
        let note =
            (!failed.is_empty()).then(|| format!("Engines that did not answer: {}", failed.join(", ")));
        Ok(SearchResults { note, ..read_list(name, &response, "/results", "url", "content")? })
    }
    let mut url = setting_url("tools.web_search.searxng.url (SEARXNG_URL)", url)?;
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/search") {
        url.set_path(&format!("{path}/search"));
    }
    Ok(SearchEngine {
        advice: |status| {
            (status == 403)
                .then_some("the instance may not serve JSON: add json to search.formats in its settings.yml")
        },
        ..engine("SearXNG", url, None, request, parse)
    })
}

fn tavily(key: &Secret, url: Option<&str>) -> Result<SearchEngine, ToolError> {
    fn request(engine: &SearchEngine, query: &SearchQuery) -> HttpRequest {
        let mut request = engine.post(&json!({
            "query": query.text,
            "max_results": query.max_results.clamp(1, TAVILY_MAX_RESULTS),
            "search_depth": "basic",
            "include_domains": query.sites.only,
            "exclude_domains": query.sites.never,
        }));
        request.headers.push(("Authorization".to_owned(), format!("Bearer {}", engine.key())));
        request
    }
    fn parse(name: &str, response: &HttpResponse) -> Result<SearchResults, ToolError> {
        read_list(name, &parse_json(name, response)?, "/results", "url", "content")
    }
    let url = setting_url("tools.web_search.tavily.url", url.unwrap_or(TAVILY_URL))?;
    Ok(SearchEngine {
        advice: |status| match status {
            401 | 403 => Some("check TAVILY_API_KEY (tools.web_search.tavily.api_key)"),
            432 | 433 => Some("the plan's searches are used up; searching again will not help"),
            _ => None,
        },
        ..engine("Tavily", url, Some(key.clone()), request, parse)
    })
}

/// Google's Custom Search.
fn google(key: &Secret, cse_id: &str, url: Option<&str>) -> Result<SearchEngine, ToolError> {
    fn request(engine: &SearchEngine, query: &SearchQuery) -> HttpRequest {
        let count = query.max_results.clamp(1, GOOGLE_MAX_RESULTS).to_string();
        let mut request = engine.get(&[("q", &query.sites.add_to(&query.text)), ("num", &count)]);
        // In a header, because URLs end up in logs.
        request.headers.push(("X-Goog-Api-Key".to_owned(), engine.key().to_owned()));
        request
    }
    fn parse(name: &str, response: &HttpResponse) -> Result<SearchResults, ToolError> {
        let response = parse_json(name, response)?;
        // Google omits an empty list.
        if response.get("items").is_none() && response["kind"] == "customsearch#search" {
            return Ok(SearchResults::empty());
        }
        read_list(name, &response, "/items", "link", "snippet")
    }
    let mut url = setting_url("tools.web_search.google.url", url.unwrap_or(GOOGLE_URL))?;
    url.query_pairs_mut().append_pair("cx", cse_id);
    Ok(SearchEngine {
        advice: |status| {
            matches!(status, 400 | 401 | 403).then_some(
                "check GOOGLE_API_KEY and GOOGLE_CSE_ID (tools.web_search.google), and whether the day's searches are used up",
            )
        },
        ..engine("Google Custom Search", url, Some(key.clone()), request, parse)
    })
}

/// Google's Custom Search through a Loom server, which holds the key.
pub(crate) fn loom(settings: &LoomSettings) -> Result<SearchEngine, ToolError> {
    fn request(engine: &SearchEngine, query: &SearchQuery) -> HttpRequest {
        let count = query.max_results.clamp(1, GOOGLE_MAX_RESULTS);
        let mut request =
            engine.post(&json!({"query": query.sites.add_to(&query.text), "max_results": count}));
        if engine.key.is_some() {
            request.headers.push(("Authorization".to_owned(), format!("Bearer {}", engine.key())));
        }
        request
    }
    fn parse(name: &str, response: &HttpResponse) -> Result<SearchResults, ToolError> {
        read_list(name, &parse_json(name, response)?, "/results", "url", "snippet")
    }
    Ok(SearchEngine {
        advice: |status| match status {
            500 => Some("Google CSE may not be set up on that server"),
            status => LoomSettings::advice(status),
        },
        retry: RetryPolicy { statuses: LoomSettings::RETRIED_STATUSES, ..RetryPolicy::default() },
        ..engine(
            "The Loom server's search",
            settings.url("/proxy/cse")?,
            settings.token.clone(),
            request,
            parse,
        )
    })
}
