//! Invalid requests.

use haft_model::{Model, ModelError, ModelErrorKind, ModelEvent, ModelResponse, TurnRequest};
use haft_server::proxy::{LoomReply, LoomRequest, MAX_PROXY_BODY_BYTES, SearchSource};
use haft_tool::{Cancel, Value, json};

use super::fixture::{ProxyFixture, proxied};

/// A model that refuses every request with one kind of error, whose status therefore shows that the model was asked.
struct Reached;

impl Model for Reached {
    fn provider(&self) -> &'static str {
        "reached"
    }

    fn model(&self) -> &'static str {
        "reached"
    }

    fn respond(
        &self,
        request: &TurnRequest<'_>,
        _: &mut dyn FnMut(ModelEvent),
        _: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        // Requests that reach a model have the form that providers accept.
        assert!(!request.conversation.messages.is_empty());
        assert!(request.conversation.unanswered_calls().is_empty());
        assert!(request.options.model.as_ref().is_some_and(|name| !name.is_empty()));
        Err(ModelError::new(ModelErrorKind::Timeout, "reached", "reached"))
    }
}

const REACHED: u16 = 504;

fn with(field: &str, value: Value) -> Value {
    let mut request = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
    request[field] = value;
    request
}

#[test]
fn fields_that_do_not_fit_are_named() {
    let fixture = ProxyFixture::openai(proxied(Reached));
    for (field, value, words) in [
        ("model", json!(null), "model: expected the name of a model"),
        ("model", json!(7), "model: expected a text, got the number 7"),
        ("model", json!("a/../../files?x"), "model: \"a/../../files?x\" is not the name of a model"),
        ("model", json!("a/../b"), "model: "),
        ("model", json!("/a"), "model: "),
        ("model", json!("m%2e"), "model: "),
        ("model", json!("m".repeat(257)), "model: "),
        ("max_tokens", json!(0), "max_tokens: expected a number from 1"),
        ("max_tokens", json!(-1), "max_tokens: expected a number from 1"),
        ("max_tokens", json!(1_u64 << 32), "max_tokens: expected a number from 1"),
        ("max_tokens", json!(1.5), "max_tokens: expected a whole number"),
        ("max_tokens", json!("9"), "max_tokens: expected a whole number, got a text"),
        ("temperature", json!(-0.1), "temperature: expected a number from 0 to 2"),
        ("temperature", json!(2.1), "temperature: expected a number from 0 to 2"),
        ("temperature", json!("hot"), "temperature: expected a number, got a text"),
        ("tools", json!({}), "tools: expected a list, got an object"),
        ("tools", json!([3]), "tools[0]: expected an object, got the number 3"),
        ("tools", json!([{"description": "x"}]), "tools[0].name: expected a text"),
        (
            "tools",
            json!([{"name": "a", "input_schema": "x"}]),
            "tools[0].input_schema: expected a JSON Schema",
        ),
        ("tools", json!([{"name": "a"}, {"name": "a"}]), "tools[1].name: \"a\" is the name of two tools"),
        ("messages", json!(null), "messages: expected a list"),
    ] {
        let request = with(field, value);
        for path in ["openai/complete", "openai/stream"] {
            let answered = fixture.post(path, request.to_string());
            assert_eq!(answered.status, 400, "{request}");
            assert!(answered.error().starts_with(words), "{request}: {}", answered.error());
        }
    }
}

#[test]
fn optional_fields_may_be_null_or_absent_and_unknown_ones_are_ignored() {
    let fixture = ProxyFixture::openai(proxied(Reached));
    for (field, value) in [
        ("max_tokens", json!(null)),
        ("temperature", json!(null)),
        ("temperature", json!(2)),
        ("tools", json!(null)),
        ("tools", json!([{"name": "a"}])),
        ("stop", json!(["\n"])),
        ("model", json!("publishers/meta/models/llama-4.1:free@x")),
    ] {
        let request = with(field, value);
        assert_eq!(fixture.post("openai/complete", request.to_string()).status, REACHED, "{request}");
    }
}

