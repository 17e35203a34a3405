//! Which requests are answered at all: names, origins, tokens, and what is logged.

use crate::fixture::http_client::exchange;
use crate::fixture::serve::{ACT, ServeFixture, ServeProcess, VIEW};

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// The status of a request with a valid token and these headers.
fn status(server: &ServeProcess, target: &str, headers: &[&str]) -> u16 {
    let with_token = bearer(ACT);
    server.raw("GET", target, &[&[with_token.as_str()], headers].concat(), b"").status
}

#[test]
fn requests_in_the_name_of_other_hosts_and_pages_are_refused_and_logged() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let port = server.port;
    let mut expected = Vec::new();
    let mut check = |target: &'static str, headers: &[&str], wanted: u16| {
        assert_eq!(status(&server, target, headers), wanted, "{target} {headers:?}");
        expected.push((target, wanted));
    };
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("LOCALHOST:{port}")];
    for host in &own {
        check("/api/v1/meta", &[&format!("Host: {host}")], 200);
        check("/", &[&format!("Host: {host}")], 200);
    }
    let foreign = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        // Browsers resolve this to the same machine, but it is another site.
        format!("x.localhost:{port}"),
        format!("127.0.0.1.nip.io:{port}"),
        format!("127.0.0.1:{}", port ^ 1),
        "127.0.0.1".to_owned(),
        format!("127.1:{port}"),
        format!("2130706433:{port}"),
        format!("user@127.0.0.1:{port}"),
    ];
    for host in &foreign {
        for target in ["/", "/main.js", "/healthz", "/api/v1/meta", "/api/v1/openapi.json"] {
            check(target, &[&format!("Host: {host}")], 403);
        }
    }
    let other_origins = [
        "null".to_owned(),
        "http://evil.example".to_owned(),
        format!("http://x.localhost:{port}"),
        format!("http://127.0.0.1:{}", port ^ 1),
        format!("https://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}.evil.example"),
        String::new(),
    ];
    for origin in &other_origins {
        check("/api/v1/meta", &[&format!("Origin: {origin}")], 403);
        check("/", &[&format!("Origin: {origin}")], 403);
    }
    check("/api/v1/meta", &[&format!("Origin: http://127.0.0.1:{port}")], 200);
    for site in ["cross-site", "same-site", "unknown"] {
        check("/api/v1/meta", &[&format!("Sec-Fetch-Site: {site}")], 403);
    }
    for site in ["same-origin", "none"] {
        check("/api/v1/meta", &[&format!("Sec-Fetch-Site: {site}")], 200);
    }
    // A link in a chat may open the page, which has no data in it.
    check("/", &["Sec-Fetch-Site: cross-site"], 200);
    let logged: Vec<(String, u64)> = fixture.access_log().iter().map(path_and_status).collect();
    let expected: Vec<(String, u64)> =
        expected.into_iter().map(|(path, status)| (path.to_owned(), status.into())).collect();
    assert_eq!(logged, expected);
}

fn path_and_status(line: &serde_json::Value) -> (String, u64) {
    (line["path"].as_str().unwrap().to_owned(), line["status"].as_u64().unwrap())
}

#[test]
fn a_request_has_exactly_one_host() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let port = server.port;
    let own = format!("Host: 127.0.0.1:{port}");
    assert_eq!(status(&server, "/api/v1/meta", &[&own, &own]), 400);
    assert_eq!(status(&server, "/api/v1/meta", &[&own, "Host: evil.example"]), 400);
    let without = format!("GET /api/v1/meta HTTP/1.1\r\n{}\r\nConnection: close\r\n\r\n", bearer(ACT));
    assert_eq!(exchange(port, without.as_bytes()).status, 400);
    let old = format!("GET / HTTP/1.0\r\n{}\r\n\r\n", bearer(ACT));
    assert_eq!(exchange(port, old.as_bytes()).status, 400);
    // The target names a host as well.
    assert_eq!(status(&server, "http://evil.example/api/v1/meta", &[]), 403);
    assert_eq!(status(&server, &format!("http://127.0.0.1:{port}/api/v1/meta"), &[]), 200);
}

#[test]
fn wrong_tokens_are_counted_and_a_right_one_is_still_accepted() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    for _ in 0..12 {
        let missing = server.raw("GET", "/api/v1/meta", &[], b"");
        assert_eq!(missing.status, 401);
        assert_eq!(missing.header("www-authenticate"), Some("Bearer realm=\"haft\""));
    }
    let wrong = ["Bearer x", "Bearer ", "bearer  act", "Basic YWN0OmFjdA==", "Token", ""];
    let tenth_of: Vec<u16> = (0..10)
        .map(|at| {
            let header = format!("Authorization: {}", wrong[at % wrong.len()]);
            server.raw("GET", "/api/v1/meta", &[&header], b"").status
        })
        .collect();
    assert_eq!(tenth_of, [401; 10]);
    let too_many = server.raw("GET", "/api/v1/meta", &[&bearer("wrong")], b"");
    assert_eq!((too_many.status, too_many.header("retry-after")), (429, Some("60")));
    assert!(too_many.message().contains("wrong token"), "{}", too_many.text());
    assert_eq!(status(&server, "/api/v1/meta", &[]), 200);
    assert_eq!(server.api(VIEW, "GET", "/meta", None).json()["role"], "view");
    // The token counts only in the header, and only if it is given once.
    for target in [format!("/api/v1/meta?token={ACT}"), format!("/api/v1/meta?access_token={ACT}")] {
        assert_eq!(server.raw("GET", &target, &[], b"").status, 401);
    }
    assert_eq!(server.raw("GET", "/api/v1/meta", &[&format!("Cookie: token={ACT}")], b"").status, 401);
    assert_eq!(status(&server, "/api/v1/meta", &[&bearer(ACT)]), 401);
}

