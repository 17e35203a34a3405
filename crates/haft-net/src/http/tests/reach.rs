//! Which hosts and addresses are refused.

use haft_tool::ErrorKind;

use super::*;

#[test]
fn private_addresses_are_refused_in_every_spelling() {
    let client = client_within(&local_service(), public());
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0x7F.0.0.0x1",
        "017700000001",
        "0177.0.0.01",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::1]",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.1.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "100.100.100.200",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fc00::1]",
        "[ff02::1]",
    ] {
        for url in [
            format!("http://{host}/"),
            format!("https://{host}:8443/a?b"),
            format!("http:\\\\{host}\\"),
            format!(" hTTp:/{host}"),
        ] {
            let error = get(&client, &url).unwrap_err();
            assert_eq!(error.kind, ErrorKind::PermissionDenied, "{url}: {}", error.message);
            assert!(error.message.contains("to allow it: --network "), "{}", error.message);
        }
    }
}

#[test]
fn urls_without_a_plain_http_host_are_refused() {
    let client = client_within(&local_service(), public());
    for url in [
        "http://example.com@127.0.0.1/",
        "http://user:password@example.com/",
        "http://127.0.0.1#@example.com/../@",
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://127.0.0.1:70/",
        "data:text/plain,x",
        "javascript:alert(1)",
        "example.com",
        "//example.com",
        "http://",
        "http:///",
        "http://exa mple.com/",
        "http://256.256.256.256/",
        "http://1.2.3.4.5/",
        "http://example.com:99999/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://exam_ple..com/",
        "",
    ] {
        let error = get(&client, url).unwrap_err();
        assert!(
            matches!(error.kind, ErrorKind::InvalidArguments | ErrorKind::PermissionDenied),
            "{url}: {}",
            error.message
        );
    }
}

#[test]
fn name_with_a_private_address_is_refused() {
    let server = TestServer::responding(|_| ok_page("secret"));
    for inner in [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "::1",
        "::ffff:192.168.0.1",
        "fd00:ec2::254",
        "2002:7f00:1::",
    ] {
        let service = service(move |_| vec![inner.parse().unwrap()]);
        let error = get(&client_within(&service, public()), &format!("http://rebind.test:{}/", server.port))
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::PermissionDenied);
        assert!(
            error.message.contains("rebind.test") && error.message.contains("its name resolves to"),
            "{}",
            error.message
        );
    }
    assert_eq!(server.request_count(), 0);
}

#[test]
fn name_is_resolved_once() {
    let server = TestServer::responding(|_| ok_page("here"));
    let lookups = Arc::new(Mutex::new(0));
    let count = Arc::clone(&lookups);
    // A second lookup would lead elsewhere.
    let service = service(move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        if *count == 1 { vec![LOCALHOST] } else { vec!["192.0.2.1".parse().unwrap()] }
    });
    let hosts = [format!("twice.test:{}", server.port), server.entry()];
    let client = client_within(&service, Reach { hosts: hosts.to_vec(), ..Reach::default() });
    let answer = get(&client, &format!("http://twice.test:{}/", server.port)).unwrap();
    assert_eq!((text(&answer), *lookups.lock().unwrap()), ("here", 1));
}

#[test]
fn only_allowed_addresses_of_a_name_are_used() {
    let server = TestServer::responding(|_| ok_page("here"));
    let service =
        service(|_| vec!["10.255.255.1".parse().unwrap(), LOCALHOST, "169.254.169.254".parse().unwrap()]);
    let client = client_for(&service, &[&format!("mixed.test:{}", server.port), &server.entry()]);
    assert_eq!(text(&get(&client, &format!("http://mixed.test:{}/", server.port)).unwrap()), "here");
}

