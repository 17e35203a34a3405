//! The OpenAPI document: it is valid, and the answers conform to it.

use std::process::Command;

use serde_json::{Value, json};

use super::content::history;
use crate::fixture::cli::pipe;
use crate::fixture::peers::agent;
use crate::fixture::serve::{ACT, ServeFixture, ServeProcess};

/// The document, with schemas that allow no undocumented fields.
struct Documented {
    document: Value,
}

impl Documented {
    fn read(server: &ServeProcess) -> Self {
        let mut document = server.get("/openapi.json");
        close(&mut document["components"]["schemas"]);
        Self { document }
    }

    /// Makes a request and checks its answer.
    #[track_caller]
    fn ask(
        &self,
        server: &ServeProcess,
        method: &str,
        route: &str,
        target: &str,
        body: Option<&Value>,
    ) -> Value {
        let operation = &self.document["paths"][format!("/api/v1{route}")][method];
        assert!(operation.is_object(), "{method} {route} is not documented");
        let asked: Vec<&str> =
            target.split_once('?').map_or(Vec::new(), |(_, query)| query.split('&').collect());
        for parameter in asked {
            let name = parameter.split_once('=').unwrap().0;
            let known = operation["parameters"].as_array().unwrap().iter().any(|known| known["name"] == name);
            assert!(known, "{route}: the parameter {name} is not documented");
        }
        if let Some(body) = body {
            self.check(&operation["requestBody"]["content"]["application/json"]["schema"], body, route);
        }
        let answer = server.api(ACT, &method.to_uppercase(), target, body);
        let said = if answer.status == 200 { "200" } else { "default" };
        let schema = &operation["responses"][said]["content"]["application/json"]["schema"];
        self.check(schema, &answer.json(), &format!("{method} {target}: {}", answer.status));
        answer.json()
    }

    #[track_caller]
    fn check(&self, schema: &Value, value: &Value, what: &str) {
        assert!(schema.is_object(), "{what}: no schema");
        let mut schema = schema.clone();
        schema["components"] = self.document["components"].clone();
        let misfit = jsonschema::draft202012::validate(&schema, value).err();
        assert!(misfit.is_none(), "{what}: {}: {value:#}", misfit.unwrap());
    }
}

/// Forbids undocumented fields.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_struct = fields.get("properties").is_some_and(Value::is_object)
                && fields.get("type") == Some(&json!("object"));
            if is_struct && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(parts) => parts.iter_mut().for_each(close),
        _ => {}
    }
}

#[test]
fn the_document_is_valid_for_its_makers() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let script = "import json, sys\nfrom openapi_spec_validator import validate\nvalidate(json.load(sys.stdin))\nprint('valid')";
    let mut command = Command::new(agent("HAFT_OPENAPI_PYTHON"));
    command.args(["-c", script]);
    let document = server.get("/openapi.json");
    let checked = pipe(command, document.to_string().as_bytes());
    assert_eq!(checked.stdout.trim(), "valid", "{}", checked.stderr);
    assert_eq!(document["openapi"], "3.1.0");
}

#[test]
fn parameters_have_their_types_and_everything_that_answers_is_there() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let document = server.get("/openapi.json");
    let paths = document["paths"].as_object().unwrap();
    let type_of = |path: &str, name: &str| {
        let parameters = paths[path]["get"]["parameters"].as_array().unwrap();
        let found = parameters.iter().find(|parameter| parameter["name"] == name);
        found.unwrap()["schema"]["type"].as_str().unwrap().to_owned()
    };
    for (path, name, expected) in [
        ("/api/v1/calls", "before", "integer"),
        ("/api/v1/calls", "limit", "integer"),
        ("/api/v1/calls", "failed", "boolean"),
        ("/api/v1/calls", "text", "string"),
        ("/api/v1/calls/{id}", "id", "integer"),
        ("/api/v1/sessions/{id}", "id", "string"),
        ("/api/v1/sessions", "before", "string"),
        ("/api/v1/sessions/{id}/messages", "after", "integer"),
        ("/api/v1/diff", "before", "string"),
        ("/api/v1/diff", "after", "string"),
        ("/api/v1/events", "after", "integer"),
    ] {
        assert_eq!(type_of(path, name), expected, "{path} {name}");
    }
    for (path, methods) in paths {
        for operation in methods.as_object().unwrap().values() {
            let description = operation["description"].as_str().unwrap();
            assert!(description.starts_with("Needs "), "{path}: {description}");
        }
    }
    for path in ["/metrics", "/healthz"] {
        assert!(paths.contains_key(path), "{path}");
        let token = format!("Authorization: Bearer {ACT}");
        assert_eq!(server.raw("GET", path, &[&token], b"").status, 200);
    }
}