#[test]
fn forms_preflights_and_upgrades_of_web_pages_lead_nowhere() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let (token, body) = (bearer(ACT), br#"{"workspace":"/","verdict":"allow","text":"Bash"}"#);
    for kind in [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "text/plain; x=application/json",
        "application/jsonp",
        "",
    ] {
        let kind = format!("Content-Type: {kind}");
        for target in ["/api/v1/rules", "/api/v1/runs", "/api/v1/undo", "/api/v1/questions/1/answer"] {
            let answer = server.raw("POST", target, &[&token, &kind], body);
            assert_eq!(answer.status, 415, "{target} {kind}: {}", answer.text());
        }
    }
    assert_eq!(server.raw("POST", "/api/v1/rules", &[&token], body).status, 415);
    // A form has no token, and names its own page as origin.
    let form = ["Content-Type: application/x-www-form-urlencoded", "Origin: http://evil.example"];
    assert_eq!(server.raw("POST", "/api/v1/rules", &form, b"text=Bash").status, 403);
    let asks = ["Origin: http://evil.example", "Access-Control-Request-Method: POST"];
    let preflight = server.raw("OPTIONS", "/api/v1/rules", &asks, b"");
    assert_eq!(preflight.status, 403);
    for method in ["OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "HEAD"] {
        for target in ["/api/v1/rules", "/api/v1/events", "/api/v1/openapi.json", "/"] {
            let answer = server.raw(method, target, &[&token], b"");
            assert_eq!(answer.status, 405, "{method} {target}: {}", answer.text());
            assert!(answer.header("allow").unwrap().contains("GET"));
            assert!(!answer.head.to_ascii_lowercase().contains("access-control"), "{}", answer.head);
        }
    }
    let upgrade = [
        "Upgrade: websocket",
        "Connection: Upgrade, close",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    for target in ["/", "/api/v1/meta"] {
        // A page of another origin can open a WebSocket to any port; the browser adds its Origin.
        let foreign =
            server.raw("GET", target, &[&upgrade[..], &["Origin: http://evil.example"]].concat(), b"");
        assert_eq!(foreign.status, 403);
    }
    assert_eq!(server.raw("GET", "/api/v1/meta", &upgrade, b"").status, 401);
    assert_ne!(server.raw("GET", "/api/v1/meta", &[&upgrade[..], &[&token]].concat(), b"").status, 101);
    assert!(!fixture.cli.config().exists(), "a rule was added");
}

#[test]
fn the_log_has_each_request_and_no_token() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    server.get("/meta");
    server.raw("GET", &format!("/api/v1/meta?token={ACT}"), &[], b"");
    server.api("wrong-token-0123456789", "GET", "/sessions?q=a%20private%20word", None);
    server.api(VIEW, "POST", "/rules", Some(&serde_json::json!({})));
    server.raw("GET", &format!("/{}", "x".repeat(5_000)), &[], b"");
    let log = std::fs::read_to_string(fixture.cli.home().join("serve/access.log")).unwrap();
    for secret in [ACT, VIEW, "wrong-token", "private", "Bearer"] {
        assert!(!log.contains(secret), "{log}");
    }
    let lines = fixture.access_log();
    let short: Vec<String> = lines
        .iter()
        .map(|line| {
            assert!(
                line["peer"].as_str().unwrap().starts_with("127.0.0.1:") && line["at"].as_u64() > Some(0)
            );
            let path: String = line["path"].as_str().unwrap().chars().take(20).collect();
            format!("{} {path} {} {}", line["method"].as_str().unwrap(), line["role"], line["status"])
        })
        .collect();
    assert_eq!(
        short,
        [
            "GET /api/v1/meta \"act\" 200",
            "GET /api/v1/meta null 401",
            "GET /api/v1/sessions null 401",
            "POST /api/v1/rules \"view\" 403",
            "GET /xxxxxxxxxxxxxxxxxxx null 401",
        ]
    );
    assert!(lines[4]["path"].as_str().unwrap().len() < 1_000);
    #[cfg(unix)]
    for name in ["serve/access.log", "serve"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(fixture.cli.home().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}");
    }
}

#[test]
fn the_lines_of_two_servers_do_not_mix_in_one_log() {
    const REQUESTS_EACH: usize = 200;
    let fixture = ServeFixture::new();
    let servers = [fixture.serve(), fixture.serve()];
    std::thread::scope(|scope| {
        for server in &servers {
            scope.spawn(move || {
                (0..REQUESTS_EACH).for_each(|_| drop(server.raw("GET", "/healthz", &[], b"")));
            });
        }
    });
    // This also checks that each line is JSON.
    assert_eq!(fixture.access_log().len(), 2 * REQUESTS_EACH);
}

#[test]
fn every_answer_forbids_scripts_frames_and_guessing() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let token = bearer(ACT);
    for target in ["/", "/main.js", "/worker.js", "/style.css", "/healthz", "/api/v1/meta", "/nothing"] {
        let answer = server.raw("GET", target, &[&token], b"");
        let header = |name: &str| answer.header(name).unwrap_or_default().to_owned();
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{target}: {policy}");
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{target}: {policy}"
        );
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
        if target.starts_with("/api") {
            assert_eq!(header("cache-control"), "no-store");
            assert!(policy.contains("sandbox"), "{policy}");
        }
    }
    let page = server.raw("GET", "/", &[], b"");
    let policy = page.header("content-security-policy").unwrap();
    for part in ["script-src 'self'", "require-trusted-types-for 'script'", "form-action 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
}
