//! Each search backend and the oracle against a server that answers in its real format.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on has failed, and it serves itself"
)]

#[path = "../../haft-bus/tests/it/http_fixture.rs"]
mod http_fixture;
mod world;

use haft_tool::{ErrorKind, Output, ToolError, Value, json};
use http_fixture::{Response, Server, response};
use world::{TestWorld, claude, clawft, loom};

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

/// The settings that lead each backend to `url`.
fn settings(backend: &str, url: &str) -> Value {
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
    answers: Vec<Response>,
    arguments: Value,
) -> (Result<Output, ToolError>, Server, TestWorld) {
    let server = Server::new(answers);
    let world = TestWorld::default();
    let result = world.call(&claude(settings(backend, &server.url)), "WebSearch", arguments);
    (result, server, world)
}

fn hits(output: &Output) -> Value {
    output.structured.as_ref().unwrap()["results"].clone()
}

#[test]
fn every_backend_is_asked_and_read_in_its_own_way() {
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
        let (result, server, _) = search(backend, vec![response(200, body)], json!({"query": "rust & c"}));
        let output = result.unwrap();
        let asked = &server.requests()[0];
        assert_eq!(asked.line, line, "{backend}");
        assert_eq!(asked.header("accept"), Some("application/json"), "{backend}");
        match backend {
            "tavily" => {
                assert_eq!(asked.header("authorization"), Some("Bearer KEY"));
                let body = json!({"query": "rust & c", "max_results": 10, "search_depth": "basic", "include_domains": [], "exclude_domains": []});
                assert_eq!(asked.json(), body);
            }
            "google" => assert_eq!(asked.header("x-goog-api-key"), Some("KEY")),
            "loom" => assert_eq!(asked.json(), json!({"query": "rust & c", "max_results": 10})),
            "brave" => assert_eq!(asked.header("x-subscription-token"), Some("KEY")),
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
fn results_are_numbered_lines_for_the_model_and_values_for_programs() {
    let (result, ..) = search("brave", vec![response(200, BRAVE)], json!({"query": "rust"}));
    let output = result.unwrap();
    assert_eq!(
        output.as_text(),
        "1. The Rust Language\n   https://www.rust-lang.org/\n   Fast & safe.\n2. Rust (game)\n   https://rust.facepunch.com/\n   A game\n"
    );
    let structured = output.structured.unwrap();
    assert_eq!(structured["query"], "rust");
    assert!(structured["durationSeconds"].as_f64().unwrap() >= 0.0);
    let (result, ..) = search("searxng", vec![response(200, SEARXNG)], json!({"query": "rust"}));
    assert!(result.unwrap().as_text().ends_with("(Engines that did not answer: google (timeout))\n"));
}

#[test]
fn nothing_found_is_an_answer() {
    for (backend, body) in [
        ("brave", r#"{"type":"search","query":{"original":"x"},"mixed":{}}"#),
        ("google", r#"{"kind":"customsearch#search","searchInformation":{"totalResults":"0"}}"#),
        ("tavily", r#"{"query":"x","results":[],"response_time":1}"#),
        ("searxng", r#"{"query":"x","results":[],"unresponsive_engines":[]}"#),
        ("loom", r#"{"query":"x","results":[]}"#),
        ("endpoint", "[]"),
    ] {
        let (result, ..) = search(backend, vec![response(200, body)], json!({"query": "x"}));
        let output = result.unwrap();
        assert_eq!(
            (output.as_text().as_str(), hits(&output)),
            ("Nothing found for \"x\".\n", json!([])),
            "{backend}"
        );
    }
}

#[test]
fn domains_are_told_to_the_backend_and_held_to_afterwards() {
    let only = json!({"query": "rust", "allowed_domains": ["rust-lang.org"]});
    let (result, server, _) = search("brave", vec![response(200, BRAVE)], only.clone());
    assert_eq!(hits(&result.unwrap()).as_array().unwrap().len(), 1);
    assert!(
        server.requests()[0].line.contains("q=rust+site%3Arust-lang.org&"),
        "{}",
        server.requests()[0].line
    );
    let (_, server, _) = search("tavily", vec![response(200, TAVILY)], only);
    assert_eq!(server.requests()[0].json()["include_domains"], json!(["rust-lang.org"]));
    let never = json!({"query": "rust", "blocked_domains": ["rust-lang.org"]});
    let (result, ..) = search("endpoint", vec![response(200, LOOM)], never);
    assert_eq!(hits(&result.unwrap())[0]["url"], "https://two.example/");
    let both = json!({"query": "rust", "allowed_domains": ["a.com"], "blocked_domains": ["b.com"]});
    let (result, ..) = search("brave", vec![], both);
    assert_eq!(result.unwrap_err().kind, ErrorKind::InvalidArguments);
}

#[test]
fn a_rate_limit_is_waited_for_and_seen() {
    let limits: [(&str, &str, Response); 3] = [
        (
            "brave",
            BRAVE,
            response(429, r#"{"type":"ErrorResponse","error":{"code":"RATE_LIMITED","detail":"Request rate limit exceeded for plan.","status":429}}"#)
                .header("X-RateLimit-Limit", "1, 15000")
                .header("X-RateLimit-Remaining", "0, 1000")
                .header("X-RateLimit-Reset", "0, 1419704"),
        ),
        (
            "tavily",
            TAVILY,
            response(429, r#"{"detail":{"error":"Your request has been blocked due to excessive requests."}}"#).header("Retry-After", "0"),
        ),
        ("loom", LOOM, response(503, r#"{"error":"rate limit"}"#).header("Retry-After", "0")),
    ];
    for (backend, body, limited) in limits {
        let (result, server, world) =
            search(backend, vec![limited, response(200, body)], json!({"query": "rust"}));
        result.unwrap();
        assert_eq!(server.requests().len(), 2, "{backend}");
        let said = world.progress();
        assert!(said[0].contains("attempt 2 of 3"), "{said:?}");
    }
}

#[test]
fn a_limit_that_stays_is_an_error_with_the_wait() {
    let limited = response(429, r#"{"error":{"code":429,"message":"Quota exceeded for quota metric 'Queries'","status":"RESOURCE_EXHAUSTED"}}"#)
        .header("Retry-After", "0");
    let (result, server, _) =
        search("google", vec![limited.clone(), limited.clone(), limited], json!({"query": "x"}));
    let error = result.unwrap_err();
    assert_eq!((server.requests().len(), error.kind), (3, ErrorKind::ExecutionFailed));
    assert_eq!(error.details.unwrap()["status"], 429);
    let month =
        response(429, "{}").header("X-RateLimit-Remaining", "1, 0").header("X-RateLimit-Reset", "1, 1419704");
    let (result, server, _) = search("brave", vec![month], json!({"query": "x"}));
    let error = result.unwrap_err();
    assert!(server.requests().len() == 1 && error.message.contains("left alone for 1419704 s"), "{error}");
}

#[test]
fn errors_say_what_the_server_said_and_what_to_do_but_never_the_key() {
    for (backend, status, body, words) in [
        (
            "brave",
            422,
            r#"{"type":"ErrorResponse","error":{"code":"SUBSCRIPTION_TOKEN_INVALID","detail":"The provided subscription token KEY is invalid."}}"#,
            "Brave Search answered HTTP 422 Said: The provided subscription token *** is invalid.; check BRAVE_API_KEY",
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
        let (result, server, _) = search(backend, vec![response(status, body)], json!({"query": "x"}));
        let error = result.unwrap_err();
        assert!(error.message.contains(words) && !error.message.contains("KEY is"), "{error}");
        assert_eq!(server.requests().len(), 1, "{backend} is not asked again");
    }
}

#[test]
fn answers_that_make_no_sense_are_told_as_such() {
    for backend in ["brave", "searxng", "tavily", "google", "loom"] {
        let (result, ..) = search(backend, vec![response(200, "<html>a login page")], json!({"query": "x"}));
        let error = result.unwrap_err();
        assert!(error.kind == ErrorKind::Serialization && error.message.contains("not JSON"), "{error}");
        let (result, ..) =
            search(backend, vec![response(200, r#"{"unlike":"anything"}"#)], json!({"query": "x"}));
        assert_eq!(result.unwrap_err().kind, ErrorKind::Serialization, "{backend}");
        let junk = r#"{"results":[1,null,{"url":"javascript:x"},{"title":"no url"}],"items":[1],"web":{"results":[[]]}}"#;
        let (result, ..) = search(backend, vec![response(200, junk)], json!({"query": "x"}));
        assert_eq!(hits(&result.unwrap()), json!([]), "{backend}");
    }
    let huge = format!("{{\"results\":[],\"x\":\"{}\"}}", "x".repeat(3 << 20));
    let (result, ..) = search("searxng", vec![response(200, huge)], json!({"query": "x"}));
    assert!(result.unwrap_err().message.contains("answered with more than 2097152 bytes"));
}

#[test]
fn a_search_that_nobody_set_up_says_how() {
    let world = TestWorld::default();
    let error = world.call(&claude(json!({})), "WebSearch", json!({"query": "x"})).unwrap_err();
    assert!(error.message.starts_with("no web search is set up here"), "{error}");
    let chosen = json!({"web_search": {"backend": "brave"}});
    let error = world.call(&claude(chosen), "WebSearch", json!({"query": "x"})).unwrap_err();
    assert!(error.message.contains("BRAVE_API_KEY"), "{error}");
    let error = world.call(&claude(json!({})), "WebSearch", json!({"query": " "})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}

#[test]
fn loom_searches_through_its_server_and_gives_its_documented_shape() {
    let server = Server::new(vec![response(200, LOOM)]);
    let world = TestWorld::default();
    let dialect =
        loom(json!({"loom": {"server_url": server.url}, "web_search": {"endpoint": "http://127.0.0.1:1"}}));
    let output = world.call(&dialect, "web_search", json!({"query": "rust", "max_results": 1})).unwrap();
    let shape = r#"{"results":[{"title":"Rust","url":"https://www.rust-lang.org/","snippet":"A language"}]}"#;
    assert_eq!(output.as_text(), shape);
    assert_eq!(server.requests()[0].line, "POST /proxy/cse");
    assert_eq!(server.requests()[0].json(), json!({"query": "rust", "max_results": 1}));
    let reached = world::reached(&loom(json!({})), "web_search", json!({"query": "x"}));
    assert_eq!(reached, ["127.0.0.1:8080"]);
}

#[test]
fn clawft_keeps_results_as_they_came() {
    let raw = r#"{"took":3,"results":[{"name":"odd","href":1},{"b":2},{"c":3}]}"#;
    for (body, results) in [
        (raw, json!([{"name": "odd", "href": 1}, {"b": 2}])),
        ("[1,2,3]", json!([1, 2])),
        (r#"{"unlike":"anything"}"#, json!({"unlike": "anything"})),
        ("plain words", json!("plain words")),
    ] {
        let server = Server::new(vec![response(200, body)]);
        let dialect = clawft(settings("endpoint", &server.url));
        let output = TestWorld::default()
            .call(&dialect, "web_search", json!({"query": "rust", "num_results": 2}))
            .unwrap();
        assert_eq!(output.structured.unwrap(), json!({"query": "rust", "results": results}));
        assert_eq!(server.requests()[0].line, "GET /find?lang=en&q=rust&count=2");
    }
}

#[test]
fn clawft_without_an_endpoint_informs() {
    let output = TestWorld::default()
        .call(&clawft(json!({})), "web_search", json!({"query": "rust async patterns"}))
        .unwrap();
    assert!(!output.is_error());
    assert_eq!(
        output.structured.unwrap(),
        json!({
            "error": "web search not configured",
            "message": "No search API endpoint is configured. Set 'tools.web_search.endpoint' in your config.",
            "query": "rust async patterns",
        })
    );
    assert!(world::reached(&clawft(json!({})), "web_search", json!({"query": "x"})).is_empty());
}