#[test]
fn every_answer_is_as_documented() {
    let fixture = ServeFixture::new();
    history(&fixture);
    let server = fixture.serve();
    let documented = Documented::read(&server);
    let get = |route: &str, target: &str| documented.ask(&server, "get", route, target, None);
    let post =
        |route: &str, target: &str, body: Value| documented.ask(&server, "post", route, target, Some(&body));
    let workspace = fixture.workspace();
    get("/meta", "/meta");
    get("/now", "/now");
    let sessions = get("/sessions", &format!("/sessions?q=seq&workspace={workspace}&limit=5"));
    let id = sessions["sessions"][0]["id"].as_str().unwrap();
    get("/sessions/{id}", &format!("/sessions/{id}"));
    get("/sessions/{id}", "/sessions/nowhere");
    let query = "limit=50&text=a&tool=Bash&failed=0&changed=0&before=99";
    let calls = get("/sessions/{id}/calls", &format!("/sessions/{id}/calls?{query}"));
    assert!(!calls["calls"].as_array().unwrap().is_empty());
    get("/sessions/{id}/messages", &format!("/sessions/{id}/messages?after=0&limit=5"));
    get("/calls", &format!("/calls?workspace={workspace}"));
    get("/calls", "/calls?limit=x");
    for call in 1..=7 {
        get("/calls/{id}", &format!("/calls/{call}"));
        let changes = get("/calls/{id}/changes", &format!("/calls/{call}/changes?offset=0&limit=9&path="));
        for change in changes["changes"].as_array().unwrap() {
            let hash = |side: &str| change[side]["hash"].as_str().unwrap_or_default().to_owned();
            let path = change["path"].as_str().unwrap().replace(' ', "%20");
            let (before, after) = (hash("before"), hash("after"));
            get("/diff", &format!("/diff?path={path}&workspace={workspace}&before={before}&after={after}"));
        }
    }
    get("/diff", &format!("/diff?path=/x&after={}", "0".repeat(64)));
    get("/calls/{id}/output", "/calls/6/output?from=100");
    get("/blobs/{hash}", "/blobs/no-hash");
    get("/files", &format!("/files?workspace={workspace}&until=5&path=a&offset=0&limit=5"));
    get("/files", &format!("/files?session={id}"));
    get("/questions", "/questions");
    get("/rules", &format!("/rules?workspace={workspace}"));
    get("/tools", &format!("/tools?dialect=loom&workspace={workspace}"));
    let what = json!({"calls": [7]});
    let plan = post("/undo/preview", "/undo/preview", json!({"what": what, "paths": [], "merge": true}));
    let shown = plan["plan"].clone();
    post("/undo", "/undo", json!({"what": what, "plan": "0", "force": false}));
    post("/undo", "/undo", json!({"what": what, "paths": [], "merge": true, "plan": shown}));
    let explained = json!({"workspace": workspace, "tool": "Bash", "input": {"command": "ls"}});
    post("/rules/explain", "/rules/explain", explained);
    let rule = json!({"workspace": workspace, "verdict": "ask", "text": "Bash(git push *)"});
    post("/rules", "/rules", rule.clone());
    post("/rules/remove", "/rules/remove", rule);
    post("/questions/{id}/answer", "/questions/1/answer", json!({"answer": "allow", "hold": "session"}));
    post("/questions/{id}/answer", "/questions/1/answer", json!({"answer": "deny", "reason": "no"}));
    post("/questions/{id}/answer", "/questions/1/answer", json!({"answer": "choices", "choices": [["a"]]}));
    let attachment = json!({"name": "a.txt", "data": "YQ=="});
    post(
        "/sessions/{id}/prompt",
        "/sessions/nowhere/prompt",
        json!({"prompt": "x", "attachments": [attachment]}),
    );
    post("/runs", "/runs", json!({"prompt": "x", "provider": "nowhere", "model": "m"}));
}
