//! Who may come in.

use haft_mcp::serve::{HttpServerOptions, ResourceMetadata, serve_http};
use serde_json::json;

use crate::client::{OTHER, TOKEN, house, house_with};
use crate::support::{Toys, call, modern, request};

#[test]
fn a_host_that_is_none_of_the_servers_is_refused_whatever_the_origin() {
    let house = house();
    let port = house.address().port();
    let good = house.post_modern(&request(1, "tools/call", modern(call("echo", json!({})))));
    for host in [
        format!("localhost:{port}"),
        format!("LocalHost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
    ] {
        assert_eq!(house.ask(&good.clone().with("Host", &host)).status, 200, "{host}");
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
        let reply = house.ask(&good.clone().with("Host", &host));
        assert_eq!(reply.status, 403, "{host}: {reply:?}");
        assert!(reply.has_no_cors());
    }
    assert_eq!(house.ask(&good.clone().without("Host")).status, 400);
    let mut twice = good.clone();
    twice.add("Host", &house.host());
    assert_eq!(house.ask(&twice).status, 400);
    let mut elsewhere = good;
    elsewhere.line = "POST http://evil.example.com/mcp HTTP/1.1".to_owned();
    assert_eq!(house.ask(&elsewhere).status, 403, "the request line names another host than Host does");
}

#[test]
fn an_origin_that_is_none_of_the_servers_is_refused_whatever_the_host() {
    let house = house();
    let port = house.address().port();
    let good = house.post_modern(&request(1, "tools/list", modern(json!({}))));
    assert_eq!(house.ask(&good).status, 200, "no page sends it");
    for origin in [
        format!("http://localhost:{port}"),
        format!("http://127.0.0.1:{port}"),
        format!("http://[::1]:{port}"),
    ] {
        let reply = house.ask(&good.clone().with("Origin", &origin));
        assert_eq!(reply.status, 200, "{origin}");
        assert!(reply.has_no_cors(), "there is no CORS, not even for its own pages");
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
        let reply = house.ask(&good.clone().with("Origin", &origin));
        assert_eq!(reply.status, 403, "{origin}: {reply:?}");
        assert!(reply.has_no_cors());
    }
    let mut two = good.with("Origin", &format!("http://localhost:{port}"));
    two.add("Origin", "http://evil.example.com");
    assert_eq!(house.ask(&two).status, 403);
}

#[test]
fn a_preflight_allows_nothing() {
    let house = house();
    for origin in ["http://evil.example.com".to_owned(), format!("http://{}", house.host())] {
        let mut ask = house.post(&json!({})).with("Origin", &origin);
        ask.set("Access-Control-Request-Method", "POST");
        ask.line = "OPTIONS /mcp HTTP/1.1".to_owned();
        let reply = house.ask(&ask);
        assert!(reply.status >= 400 && reply.has_no_cors(), "{reply:?}");
        ask.unset("Authorization");
        let reply = house.ask(&ask);
        assert!(reply.status >= 400 && reply.has_no_cors(), "{reply:?}");
    }
}

#[test]
fn what_is_named_at_the_start_may_come_as_well() {
    let house = house_with(|options| {
        options.hosts = vec!["Tools.example.com".to_owned()];
        options.origins = vec!["https://tools.example.com".to_owned()];
    });
    let good = house.post_modern(&request(1, "tools/list", modern(json!({}))));
    let proxied = good.with("Host", "tools.example.com").with("Origin", "https://tools.example.com");
    assert_eq!(house.ask(&proxied).status, 200);
    assert_eq!(house.ask(&proxied.clone().with("Host", "tools.example.com.evil.com")).status, 403);
    assert_eq!(house.ask(&proxied.with("Origin", "http://tools.example.com")).status, 403);
}

#[test]
fn without_the_whole_token_nobody_comes_in() {
    let house = house();
    let good = house.post_modern(&request(1, "tools/list", modern(json!({}))));
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(house.ask(&good.clone().with("Authorization", &format!("{scheme} {TOKEN}"))).status, 200);
    }
    assert_eq!(house.ask(&good.clone().with("Authorization", &format!("Bearer {OTHER}"))).status, 200);
    let reply = house.ask(&good.clone().without("Authorization"));
    assert_eq!((reply.status, reply.header("www-authenticate")), (401, Some("Bearer realm=\"haft\"")));
    for wrong in [
        format!("Bearer {}", &TOKEN[..TOKEN.len() - 1]),
        format!("Bearer {TOKEN}x"),
        format!("Bearer {}", TOKEN.to_uppercase()),
        format!("Bearer {TOKEN} {OTHER}"),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Basic {TOKEN}"),
        TOKEN.to_owned(),
    ] {
        let reply = house.ask(&good.clone().with("Authorization", &wrong));
        assert_eq!(reply.status, 401, "{wrong}");
        assert!(reply.header("www-authenticate").unwrap().contains("error="));
        assert!(
            !String::from_utf8_lossy(&reply.body).contains("horse"),
            "the answer says nothing about the token"
        );
    }
    let mut two = good.clone();
    two.add("Authorization", &format!("Bearer {OTHER}"));
    assert_eq!(house.ask(&two).status, 401, "two tokens are none");
    let mut in_address = good.without("Authorization");
    in_address.line = format!("POST /mcp?access_token={} HTTP/1.1", OTHER.replace(' ', "%20"));
    assert_eq!(house.ask(&in_address).status, 401);
}

