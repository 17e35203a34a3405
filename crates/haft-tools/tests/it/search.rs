//! Each search backend with responses in its real format.

use haft_tool::testing::MemoryWorld;
use haft_tool::{ErrorKind, HttpResponse, Output, ToolError, Value, json};

use crate::fixture::{
    SERVER, call, claude, clawft, loom, planned_hosts, reply, reply_with, request_header, request_json,
    request_line, world as fixture_world,
};

const BRAVE: &str = r#"{"type":"search","query":{"original":"rust"},"mixed":{"type":"mixed","main":[]},"web":{"type":"search","results":[
  {"title":"The <strong>Rust</strong> Language","url":"https://www.rust-lang.org/","is_source_local":false,"description":"Fast &amp; safe.","language":"en"},
  {"title":"Rust (game)","url":"https://rust.facepunch.com/","description":"A game"}]}}"#;
const SEARXNG: &str = r#"{"query":"rust","number_of_results":0,"results":[
  {"url":"https://www.rust-lang.org/","title":"Rust","content":"A language","engine":"duckduckgo","parsed_url":["https","www.rust-lang.org","/","","",""],"engines":["duckduckgo"],"positions":[1],"score":1.0,"category":"general"}],
  "answers":[],"corrections":[],"infoboxes":[],"suggestions":[],"unresponsive_engines":[["google","timeout"]]}"#;
const TAVILY: &str = r#"{"query":"rust","follow_up_questions":null,"answer":null,"images":[],"results":[
  {"url":"https://www.rust-lang.org/","title":"Rust","content":"A language","score":0.98,"raw_content":null}],"response_time":0.7,"request_id":"x"}"#;
const GOOGLE: &str = r#"{"kind":"customsearch#search","searchInformation":{"totalResults":"1"},"items":[
  {"kind":"customsearch#result","title":"Rust","htmlTitle":"<b>Rust</b>","link":"https://www.rust-lang.org/","displayLink":"www.rust-lang.org","snippet":"A\nlanguage","htmlSnippet":"A"}]}"#;
const LOOM: &str = r#"{"query":"rust","results":[
  {"title":"Rust","url":"https://www.rust-lang.org/","snippet":"A language","display_link":"www.rust-lang.org","rank":1},
  {"title":"Two","url":"https://two.example/","snippet":"","display_link":"two.example","rank":2}]}"#;

/// Settings in which each backend is at [`SERVER`].
fn settings(backend: &str) -> Value {
    let url = SERVER;
    let section = match backend {
        "endpoint" => json!({"endpoint": format!("{url}/find?lang=en")}),
        "searxng" => json!({"searxng": {"url": url}}),
        "brave" => json!({"brave": {"api_key": "KEY", "url": format!("{url}/res/v1/web/search")}}),
        "tavily" => json!({"tavily": {"api_key": "KEY", "url": format!("{url}/search")}}),
        "google" => {
            json!({"google": {"api_key": "KEY", "cse_id": "CX", "url": format!("{url}/customsearch/v1")}})
        }
        _ => json!({"backend": "loom"}),
    };
    json!({"web_search": section, "loom": {"server_url": url}})
}

fn search(
    backend: &str,
    replies: Vec<HttpResponse>,
    arguments: Value,
) -> (Result<Output, ToolError>, MemoryWorld) {
    let world = fixture_world(replies);
    let result = call(&world, &claude(settings(backend)), "WebSearch", arguments);
    (result, world)
}

fn hits(output: &Output) -> Value {
    output.structured.as_ref().unwrap()["results"].clone()
}

