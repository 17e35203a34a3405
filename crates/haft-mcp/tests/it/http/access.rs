//! Who may come in.

use haft_mcp::serve::{HttpServerOptions, ResourceMetadata, serve_http};
use serde_json::json;

use crate::fixture::{TestService, call, request, stateless};
use crate::http::client::{OTHER_TOKEN, TOKEN, server, server_with};

#[test]
fn foreign_host_is_refused() {
    let server = server();
    let port = server.address().port();
    let good = server.post_stateless(&request(1, "tools/call", stateless(call("echo", json!({})))));
    for host in [
        format!("localhost:{port}"),
        format!("LocalHost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
    ] {
        assert_eq!(server.send(&good.clone().with("Host", &host)).status, 200, "{host}");
    }
    for host in [
        "evil.example.com".to_owned(),
        format!("evil.example.com:{port}"),
        format!("localhost.evil.com:{port}"),
        format!("127.0.0.1.evil.com:{port}"),
        format!("localhost.:{port}"),
        format!("user@localhost:{port}"),
        format!("localhost:{port}@evil.com"),
        format!("localhost:{port}, evil.com"),
        format!("127.0.0.2:{port}"),
        format!("0.0.0.0:{port}"),
        format!("2130706433:{port}"),
        "localhost".to_owned(),
        "localhost:80".to_owned(),
        format!("localhost:0{port}"),
    ] {
        let response = server.send(&good.clone().with("Host", &host));
        assert_eq!(response.status, 403, "{host}: {response:?}");
        assert!(response.has_no_cors());
    }
    assert_eq!(server.send(&good.clone().without("Host")).status, 400);
    let mut twice = good.clone();
    twice.add("Host", &server.host());
    assert_eq!(server.send(&twice).status, 400);
    let mut elsewhere = good;
    elsewhere.line = "POST http://evil.example.com/mcp HTTP/1.1".to_owned();
    assert_eq!(server.send(&elsewhere).status, 403, "the request line names another host than Host does");
}

#[test]
fn foreign_origin_is_refused() {
    let server = server();
    let port = server.address().port();
    let good = server.post_stateless(&request(1, "tools/list", stateless(json!({}))));
    assert_eq!(server.send(&good).status, 200, "no page sends it");
    for origin in [
        format!("http://localhost:{port}"),
        format!("http://127.0.0.1:{port}"),
        format!("http://[::1]:{port}"),
    ] {
        let response = server.send(&good.clone().with("Origin", &origin));
        assert_eq!(response.status, 200, "{origin}");
        assert!(response.has_no_cors(), "there is no CORS, not even for its own pages");
    }
    for origin in [
        "null".to_owned(),
        String::new(),
        "http://evil.example.com".to_owned(),
        format!("http://evil.example.com:{port}"),
        format!("http://localhost.evil.com:{port}"),
        format!("http://127.0.0.1.evil.com:{port}"),
        format!("http://user@localhost:{port}"),
        format!("http://localhost:{port}@evil.com"),
        format!("http://localhost:{port}/"),
        format!("https://localhost:{port}"),
        format!("file://localhost:{port}"),
        "http://localhost".to_owned(),
        "http://localhost:3000".to_owned(),
        format!("localhost:{port}"),
    ] {
        let response = server.send(&good.clone().with("Origin", &origin));
        assert_eq!(response.status, 403, "{origin}: {response:?}");
        assert!(response.has_no_cors());
    }
    let mut two = good.with("Origin", &format!("http://localhost:{port}"));
    two.add("Origin", "http://evil.example.com");
    assert_eq!(server.send(&two).status, 403);
}

#[test]
fn preflight_is_refused() {
    let server = server();
    for origin in ["http://evil.example.com".to_owned(), format!("http://{}", server.host())] {
        let mut post = server.post(&json!({})).with("Origin", &origin);
        post.set("Access-Control-Request-Method", "POST");
        post.line = "OPTIONS /mcp HTTP/1.1".to_owned();
        let response = server.send(&post);
        assert!(response.status >= 400 && response.has_no_cors(), "{response:?}");
        post.unset("Authorization");
        let response = server.send(&post);
        assert!(response.status >= 400 && response.has_no_cors(), "{response:?}");
    }
}

#[test]
fn configured_host_and_origin_are_accepted() {
    let server = server_with(|options| {
        options.hosts = vec!["Tools.example.com".to_owned()];
        options.origins = vec!["https://tools.example.com".to_owned()];
    });
    let good = server.post_stateless(&request(1, "tools/list", stateless(json!({}))));
    let proxied = good.with("Host", "tools.example.com").with("Origin", "https://tools.example.com");
    assert_eq!(server.send(&proxied).status, 200);
    assert_eq!(server.send(&proxied.clone().with("Host", "tools.example.com.evil.com")).status, 403);
    assert_eq!(server.send(&proxied.with("Origin", "http://tools.example.com")).status, 403);
}

#[test]
fn wrong_token_is_refused() {
    let server = server();
    let good = server.post_stateless(&request(1, "tools/list", stateless(json!({}))));
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(
            server.send(&good.clone().with("Authorization", &format!("{scheme} {TOKEN}"))).status,
            200
        );
    }
    assert_eq!(
        server.send(&good.clone().with("Authorization", &format!("Bearer {OTHER_TOKEN}"))).status,
        200
    );
    let response = server.send(&good.clone().without("Authorization"));
    assert_eq!((response.status, response.header("www-authenticate")), (401, Some("Bearer realm=\"haft\"")));
    for wrong in [
        format!("Bearer {}", &TOKEN[..TOKEN.len() - 1]),
        format!("Bearer {TOKEN}x"),
        format!("Bearer {}", TOKEN.to_uppercase()),
        format!("Bearer {TOKEN} {OTHER_TOKEN}"),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Basic {TOKEN}"),
        TOKEN.to_owned(),
    ] {
        let response = server.send(&good.clone().with("Authorization", &wrong));
        assert_eq!(response.status, 401, "{wrong}");
        assert!(response.header("www-authenticate").unwrap().contains("error="));
        assert!(
            !String::from_utf8_lossy(&response.body).contains("horse"),
            "the answer says nothing about the token"
        );
    }
    let mut two = good.clone();
    two.add("Authorization", &format!("Bearer {OTHER_TOKEN}"));
    assert_eq!(server.send(&two).status, 401, "two tokens are none");
    let mut in_address = good.without("Authorization");
    in_address.line = format!("POST /mcp?access_token={} HTTP/1.1", OTHER_TOKEN.replace(' ', "%20"));
    assert_eq!(server.send(&in_address).status, 401);
}