#[test]
fn redirects_are_checked_like_requests() {
    let secret = TestServer::responding(|_| ok_page("secret"));
    for location in [
        secret.url("/"),
        format!("//localhost:{}/", secret.port),
        format!("http://0x7f.1:{}/", secret.port),
        format!("http://elsewhere.test:{}/", secret.port),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[fd00:ec2::254]/".to_owned(),
        "https://evil.example/".to_owned(),
    ] {
        let target = location.clone();
        let first = TestServer::responding(move |_| redirect_to(302, &target));
        let error = get(&client_for(&local_service(), &[&first.entry()]), &first.url("/")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PermissionDenied, "{location}: {}", error.message);
    }
    for location in ["file:///etc/passwd", "http://user@127.0.0.1/", "ftp://example.com/"] {
        let first = TestServer::responding(move |_| redirect_to(302, location));
        let error = get(&client_for(&local_service(), &[&first.entry()]), &first.url("/")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{location}: {}", error.message);
    }
    assert_eq!(secret.request_count(), 0);
}

#[test]
fn redirect_to_a_denied_host_is_refused() {
    let last = TestServer::responding(|_| ok_page("held back"));
    let location = format!("http://held.test:{}/", last.port);
    let first = TestServer::responding(move |_| redirect_to(301, &location));
    let hosts = vec![first.entry(), last.entry(), format!("held.test:{}", last.port)];
    let never = vec!["held.test".to_owned(), "*.held.test".to_owned()];
    let free = client_within(&local_service(), Reach { hosts: hosts.clone(), ..public() });
    assert_eq!(text(&get(&free, &first.url("/")).unwrap()), "held back");
    let held = client_within(&local_service(), Reach { hosts, never, ..public() });
    let error = get(&held, &first.url("/")).unwrap_err();
    assert!(error.message.contains("a rule denies it"), "{}", error.message);
}

#[test]
fn only_listed_hosts_and_ports_are_reached() {
    let server = TestServer::responding(|_| ok_page("here"));
    let other = TestServer::responding(|_| ok_page("other"));
    let listed = client_for(&local_service(), &[&server.entry(), "example.com"]);
    assert_eq!(text(&get(&listed, &server.url("/")).unwrap()), "here");
    assert_eq!(text(&get(&listed, &format!("http://localhost:{}/", server.port)).unwrap()), "here");
    for url in [
        other.url("/"),
        "http://other.example/".to_owned(),
        "http://8.8.8.8/".to_owned(),
        "http://example.com:81/".to_owned(),
    ] {
        assert_eq!(get(&listed, &url).unwrap_err().kind, ErrorKind::PermissionDenied, "{url}");
    }
    assert_eq!(
        get(&client_within(&local_service(), Reach::default()), &server.url("/")).unwrap_err().kind,
        ErrorKind::PermissionDenied
    );
}

#[test]
fn configured_name_may_have_a_private_address() {
    let server = TestServer::responding(|_| ok_page("inside"));
    let name = format!("search.internal:{}", server.port);
    let url = format!("http://{name}/");
    let error = get(&client_for(&local_service(), &[&name]), &url).unwrap_err();
    assert!(
        error
            .message
            .contains(&format!("to allow it: --network search.internal:{0},127.0.0.1:{0}", server.port)),
        "{}",
        error.message
    );
    let configured = Reach { hosts: vec![name.clone()], inner: vec![name], ..Reach::default() };
    assert_eq!(text(&get(&client_within(&local_service(), configured), &url).unwrap()), "inside");
}

#[test]
fn reserved_and_invalid_headers_are_refused() {
    let server = TestServer::responding(|_| ok_page("here"));
    let client = client_for(&local_service(), &[&server.entry()]);
    for (name, value) in [
        ("Host", "evil.example"),
        ("Content-Length", "0"),
        ("Transfer-Encoding", "chunked"),
        ("a b", "c"),
        ("a", "b\r\nc: d"),
    ] {
        let headers = vec![(name.to_owned(), value.to_owned())];
        let error = client.fetch(&HttpRequest { headers, ..HttpRequest::get(server.url("/")) }).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{name}");
    }
    assert_eq!(server.request_count(), 0);
}