#[test]
fn each_backend_has_its_request_and_response_format() {
    let rust = json!({"title": "Rust", "url": "https://www.rust-lang.org/", "snippet": "A language"});
    for (backend, body, line) in [
        ("searxng", SEARXNG, "GET /search?q=rust+%26+c&format=json"),
        ("tavily", TAVILY, "POST /search"),
        ("google", GOOGLE, "GET /customsearch/v1?cx=CX&q=rust+%26+c&num=10"),
        ("loom", LOOM, "POST /proxy/cse"),
        ("endpoint", LOOM, "GET /find?lang=en&q=rust+%26+c&count=10"),
        (
            "brave",
            BRAVE,
            "GET /res/v1/web/search?q=rust+%26+c&count=10&text_decorations=false&result_filter=web",
        ),
    ] {
        let (result, world) = search(backend, vec![reply(200, body)], json!({"query": "rust & c"}));
        let output = result.unwrap();
        let request = &world.http.requests()[0];
        assert_eq!(request_line(request), line, "{backend}");
        assert_eq!(request_header(request, "accept"), Some("application/json"), "{backend}");
        match backend {
            "tavily" => {
                assert_eq!(request_header(request, "authorization"), Some("Bearer KEY"));
                let body = json!({"query": "rust & c", "max_results": 10, "search_depth": "basic", "include_domains": [], "exclude_domains": []});
                assert_eq!(request_json(request), body);
            }
            "google" => assert_eq!(request_header(request, "x-goog-api-key"), Some("KEY")),
            "loom" => assert_eq!(request_json(request), json!({"query": "rust & c", "max_results": 10})),
            "brave" => assert_eq!(request_header(request, "x-subscription-token"), Some("KEY")),
            _ => {}
        }
        let first = match backend {
            "brave" => {
                json!({"title": "The Rust Language", "url": "https://www.rust-lang.org/", "snippet": "Fast & safe."})
            }
            _ => rust.clone(),
        };
        assert_eq!(hits(&output)[0], first, "{backend}");
    }
}

#[test]
fn results_are_text_and_structured() {
    let (result, _) = search("brave", vec![reply(200, BRAVE)], json!({"query": "rust"}));
    let output = result.unwrap();
    assert_eq!(
        output.as_text(),
        "1. The Rust Language\n   https://www.rust-lang.org/\n   Fast & safe.\n2. Rust (game)\n   https://rust.facepunch.com/\n   A game\n"
    );
    let structured = output.structured.unwrap();
    assert_eq!(structured["query"], "rust");
    assert!(structured["durationSeconds"].as_f64().unwrap() >= 0.0);
    let (result, _) = search("searxng", vec![reply(200, SEARXNG)], json!({"query": "rust"}));
    assert!(result.unwrap().as_text().ends_with("(Engines that did not answer: google (timeout))\n"));
}

