//! The search proxy.

use std::sync::Arc;
use std::sync::mpsc::channel;

use haft_net::http::HttpService;
use haft_server::proxy::{Proxies, ProxyModels, SearchProxy, SearchSource};
use haft_tool::{Cancel, ErrorKind, Http, HttpRequest, HttpResponse, ToolError, Value, json};
use haft_tools::{Settings, WebSearch};
use rusqlite::Connection;

use super::fixture::{KEY, ProxyFixture, ledger, unset};
use super::upstream::{Reply, Upstream};

const GOOGLE: &str = r#"{"kind":"customsearch#search","items":[
  {"title":"Rust","link":"https://www.rust-lang.org/","displayLink":"www.rust-lang.org","snippet":"A\nlanguage"},
  {"title":"The book","link":"https://doc.rust-lang.org/book/","snippet":""}]}"#;
const BRAVE: &str = r#"{"type":"search","web":{"results":[{"title":"Rust","url":"https://www.rust-lang.org/","description":"A language"}]}}"#;
const SEARXNG: &str = r#"{"results":[{"url":"https://www.rust-lang.org/","title":"Rust","content":"A language"}],"unresponsive_engines":[]}"#;
const PARTIAL: &str = r#"{"results":[],"unresponsive_engines":[["google","timeout"]]}"#;

fn web_search(engine: &str, url: &str) -> WebSearch {
    let section = match engine {
        "google" => {
            json!({"google": {"api_key": KEY, "cse_id": "CX", "url": format!("{url}/customsearch/v1")}})
        }
        "brave" => json!({"brave": {"api_key": KEY, "url": format!("{url}/search")}}),
        _ => json!({"searxng": {"url": url}}),
    };
    let settings: Settings = serde_json::from_value(json!({"web_search": section})).unwrap();
    WebSearch::configured(&settings.web_search).unwrap().unwrap()
}

fn source(engine: &str, upstream: &Upstream) -> SearchSource {
    let engine = web_search(engine, &upstream.url);
    let http = Arc::new(HttpService::default()).client_for(vec![engine.host()], Cancel::new());
    SearchSource::Engine { engine: Box::new(engine), http }
}

fn query(query: &str) -> String {
    json!({"query": query}).to_string()
}

#[test]
fn results_have_the_documented_form() {
    let upstream = Upstream::new([Reply::json(200, GOOGLE)]);
    let fixture = ProxyFixture::search(source("google", &upstream));
    let answered = fixture.post("cse", query("  Rust language "));
    assert_eq!(
        answered.body.to_string(),
        r#"{"query":"Rust language","results":[{"title":"Rust","url":"https://www.rust-lang.org/","snippet":"A language","display_link":"www.rust-lang.org","rank":1},{"title":"The book","url":"https://doc.rust-lang.org/book/","snippet":"","display_link":"doc.rust-lang.org","rank":2}]}"#
    );
    let asked = &upstream.requests()[0];
    assert_eq!(asked.line, "GET /customsearch/v1?cx=CX&q=Rust+language&num=5");
    assert!(asked.has_header(&format!("x-goog-api-key: {KEY}")), "{asked:?}");
}

#[test]
fn each_engine_is_asked_in_its_own_format() {
    for (engine, body, line) in [
        ("brave", BRAVE, "GET /search?q=rust&count=3&text_decorations=false&result_filter=web"),
        ("searxng", SEARXNG, "GET /search?q=rust&format=json"),
    ] {
        let upstream = Upstream::new([Reply::json(200, body)]);
        let fixture = ProxyFixture::search(source(engine, &upstream));
        let answered = fixture.post("cse", json!({"query": "rust", "max_results": 3}).to_string());
        assert_eq!(answered.body["results"][0]["snippet"], "A language", "{engine}");
        assert_eq!(upstream.requests()[0].line, line);
    }
}

#[test]
fn the_number_of_results_is_clamped() {
    for (asked, sent) in [(json!(-3), 1), (json!(0), 1), (json!(7), 7), (json!(99), 10), (json!(null), 5)] {
        let upstream = Upstream::new([Reply::json(200, GOOGLE)]);
        let fixture = ProxyFixture::search(source("google", &upstream));
        fixture.post("cse", json!({"query": "rust", "max_results": asked}).to_string());
        assert!(upstream.requests()[0].line.ends_with(&format!("num={sent}")), "{asked}");
    }
}