#[test]
fn an_address_that_others_can_reach_needs_a_token() {
    let server = Toys::default().server();
    let open = HttpServerOptions::new("0.0.0.0:0".parse().unwrap(), Vec::new());
    let error = serve_http(server, open).map(drop).unwrap_err();
    assert!(error.as_text().contains("token"), "{error}");
}

#[test]
fn where_tokens_come_from_is_told_only_if_it_is_known() {
    let unknown = house();
    let mut ask = unknown.bare("GET", "");
    ask.line = "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1".to_owned();
    assert_eq!(unknown.ask(&ask).status, 404);

    let house = house_with(|options| {
        options.metadata = Some(ResourceMetadata {
            resource: "https://tools.example.com/mcp".to_owned(),
            authorization_servers: vec!["https://login.example.com".to_owned()],
            scopes: vec!["tools".to_owned()],
        });
    });
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let mut ask = house.bare("GET", "").without("Authorization");
        ask.line = format!("GET {path} HTTP/1.1");
        let reply = house.ask(&ask);
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.json()["resource"], "https://tools.example.com/mcp");
        assert_eq!(reply.json()["authorization_servers"], json!(["https://login.example.com"]));
        assert_eq!(house.ask(&ask.with("Origin", "http://evil.example.com")).status, 403);
    }
    let reply = house.ask(&house.post(&json!({})).without("Authorization"));
    let challenge = reply.header("www-authenticate").unwrap();
    let address = "https://tools.example.com/.well-known/oauth-protected-resource/mcp";
    assert!(challenge.contains(&format!("resource_metadata=\"{address}\"")), "{challenge}");
}

#[test]
fn other_paths_and_other_methods_lead_nowhere() {
    let house = house();
    for path in
        ["/", "/mcp/", "/MCP", "/mcp/../mcp", "//mcp", "/sse", "/.well-known/oauth-authorization-server"]
    {
        let mut ask = house.post(&json!({}));
        ask.line = format!("POST {path} HTTP/1.1");
        assert_eq!(house.ask(&ask).status, 404, "{path}");
    }
    for method in ["PUT", "PATCH", "TRACE", "PROPFIND", "HEAD"] {
        let mut ask = house.post(&json!({}));
        ask.body.clear();
        ask.line = format!("{method} /mcp HTTP/1.1");
        let mut line = house.connect();
        line.send(&ask.bytes());
        let reply = line.head();
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST, GET, DELETE")), "{method}");
    }
}