#[test]
fn bodies_that_are_no_object_are_refused() {
    let fixture = ProxyFixture::openai(proxied(Reached));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_schema = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],"tools":[{{"name":"a","input_schema":{}1{}}}]}}"#,
        "{\"a\":".repeat(10_000),
        "}".repeat(10_000)
    );
    for body in
        ["", " ", "{", "[]", "null", "\"x\"", "{}}", "\u{feff}{}", "{\"model\":1e999}", &deep, &deep_schema]
    {
        let answered = fixture.post("openai/complete", body);
        assert_eq!(answered.status, 400, "{}", answered.body);
    }
    assert_eq!(fixture.post("openai/complete", b"{\"model\":\"\xff\"}").status, 400);
    let huge = vec![b' '; MAX_PROXY_BODY_BYTES + 1];
    assert_eq!(fixture.post("openai/complete", &huge).status, 413);
    assert_eq!(fixture.post("cse", &huge).status, 413);
}

#[test]
fn a_long_conversation_is_accepted() {
    let fixture = ProxyFixture::openai(proxied(Reached));
    let messages: Vec<Value> = (0..20_000)
        .map(|number| {
            json!({"role": if number % 2 == 0 { "user" } else { "assistant" }, "content": "x".repeat(200)})
        })
        .collect();
    assert_eq!(
        fixture.post("openai/complete", with("messages", json!(messages)).to_string()).status,
        REACHED
    );
}

#[test]
fn paths_and_methods_that_do_not_exist_are_refused() {
    let fixture = ProxyFixture::openai(proxied(Reached));
    let body = with("max_tokens", json!(1)).to_string();
    for path in
        ["", "openai", "openai/", "openai/complete/", "openai/models", "mistral/complete", "cse/x", "CSE"]
    {
        assert_eq!(fixture.post(path, &body).status, 404, "{path}");
    }
    for (method, status) in [("GET", 405), ("PUT", 405), ("post", 405), ("POST", REACHED)] {
        let request = LoomRequest { method, path: "openai/complete", body: body.as_bytes() };
        let reply = fixture.proxies.respond(&request, &Cancel::new(), &mut |_| true);
        let LoomReply::Whole(response) = reply else { panic!("streamed") };
        assert_eq!(response.status, status, "{method}");
        assert_eq!(response.headers.contains(&("allow", "POST".to_owned())), status == 405);
    }
}

#[test]
fn no_body_makes_the_proxies_panic() {
    let models = ProxyFixture::openai(proxied(Reached));
    let home = tempfile::tempdir().unwrap();
    let pages = home.path().join("pages.json");
    std::fs::write(&pages, r#"[{"title":"Rust","url":"https://rust-lang.org/","snippet":"x"}]"#).unwrap();
    let search = ProxyFixture::search(SearchSource::File(pages));
    let whole = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": "y", "tool_calls": [{"id": "a", "tool_name": "t", "arguments_json": {"k": [1, "2", null]}}]},
            {"role": "tool", "tool_call_id": "a", "name": "t", "content": "z"},
        ],
        "tools": [{"name": "t", "description": "d", "input_schema": {"type": "object", "properties": {"k": {}}}}],
        "max_tokens": 16,
        "temperature": 0.5,
    })
    .to_string();
    let orphan = json!({"model": "m", "messages": [{"role": "tool", "tool_call_id": "a", "content": "z"}]})
        .to_string();
    let query = json!({"query": "rust OR go", "max_results": 3}).to_string();
    haft_fuzz::check(&[whole.as_bytes(), orphan.as_bytes(), query.as_bytes()], |body| {
        for path in ["openai/complete", "openai/stream"] {
            let status = models.post(path, body).status;
            assert!([400, REACHED].contains(&status), "{status}");
        }
        assert!([200, 400].contains(&search.post("cse", body).status));
    });
}