#[test]
fn requests_that_are_none_are_refused_before_anything_is_asked() {
    let upstream = Upstream::new([]);
    let fixture = ProxyFixture::search(source("google", &upstream));
    for (body, words) in [
        (json!({}), "query: expected a text that is not empty"),
        (json!({"query": " \n"}), "query: expected a text that is not empty"),
        (json!({"query": ["x"]}), "query: expected a text, got a list"),
        (json!({"query": "x".repeat(2_001)}), "query: expected at most 2000 characters"),
        (json!({"query": "x", "max_results": "5"}), "max_results: expected a whole number, got a text"),
        (
            json!({"query": "x", "max_results": 2.5}),
            "max_results: expected a whole number, got the number 2.5",
        ),
    ] {
        let answered = fixture.post("cse", body.to_string());
        assert_eq!((answered.status, answered.error()), (400, words));
    }
    assert_eq!(fixture.post("cse", "{").status, 400);
    assert!(upstream.requests().is_empty());
}

#[test]
fn failures_of_the_engine_have_documented_statuses_and_are_not_kept() {
    for (reply, status) in [
        (Reply::json(400, r#"{"error":{"message":"API key not valid"}}"#), 500),
        (Reply::json(401, r#"{"error":{"message":"no"}}"#), 500),
        (Reply::json(403, "{}"), 500),
        (Reply::json(408, "{}"), 504),
        (Reply::json(429, "{}"), 503),
        (Reply::json(500, "{}"), 502),
        (Reply::json(503, "{}"), 502),
        (Reply::json(504, "{}"), 504),
        (Reply::json(200, "{\"items\":"), 502),
        (Reply::json(200, r#"{"unlike":"anything"}"#), 502),
        (Reply::with(200, "Content-Type: text/html\r\n", "<html>a login page"), 502),
        (Reply::Bytes(Vec::new()), 502),
    ] {
        let upstream = Upstream::new([reply, Reply::json(200, GOOGLE)]);
        let fixture = ProxyFixture::search(source("google", &upstream));
        let answered = fixture.post("cse", query("rust"));
        assert_eq!(answered.status, status, "{}", answered.body);
        assert_eq!(fixture.post("cse", query("rust")).status, 200, "the failure of {status} was not kept");
        assert_eq!(upstream.requests().len(), 2, "one request for each");
    }
    let limited = Reply::with(429, "Retry-After: 9\r\n", "");
    let answered = ProxyFixture::search(source("google", &Upstream::new([limited]))).post("cse", query("x"));
    assert_eq!(answered.headers, [("retry-after", "9".to_owned())]);
}

/// A network in which every request times out.
struct Silence;

impl Http for Silence {
    fn fetch(&self, _: &HttpRequest) -> Result<HttpResponse, ToolError> {
        Err(ToolError::new(ErrorKind::Timeout, "nothing for 30 s"))
    }
}

#[test]
fn an_engine_that_is_silent_is_a_timeout() {
    let engine = web_search("google", "http://127.0.0.1:9");
    let fixture =
        ProxyFixture::search(SearchSource::Engine { engine: Box::new(engine), http: Arc::new(Silence) });
    assert_eq!(fixture.post("cse", query("x")).status, 504);
}

#[test]
fn without_an_engine_the_server_says_so() {
    let answered = ProxyFixture::unconfigured().post("cse", query("x"));
    assert_eq!(answered.status, 500);
    assert_eq!(answered.error(), "No search engine is configured on this server: Set a key.");
    let settings: Settings = serde_json::from_value(json!({"web_search": {"backend": "loom"}})).unwrap();
    let error = WebSearch::configured(&settings.web_search).err().unwrap();
    assert!(error.message.contains("cannot search through another one"), "{error}");
    assert!(WebSearch::configured(&Settings::default().web_search).unwrap().is_none());
}

#[test]
fn answers_are_kept_for_a_day_also_when_the_server_starts_again() {
    let upstream =
        Upstream::new([Reply::json(200, GOOGLE), Reply::json(200, BRAVE), Reply::json(200, GOOGLE)]);
    let fixture = ProxyFixture::search(source("google", &upstream));
    let first = fixture.post("cse", query("rust")).body;
    assert_eq!(fixture.post("cse", query("rust")).body, first);
    let ProxyFixture { proxies, home } = fixture;
    drop(proxies);
    let fixture = ProxyFixture::search_at(home, source("google", &upstream));
    assert_eq!(fixture.post("cse", query("rust")).body, first);
    assert_eq!(upstream.requests().len(), 1);
    let other_engine = ProxyFixture::search_at(fixture.home, source("brave", &upstream));
    assert_ne!(other_engine.post("cse", query("rust")).body, first, "another engine finds something else");
    let ProxyFixture { proxies, home } = other_engine;
    drop(proxies);

    let age = |milliseconds: i64| {
        let database = Connection::open(home.path().join("ledger/ledger.db")).unwrap();
        let changed = database.execute("UPDATE searches SET at = at - ?1", [milliseconds]).unwrap();
        assert_eq!(changed, 2);
    };
    let ask = || {
        let models = ProxyModels { openai: unset(), anthropic: unset(), vertex: unset() };
        let search = SearchProxy::new(Ok(source("google", &upstream)), ledger(&home));
        let fixture =
            ProxyFixture { proxies: Proxies::new(models, search), home: tempfile::tempdir().unwrap() };
        assert_eq!(fixture.post("cse", query("rust")).body, first);
        upstream.requests().len()
    };
    age(23 * 60 * 60 * 1_000);
    assert_eq!(ask(), 2, "kept for 23 hours");
    age(60 * 60 * 1_000);
    assert_eq!(ask(), 3, "a day is over");
}

#[test]
fn queries_that_mean_the_same_are_asked_once_and_others_are_not() {
    let upstream = Upstream::new((0..4).map(|_| Reply::json(200, GOOGLE)));
    let fixture = ProxyFixture::search(source("google", &upstream));
    for same in ["Rust Queue", "rust queue", "  rust \t QUEUE\n"] {
        assert_eq!(fixture.post("cse", query(same)).body["query"], same.trim(), "the caller's own words");
    }
    assert_eq!(upstream.requests().len(), 1);
    fixture.post("cse", query("rust queues"));
    fixture.post("cse", json!({"query": "rust queue", "max_results": 4}).to_string());
    fixture.post("cse", json!({"query": "rust queue", "max_results": 5}).to_string());
    assert_eq!(upstream.requests().len(), 3, "five is the default");
}

#[test]
fn the_same_query_at_the_same_time_is_asked_once() {
    let (open, opened) = channel();
    let Reply::Bytes(found) = Reply::json(200, GOOGLE) else { unreachable!() };
    let upstream = Upstream::new([Reply::Gate(opened, found)]);
    let fixture = ProxyFixture::search(source("google", &upstream));
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(|| fixture.post("cse", query("rust")))).collect();
        upstream.came.recv().unwrap();
        open.send(()).unwrap();
        for asked in asking {
            assert_eq!(asked.join().unwrap().status, 200);
        }
    });
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn an_answer_of_a_part_of_the_engine_is_given_and_not_kept() {
    let upstream = Upstream::new([Reply::json(200, PARTIAL), Reply::json(200, SEARXNG)]);
    let fixture = ProxyFixture::search(source("searxng", &upstream));
    let answered = fixture.post("cse", query("rust"));
    assert_eq!(
        answered.body,
        json!({"query": "rust", "results": [], "notes": ["Engines that did not answer: google (timeout)"]})
    );
    assert_eq!(fixture.post("cse", query("rust")).body["results"].as_array().unwrap().len(), 1);
}

#[test]
fn a_file_is_searched_without_a_network() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("pages.json");
    let pages: Vec<Value> = (0..20)
        .map(|number| {
            let title = if number % 2 == 0 { "Rust queues" } else { "Go channels" };
            json!({"title": title, "url": format!("https://example.com/{number}"), "snippet": "Ünï"})
        })
        .collect();
    let fixture = ProxyFixture::search(SearchSource::File(path.clone()));
    assert_eq!(fixture.post("cse", query("rust")).status, 500, "there is no file");
    std::fs::write(&path, json!(pages).to_string()).unwrap();
    let found = |words: &str| {
        let body = fixture.post("cse", query(words)).body;
        let urls = body["results"].as_array().unwrap().iter();
        urls.map(|result| result["url"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("QUEUES rust").len(), 5);
    assert_eq!(found("channels /7"), ["https://example.com/7"]);
    assert_eq!(found("rust channels").len(), 0);
    assert_eq!(found("ünï 11"), ["https://example.com/11"]);
    std::fs::write(&path, "[{\"title\": 3}]").unwrap();
    let answered = fixture.post("cse", query("rust"));
    assert!(answered.status == 500 && answered.error().contains("pages.json"), "{}", answered.body);
}