#[test]
fn empty_results_are_not_an_error() {
    for (backend, body) in [
        ("brave", r#"{"type":"search","query":{"original":"x"},"mixed":{}}"#),
        ("google", r#"{"kind":"customsearch#search","searchInformation":{"totalResults":"0"}}"#),
        ("tavily", r#"{"query":"x","results":[],"response_time":1}"#),
        ("searxng", r#"{"query":"x","results":[],"unresponsive_engines":[]}"#),
        ("loom", r#"{"query":"x","results":[]}"#),
        ("endpoint", "[]"),
    ] {
        let (result, _) = search(backend, vec![reply(200, body)], json!({"query": "x"}));
        let output = result.unwrap();
        assert_eq!(
            (output.as_text().as_str(), hits(&output)),
            ("Nothing found for \"x\".\n", json!([])),
            "{backend}"
        );
    }
}

#[test]
fn domains_filter_request_and_results() {
    let only = json!({"query": "rust", "allowed_domains": ["rust-lang.org"]});
    let (result, world) = search("brave", vec![reply(200, BRAVE)], only.clone());
    assert_eq!(hits(&result.unwrap()).as_array().unwrap().len(), 1);
    assert!(request_line(&world.http.requests()[0]).contains("q=rust+site%3Arust-lang.org&"));
    let (_, world) = search("tavily", vec![reply(200, TAVILY)], only);
    assert_eq!(request_json(&world.http.requests()[0])["include_domains"], json!(["rust-lang.org"]));
    let never = json!({"query": "rust", "blocked_domains": ["rust-lang.org"]});
    let (result, _) = search("endpoint", vec![reply(200, LOOM)], never);
    assert_eq!(hits(&result.unwrap())[0]["url"], "https://two.example/");
    let both = json!({"query": "rust", "allowed_domains": ["a.com"], "blocked_domains": ["b.com"]});
    let (result, _) = search("brave", vec![], both);
    assert_eq!(result.unwrap_err().kind, ErrorKind::InvalidArguments);
}

#[test]
fn rate_limit_is_retried_with_progress() {
    let limits: [(&str, &str, HttpResponse); 3] = [
        (
            "brave",
            BRAVE,
            reply_with(
                429,
                r#"{"type":"ErrorResponse","error":{"code":"RATE_LIMITED","detail":"Request rate limit exceeded for plan.","status":429}}"#,
                &[
                    ("X-RateLimit-Limit", "1, 15000"),
                    ("X-RateLimit-Remaining", "0, 1000"),
                    ("X-RateLimit-Reset", "0, 1419704"),
                ],
            ),
        ),
        (
            "tavily",
            TAVILY,
            reply_with(
                429,
                r#"{"detail":{"error":"Your request has been blocked due to excessive requests."}}"#,
                &[("Retry-After", "0")],
            ),
        ),
        ("loom", LOOM, reply_with(503, r#"{"error":"rate limit"}"#, &[("Retry-After", "0")])),
    ];
    for (backend, body, limited) in limits {
        let (result, world) = search(backend, vec![limited, reply(200, body)], json!({"query": "rust"}));
        result.unwrap();
        assert_eq!(world.http.requests().len(), 2, "{backend}");
        let progress = world.progress_reports();
        let message = progress[0].message.as_deref().unwrap();
        assert!(message.contains("attempt 2 of 3"), "{message}");
    }
}

#[test]
fn lasting_rate_limit_is_an_error_with_delay() {
    let limited = reply_with(
        429,
        r#"{"error":{"code":429,"message":"Quota exceeded for quota metric 'Queries'","status":"RESOURCE_EXHAUSTED"}}"#,
        &[("Retry-After", "0")],
    );
    let (result, world) =
        search("google", vec![limited.clone(), limited.clone(), limited], json!({"query": "x"}));
    let error = result.unwrap_err();
    assert_eq!((world.http.requests().len(), error.kind), (3, ErrorKind::ExecutionFailed));
    assert_eq!(error.details.unwrap()["status"], 429);
    let month =
        reply_with(429, "{}", &[("X-RateLimit-Remaining", "1, 0"), ("X-RateLimit-Reset", "1, 1419704")]);
    let (result, world) = search("brave", vec![month], json!({"query": "x"}));
    let error = result.unwrap_err();
    assert!(world.http.requests().len() == 1 && error.message.contains("retry after 1419704 s"), "{error}");
}

#[test]
fn errors_have_server_message_and_advice_but_no_key() {
    for (backend, status, body, words) in [
        (
            "brave",
            422,
            r#"{"type":"ErrorResponse","error":{"code":"SUBSCRIPTION_TOKEN_INVALID","detail":"The provided subscription token KEY is invalid."}}"#,
            "Brave Search answered HTTP 422 Text: The provided subscription token *** is invalid.; check BRAVE_API_KEY",
        ),
        (
            "tavily",
            401,
            r#"{"detail":{"error":"Unauthorized: missing or invalid API key."}}"#,
            "check TAVILY_API_KEY",
        ),
        (
            "tavily",
            432,
            r#"{"detail":{"error":"This request exceeds your plan's set usage limit."}}"#,
            "will not help",
        ),
        (
            "google",
            403,
            r#"{"error":{"code":403,"message":"Daily Limit Exceeded","errors":[{"reason":"dailyLimitExceeded"}]}}"#,
            "Daily Limit Exceeded",
        ),
        ("searxng", 403, "<!doctype html><title>403 Forbidden</title>", "add json to search.formats"),
        (
            "loom",
            500,
            r#"{"error":"CSE not configured"}"#,
            "CSE not configured; Google CSE may not be set up",
        ),
        ("endpoint", 302, "", "The search endpoint answered HTTP 302"),
    ] {
        let (result, world) = search(backend, vec![reply(status, body)], json!({"query": "x"}));
        let error = result.unwrap_err();
        assert!(error.message.contains(words) && !error.message.contains("KEY is"), "{error}");
        assert_eq!(world.http.requests().len(), 1, "{backend} is not asked again");
    }
}

#[test]
fn malformed_responses_are_errors() {
    for backend in ["brave", "searxng", "tavily", "google", "loom"] {
        let (result, _) = search(backend, vec![reply(200, "<html>a login page")], json!({"query": "x"}));
        let error = result.unwrap_err();
        assert!(
            error.kind == ErrorKind::Serialization && error.message.contains("did not answer with JSON"),
            "{error}"
        );
        let (result, _) =
            search(backend, vec![reply(200, r#"{"unlike":"anything"}"#)], json!({"query": "x"}));
        assert_eq!(result.unwrap_err().kind, ErrorKind::Serialization, "{backend}");
        let junk = r#"{"results":[1,null,{"url":"javascript:x"},{"title":"no url"}],"items":[1],"web":{"results":[[]]}}"#;
        let (result, _) = search(backend, vec![reply(200, junk)], json!({"query": "x"}));
        assert_eq!(hits(&result.unwrap()), json!([]), "{backend}");
    }
    let huge = HttpResponse { total_bytes: 3 << 20, ..reply(200, vec![b'x'; 2 << 20]) };
    let (result, _) = search("searxng", vec![huge], json!({"query": "x"}));
    assert!(result.unwrap_err().message.contains("answered with more than 2097152 bytes"));
}

#[test]
fn missing_backend_says_how_to_set_one_up() {
    let world = fixture_world([]);
    let error = call(&world, &claude(json!({})), "WebSearch", json!({"query": "x"})).unwrap_err();
    assert!(error.message.starts_with("no web search is set up here"), "{error}");
    let chosen = json!({"web_search": {"backend": "brave"}});
    let error = call(&world, &claude(chosen), "WebSearch", json!({"query": "x"})).unwrap_err();
    assert!(error.message.contains("BRAVE_API_KEY"), "{error}");
    let error = call(&world, &claude(json!({})), "WebSearch", json!({"query": " "})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}

#[test]
fn loom_search_uses_its_server_and_shape() {
    let world = fixture_world([reply(200, LOOM)]);
    let dialect =
        loom(json!({"loom": {"server_url": SERVER}, "web_search": {"endpoint": "http://127.0.0.1:1"}}));
    let output = call(&world, &dialect, "web_search", json!({"query": "rust", "max_results": 1})).unwrap();
    let shape = r#"{"results":[{"title":"Rust","url":"https://www.rust-lang.org/","snippet":"A language"}]}"#;
    assert_eq!(output.as_text(), shape);
    assert_eq!(request_line(&world.http.requests()[0]), "POST /proxy/cse");
    assert_eq!(request_json(&world.http.requests()[0]), json!({"query": "rust", "max_results": 1}));
    let hosts = planned_hosts(&loom(json!({})), "web_search", json!({"query": "x"}));
    assert_eq!(hosts, ["127.0.0.1:8080"]);
}

#[test]
fn clawft_passes_results_through() {
    let raw = r#"{"took":3,"results":[{"name":"odd","href":1},{"b":2},{"c":3}]}"#;
    for (body, results) in [
        (raw, json!([{"name": "odd", "href": 1}, {"b": 2}])),
        ("[1,2,3]", json!([1, 2])),
        (r#"{"unlike":"anything"}"#, json!({"unlike": "anything"})),
        ("plain words", json!("plain words")),
    ] {
        let world = fixture_world([reply(200, body)]);
        let arguments = json!({"query": "rust", "num_results": 2});
        let output = call(&world, &clawft(settings("endpoint")), "web_search", arguments).unwrap();
        assert_eq!(output.structured.unwrap(), json!({"query": "rust", "results": results}));
        assert_eq!(request_line(&world.http.requests()[0]), "GET /find?lang=en&q=rust&count=2");
    }
}

#[test]
fn clawft_without_endpoint_is_informative() {
    let arguments = json!({"query": "rust async patterns"});
    let output = call(&fixture_world([]), &clawft(json!({})), "web_search", arguments).unwrap();
    assert!(!output.is_error());
    assert_eq!(
        output.structured.unwrap(),
        json!({
            "error": "web search not configured",
            "message": "No search API endpoint is configured. Set 'tools.web_search.endpoint' in your config.",
            "query": "rust async patterns",
        })
    );
    assert!(planned_hosts(&clawft(json!({})), "web_search", json!({"query": "x"})).is_empty());
}
