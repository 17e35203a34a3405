//! Redirects and proxies.

use haft_tool::{ErrorKind, Redirects};

use super::*;

#[test]
fn redirects_are_followed() {
    let server = TestServer::responding(|request| match request.split(' ').nth(1) {
        Some("/a") => redirect_to(301, "/b?c"),
        Some("/b?c") => redirect_to(307, "d"),
        _ => ok_page("the end"),
    });
    let answer = get(&client_for(&local_service(), &[&server.entry()]), &server.url("/a")).unwrap();
    assert_eq!(
        (text(&answer), answer.url.as_str(), answer.status),
        ("the end", server.url("/d").as_str(), 200)
    );
    assert_eq!(answer.redirect, None);
}

#[test]
fn redirect_loop_ends_after_ten() {
    let server = TestServer::responding(|_| redirect_to(302, "/again"));
    let error = get(&client_for(&local_service(), &[&server.entry()]), &server.url("/")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ExecutionFailed);
    assert!(error.message.contains("stopped after 10 redirects"), "{}", error.message);
    assert_eq!(server.request_count(), 11);
}

#[test]
fn redirect_to_another_host_is_reported() {
    let server = TestServer::responding(|request| match request.split(' ').nth(1) {
        Some("/same") => redirect_to(302, "/page"),
        Some("/www") => {
            let port =
                request.split("example.test:").nth(1).and_then(|rest| rest.split('\r').next()).unwrap();
            redirect_to(302, &format!("http://www.example.test:{port}/page"))
        }
        Some("/away") => redirect_to(302, "https://other.example/page"),
        Some("/odd") => redirect_to(302, "app://open"),
        _ => ok_page("here"),
    });
    let hosts =
        ["example.test", "www.example.test", "127.0.0.1"].map(|host| format!("{host}:{}", server.port));
    let client = client_within(&local_service(), Reach { hosts: hosts.to_vec(), ..Reach::default() });
    let fetch = |path: &str, redirects| {
        let url = format!("http://example.test:{}{path}", server.port);
        client.fetch(&HttpRequest { redirects, ..HttpRequest::get(url) }).unwrap()
    };
    for path in ["/same", "/www"] {
        assert_eq!(text(&fetch(path, Redirects::SameHost)), "here", "{path}");
    }
    for (path, leads) in [("/away", "https://other.example/page"), ("/odd", "app://open")] {
        let response = fetch(path, Redirects::SameHost);
        assert_eq!((response.status, response.redirect.as_deref()), (302, Some(leads)));
    }
    let response = fetch("/same", Redirects::Never);
    assert_eq!(response.redirect, Some(format!("http://example.test:{}/page", server.port)));
}

#[test]
fn redirect_drops_credentials_and_changes_post_to_get() {
    let last = TestServer::responding(|_| ok_page("done"));
    let location = format!("http://other.test:{}/", last.port);
    let first = TestServer::responding(move |request| {
        let status = if request.contains("/keep") { 307 } else { 302 };
        redirect_to(status, &location)
    });
    let client =
        client_for(&local_service(), &[&first.entry(), &last.entry(), &format!("other.test:{}", last.port)]);
    for (path, method) in [("/", "GET / "), ("/keep", "POST / ")] {
        let headers = [
            ("Authorization", "Bearer key"),
            ("X-Api-Key", "key"),
            ("Cookie", "key"),
            ("Accept", "text/html"),
        ];
        let request = HttpRequest {
            method: "post".to_owned(),
            body: Some(b"the body".to_vec()),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            ..HttpRequest::get(first.url(path))
        };
        client.fetch(&request).unwrap();
        let sent = first.requests.recv().unwrap();
        assert!(
            sent.starts_with("POST") && sent.contains("Bearer key") && sent.ends_with("the body"),
            "{sent}"
        );
        let sent = last.requests.recv().unwrap();
        assert!(sent.starts_with(method) && sent.contains("text/html") && !sent.contains("key"), "{sent}");
        assert_eq!(sent.ends_with("the body"), path == "/keep");
    }
}

fn through(proxies: Matcher) -> Arc<HttpService> {
    let none = |name: &str| match name {
        "proxy.test" => Ok(vec![LOCALHOST]),
        name => panic!("{name} must be resolved by the proxy"),
    };
    Arc::new(HttpService::with(Arc::new(none), proxies))
}

#[test]
fn environment_proxy_resolves_names() {
    let proxy = TestServer::responding(|_| ok_page("by proxy"));
    let proxies = Matcher::builder()
        .all(format!("http://me:pass@proxy.test:{}", proxy.port))
        .no("direct.test,127.0.0.9")
        .build();
    let service = through(proxies);
    let answer = get(&client_within(&service, public()), "http://example.com/page").unwrap();
    assert_eq!(text(&answer), "by proxy");
    let request = proxy.requests.recv().unwrap();
    assert!(request.starts_with("GET http://example.com/page HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains("proxy-authorization: basic bwu6cgfzcw=="), "{request}");
    let error = get(&client_within(&service, public()), "https://example.com/").unwrap_err();
    assert!(proxy.requests.recv().unwrap().starts_with("CONNECT example.com:443 "));
    assert!(error.message.contains("through the proxy proxy.test"), "{}", error.message);
}

#[test]
fn environment_proxy_does_not_widen_the_reach() {
    let proxy = TestServer::responding(|_| ok_page("by proxy"));
    let server = TestServer::responding(|_| ok_page("direct"));
    let service = through(Matcher::builder().all(format!("http://proxy.test:{}", proxy.port)).build());
    for url in ["http://127.0.0.1/", "http://2852039166/", "http://localhost/", "http://[::ffff:10.0.0.1]/"] {
        assert_eq!(
            get(&client_within(&service, public()), url).unwrap_err().kind,
            ErrorKind::PermissionDenied,
            "{url}"
        );
    }
    assert!(get(&client_for(&service, &["example.com"]), "http://other.example/").is_err());
    let own = client_for(&service, &[&server.entry()]);
    assert_eq!(text(&get(&own, &server.url("/")).unwrap()), "direct");
    assert_eq!(proxy.request_count(), 0);
}
