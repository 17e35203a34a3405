//! `WebFetch` of the `claude` dialect.

use std::sync::{Arc, Mutex};

use haft::{Cancel, Content, Host, ModelRequest, ModelRole, Network, Runtime, ToolError};
use serde_json::{Value, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::http_server::{Server, answer, page};

fn fetch(cli: &CliFixture, server: &Server, arguments: &Value) -> Value {
    let ran = cli.haft(&["call", "WebFetch", &arguments.to_string(), "--json", "--network", &server.entry()]);
    let value = serde_json::from_str(&ran.stdout);
    assert!(value.is_ok(), "{}{}", ran.stdout, ran.stderr);
    value.unwrap()
}

fn ask(url: &str) -> Value {
    json!({"url": url, "prompt": "What is it about?"})
}

#[test]
fn a_page_comes_as_markdown_with_the_facts_beside_it() {
    let server = Server::start(|_| {
        page("text/html", "<title>T</title><nav>menu</nav><main><h1>One</h1><p>Two <a href='/x'>x</a></main>")
    });
    let url = server.url("/p");
    let result = fetch(&CliFixture::new(), &server, &ask(&url));
    assert_eq!(result["is_error"], json!(false), "{result}");
    assert_eq!(result["content"], json!(format!("# One\n\nTwo [x]({})", server.url("/x"))));
    let facts = &result["structured"];
    assert_eq!((&facts["code"], &facts["codeText"], &facts["url"]), (&json!(200), &json!("OK"), &json!(url)));
    assert!(facts["bytes"].as_u64().unwrap() > 50 && facts["durationMs"].is_u64(), "{facts}");
    let request = server.asked.recv().unwrap();
    assert!(request.starts_with("GET /p HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains("user-agent: haft/"), "{request}");
}

#[test]
fn json_text_and_pictures_come_as_they_are_and_other_data_is_refused() {
    let cli = CliFixture::new();
    for (kind, body, expected) in [
        ("application/json", &b"{\"a\":1}"[..], json!("{\"a\":1}")),
        ("text/plain; charset=iso-8859-1", b"gr\xfcn", json!("grün")),
        (
            "image/png",
            b"\x89PNG\r\n\x1a\n",
            json!([{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}]),
        ),
    ] {
        let server = Server::start(move |_| page(kind, body));
        assert_eq!(fetch(&cli, &server, &ask(&server.url("/")))["content"], expected);
    }
    let server = Server::start(|_| page("application/zip", b"PK\x03\x04\0\0\x01\x02"));
    let refused = fetch(&cli, &server, &ask(&server.url("/a.zip")));
    assert_eq!(refused["error_kind"], "execution_failed");
    assert!(refused["content"].as_str().unwrap().contains("application/zip of 8 bytes"), "{refused}");
}

#[test]
fn an_error_page_is_an_error_with_its_words() {
    let server = Server::start(|_| answer("404 Not Found", "Content-Type: text/html\r\n", "<p>No such page"));
    let result = fetch(&CliFixture::new(), &server, &ask(&server.url("/")));
    assert_eq!((&result["is_error"], &result["structured"]["code"]), (&json!(true), &json!(404)));
    assert_eq!(result["content"], json!(format!("HTTP 404 Not Found: {}\n\nNo such page", server.url("/"))));
}

#[test]
fn a_redirect_to_another_host_is_told_and_not_followed() {
    let server = Server::start(|head| match head.split(' ').nth(1) {
        Some("/away") => answer("301 Moved Permanently", "Location: https://elsewhere.example/new\r\n", ""),
        Some("/here") => answer("302 Found", "Location: /page\r\n", ""),
        _ => page("text/plain", "here"),
    });
    let told = fetch(&CliFixture::new(), &server, &ask(&server.url("/away")));
    assert_eq!((&told["is_error"], &told["structured"]["code"]), (&json!(false), &json!(301)), "{told}");
    assert!(
        told["content"].as_str().unwrap().ends_with("with this url: https://elsewhere.example/new"),
        "{told}"
    );
    assert_eq!(fetch(&CliFixture::new(), &server, &ask(&server.url("/here")))["content"], json!("here"));
}

#[test]
fn a_long_page_is_read_in_parts() {
    let server =
        Server::start(|_| page("text/plain", (0..30_000).map(|n| format!("{n:05}\n")).collect::<String>()));
    let cli = CliFixture::new();
    let first = fetch(&cli, &server, &ask(&server.url("/")));
    let text = first["content"].as_str().unwrap();
    let shown = text.split(" of 180000 characters shown").next().unwrap().rsplit(' ').next().unwrap();
    let shown: u64 = shown.parse().unwrap();
    let second = fetch(&cli, &server, &json!({"url": server.url("/"), "prompt": "", "offset": shown}));
    let next = second["content"].as_str().unwrap().split('\n').next().unwrap().to_owned();
    assert_eq!(next, format!("{:05}", shown / 6), "the second part goes on where the first ended");
}

#[test]
fn a_page_of_five_megabytes_takes_no_memory_to_speak_of() {
    let server = Server::start(|_| {
        let row = "<tr><td><a href='/some/where'>a cell</a></td><td><div><b>words</b> and more words</div></td></tr>\n";
        page("text/html", format!("<table>{}</table>", row.repeat((5 << 20) / row.len())))
    });
    let cli = CliFixture::new();
    let arguments = ask(&server.url("/")).to_string();
    let (ran, peak) = cli.peak(&["call", "WebFetch", &arguments, "--network", &server.entry()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("| [a cell](") && ran.stdout.contains("characters shown"),
        "{}",
        &ran.stdout[..200]
    );
    assert!(peak < 80 * 1024, "{peak} KiB");
}

struct Small {
    asked: Mutex<Vec<ModelRequest>>,
}

impl Host for Small {
    fn has_model(&self, role: ModelRole) -> bool {
        role == ModelRole::Small
    }

    fn complete(&self, completion: &ModelRequest, _: &Cancel) -> Result<String, ToolError> {
        self.asked.lock().unwrap().push(completion.clone());
        Ok("It is about cats.".to_owned())
    }
}

#[tokio::test]
async fn where_there_is_a_small_model_it_answers_the_prompt() {
    let server = Server::start(|_| page("text/html", "<p>Cats are fine."));
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let small = Arc::new(Small { asked: Mutex::default() });
    let runtime = Runtime::builder()
        .workspace(folder.path())
        .home(home.path())
        .dialect(haft::claude())
        .network(Network::Domains(vec![server.entry()]))
        .host(Arc::<Small>::clone(&small))
        .build()
        .unwrap();
    for _ in 0..2 {
        let result = runtime.call("WebFetch", ask(&server.url("/"))).await;
        assert!(
            matches!(&result.output.content[..], [Content::Text { text }] if text.head == "It is about cats.")
        );
        assert_eq!(result.output.structured.unwrap()["result"], json!("It is about cats."));
    }
    let asked = std::mem::take(&mut *small.asked.lock().unwrap());
    assert_eq!(asked.len(), 2);
    assert!(asked[0].prompt.contains("Cats are fine.") && asked[0].prompt.ends_with("What is it about?"));
    assert_eq!(server.asked.try_iter().count(), 1, "the second page came from the cache");
    runtime.shutdown().await;
}
