//! Redirects and proxies.

use haft_tool::{ErrorKind, Redirects};

use super::*;

#[test]
fn redirects_are_followed_to_their_end_and_the_end_is_told() {
    let server = Server::saying(|request| match request.split(' ').nth(1) {
        Some("/a") => moved(301, "/b?c"),
        Some("/b?c") => moved(307, "d"),
        _ => page("the end"),
    });
    let answer = get(&door(&here(), &[&server.entry()]), &server.url("/a")).unwrap();
    assert_eq!(
        (text(&answer), answer.url.as_str(), answer.status),
        ("the end", server.url("/d").as_str(), 200)
    );
    assert_eq!(answer.redirect, None);
}

#[test]
fn a_circle_of_redirects_is_left() {
    let server = Server::saying(|_| moved(302, "/again"));
    let error = get(&door(&here(), &[&server.entry()]), &server.url("/")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ExecutionFailed);
    assert!(error.message.contains("given up after 10"), "{}", error.message);
    assert_eq!(server.times(), 11);
}

#[test]
fn a_redirect_to_another_host_is_told_to_who_wants_to_know() {
    let server = Server::saying(|request| match request.split(' ').nth(1) {
        Some("/same") => moved(302, "/page"),
        Some("/www") => {
            let port =
                request.split("example.test:").nth(1).and_then(|rest| rest.split('\r').next()).unwrap();
            moved(302, &format!("http://www.example.test:{port}/page"))
        }
        Some("/away") => moved(302, "https://other.example/page"),
        Some("/odd") => moved(302, "app://open"),
        _ => page("here"),
    });
    let hosts =
        ["example.test", "www.example.test", "127.0.0.1"].map(|host| format!("{host}:{}", server.port));
    let door = reaching(&here(), Reach { hosts: hosts.to_vec(), ..Reach::default() });
    let fetch = |path: &str, redirects| {
        let url = format!("http://example.test:{}{path}", server.port);
        door.fetch(&HttpRequest { redirects, ..HttpRequest::get(url) }).unwrap()
    };
    for path in ["/same", "/www"] {
        assert_eq!(text(&fetch(path, Redirects::SameHost)), "here", "{path}");
    }
    for (path, leads) in [("/away", "https://other.example/page"), ("/odd", "app://open")] {
        let told = fetch(path, Redirects::SameHost);
        assert_eq!((told.status, told.redirect.as_deref()), (302, Some(leads)));
    }
    let told = fetch("/same", Redirects::Never);
    assert_eq!(told.redirect, Some(format!("http://example.test:{}/page", server.port)));
}

#[test]
fn another_host_gets_no_secrets_and_a_moved_post_becomes_a_get() {
    let last = Server::saying(|_| page("done"));
    let location = format!("http://other.test:{}/", last.port);
    let first = Server::saying(move |request| {
        let status = if request.contains("/keep") { 307 } else { 302 };
        moved(status, &location)
    });
    let door = door(&here(), &[&first.entry(), &last.entry(), &format!("other.test:{}", last.port)]);
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
        door.fetch(&request).unwrap();
        let sent = first.asked.recv().unwrap();
        assert!(
            sent.starts_with("POST") && sent.contains("Bearer key") && sent.ends_with("the body"),
            "{sent}"
        );
        let sent = last.asked.recv().unwrap();
        assert!(sent.starts_with(method) && sent.contains("text/html") && !sent.contains("key"), "{sent}");
        assert_eq!(sent.ends_with("the body"), path == "/keep");
    }
}

fn through(proxies: Matcher) -> Arc<Web> {
    let none = |name: &str| match name {
        "proxy.test" => Ok(vec![HERE]),
        name => panic!("{name} is the proxy's to look up"),
    };
    Arc::new(Web::with(Arc::new(none), proxies))
}

#[test]
fn a_proxy_of_the_environment_is_used_and_names_are_left_to_it() {
    let proxy = Server::saying(|_| page("by proxy"));
    let proxies = Matcher::builder()
        .all(format!("http://me:pass@proxy.test:{}", proxy.port))
        .no("direct.test,127.0.0.9")
        .build();
    let web = through(proxies);
    let answer = get(&reaching(&web, public()), "http://example.com/page").unwrap();
    assert_eq!(text(&answer), "by proxy");
    let asked = proxy.asked.recv().unwrap();
    assert!(asked.starts_with("GET http://example.com/page HTTP/1.1\r\n"), "{asked}");
    assert!(asked.to_lowercase().contains("proxy-authorization: basic bwu6cgfzcw=="), "{asked}");
    let error = get(&reaching(&web, public()), "https://example.com/").unwrap_err();
    assert!(proxy.asked.recv().unwrap().starts_with("CONNECT example.com:443 "));
    assert!(error.message.contains("through the proxy proxy.test"), "{}", error.message);
}

#[test]
fn a_proxy_opens_nothing_that_the_scope_closes_and_is_not_asked_for_this_machine() {
    let proxy = Server::saying(|_| page("by proxy"));
    let server = Server::saying(|_| page("direct"));
    let web = through(Matcher::builder().all(format!("http://proxy.test:{}", proxy.port)).build());
    for url in ["http://127.0.0.1/", "http://2852039166/", "http://localhost/", "http://[::ffff:10.0.0.1]/"] {
        assert_eq!(
            get(&reaching(&web, public()), url).unwrap_err().kind,
            ErrorKind::PermissionDenied,
            "{url}"
        );
    }
    assert!(get(&door(&web, &["example.com"]), "http://other.example/").is_err());
    let own = door(&web, &[&server.entry()]);
    assert_eq!(text(&get(&own, &server.url("/")).unwrap()), "direct");
    assert_eq!(proxy.times(), 0);
}