#[test]
fn public_address_requires_a_token() {
    let server = TestService::default().server();
    let open = HttpServerOptions::new("0.0.0.0:0".parse().unwrap(), Vec::new());
    let error = serve_http(server, open).map(drop).unwrap_err();
    assert!(error.as_text().contains("token"), "{error}");
}

#[test]
fn resource_metadata_is_served_only_if_configured() {
    let unknown = server();
    let mut post = unknown.bare("GET", "");
    post.line = "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1".to_owned();
    assert_eq!(unknown.send(&post).status, 404);

    let server = server_with(|options| {
        options.metadata = Some(ResourceMetadata {
            resource: "https://tools.example.com/mcp".to_owned(),
            authorization_servers: vec!["https://login.example.com".to_owned()],
            scopes: vec!["tools".to_owned()],
        });
    });
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let mut post = server.bare("GET", "").without("Authorization");
        post.line = format!("GET {path} HTTP/1.1");
        let response = server.send(&post);
        assert_eq!(response.status, 200, "{path}");
        assert_eq!(response.json()["resource"], "https://tools.example.com/mcp");
        assert_eq!(response.json()["authorization_servers"], json!(["https://login.example.com"]));
        assert_eq!(server.send(&post.with("Origin", "http://evil.example.com")).status, 403);
    }
    let response = server.send(&server.post(&json!({})).without("Authorization"));
    let challenge = response.header("www-authenticate").unwrap();
    let address = "https://tools.example.com/.well-known/oauth-protected-resource/mcp";
    assert!(challenge.contains(&format!("resource_metadata=\"{address}\"")), "{challenge}");
}

#[test]
fn other_paths_and_methods_are_refused() {
    let server = server();
    for path in
        ["/", "/mcp/", "/MCP", "/mcp/../mcp", "//mcp", "/sse", "/.well-known/oauth-authorization-server"]
    {
        let mut post = server.post(&json!({}));
        post.line = format!("POST {path} HTTP/1.1");
        assert_eq!(server.send(&post).status, 404, "{path}");
    }
    for method in ["PUT", "PATCH", "TRACE", "PROPFIND", "HEAD"] {
        let mut post = server.post(&json!({}));
        post.body.clear();
        post.line = format!("{method} /mcp HTTP/1.1");
        let mut connection = server.connect();
        connection.send(&post.bytes());
        let response = connection.head();
        assert_eq!((response.status, response.header("allow")), (405, Some("POST, GET, DELETE")), "{method}");
    }
}
