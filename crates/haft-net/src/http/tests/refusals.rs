//! What is never reached: this machine and the network inside, by whatever spelling, name or detour.

use haft_tool::ErrorKind;

use super::*;

#[test]
fn no_spelling_of_an_inner_address_is_reached_by_naming_the_tool_alone() {
    let door = reaching(&here(), public());
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
            let error = get(&door, &url).unwrap_err();
            assert_eq!(error.kind, ErrorKind::PermissionDenied, "{url}: {}", error.message);
            assert!(error.message.contains("to allow it: --network "), "{}", error.message);
        }
    }
}

#[test]
fn what_hides_its_host_or_is_no_web_address_is_not_fetched() {
    let door = reaching(&here(), public());
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
        let error = get(&door, url).unwrap_err();
        assert!(
            matches!(error.kind, ErrorKind::InvalidArguments | ErrorKind::PermissionDenied),
            "{url}: {}",
            error.message
        );
    }
}

#[test]
fn a_name_that_leads_inside_is_refused_and_told_where_it_leads() {
    let server = Server::saying(|_| page("secret"));
    for inner in [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "::1",
        "::ffff:192.168.0.1",
        "fd00:ec2::254",
        "2002:7f00:1::",
    ] {
        let web = web(move |_| vec![inner.parse().unwrap()]);
        let error =
            get(&reaching(&web, public()), &format!("http://rebind.test:{}/", server.port)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PermissionDenied);
        assert!(
            error.message.contains("rebind.test") && error.message.contains("it leads to"),
            "{}",
            error.message
        );
    }
    assert_eq!(server.times(), 0);
}

#[test]
fn a_name_is_looked_up_once_and_only_what_was_found_then_is_connected_to() {
    let server = Server::saying(|_| page("here"));
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    // A second lookup would lead elsewhere.
    let web = web(move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        if *count == 1 { vec![HERE] } else { vec!["192.0.2.1".parse().unwrap()] }
    });
    let hosts = [format!("twice.test:{}", server.port), server.entry()];
    let door = reaching(&web, Reach { hosts: hosts.to_vec(), ..Reach::default() });
    let answer = get(&door, &format!("http://twice.test:{}/", server.port)).unwrap();
    assert_eq!((text(&answer), *asked.lock().unwrap()), ("here", 1));
}

#[test]
fn of_mixed_answers_only_the_allowed_ones_are_tried() {
    let server = Server::saying(|_| page("here"));
    let web = web(|_| vec!["10.255.255.1".parse().unwrap(), HERE, "169.254.169.254".parse().unwrap()]);
    let door = door(&web, &[&format!("mixed.test:{}", server.port), &server.entry()]);
    assert_eq!(text(&get(&door, &format!("http://mixed.test:{}/", server.port)).unwrap()), "here");
}

#[test]
fn no_redirect_leads_where_the_call_may_not_go() {
    let secret = Server::saying(|_| page("secret"));
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
        let first = Server::saying(move |_| moved(302, &target));
        let error = get(&door(&here(), &[&first.entry()]), &first.url("/")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PermissionDenied, "{location}: {}", error.message);
    }
    for location in ["file:///etc/passwd", "http://user@127.0.0.1/", "ftp://example.com/"] {
        let first = Server::saying(move |_| moved(302, location));
        let error = get(&door(&here(), &[&first.entry()]), &first.url("/")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{location}: {}", error.message);
    }
    assert_eq!(secret.times(), 0);
}

#[test]
fn a_host_that_a_rule_holds_back_is_not_reached_by_a_detour() {
    let last = Server::saying(|_| page("held back"));
    let location = format!("http://held.test:{}/", last.port);
    let first = Server::saying(move |_| moved(301, &location));
    let hosts = vec![first.entry(), last.entry(), format!("held.test:{}", last.port)];
    let never = vec!["held.test".to_owned(), "*.held.test".to_owned()];
    let free = reaching(&here(), Reach { hosts: hosts.clone(), ..public() });
    assert_eq!(text(&get(&free, &first.url("/")).unwrap()), "held back");
    let held = reaching(&here(), Reach { hosts, never, ..public() });
    let error = get(&held, &first.url("/")).unwrap_err();
    assert!(error.message.contains("a rule holds it back"), "{}", error.message);
}

#[test]
fn a_call_reaches_what_it_was_let_through_to_and_nothing_else() {
    let server = Server::saying(|_| page("here"));
    let other = Server::saying(|_| page("other"));
    let listed = door(&here(), &[&server.entry(), "example.com"]);
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
        get(&reaching(&here(), Reach::default()), &server.url("/")).unwrap_err().kind,
        ErrorKind::PermissionDenied
    );
}

#[test]
fn only_a_configured_name_may_lead_inside() {
    let server = Server::saying(|_| page("inside"));
    let name = format!("search.internal:{}", server.port);
    let url = format!("http://{name}/");
    let error = get(&door(&here(), &[&name]), &url).unwrap_err();
    assert!(
        error.message.contains(&format!("to allow it: --network 127.0.0.1:{}", server.port)),
        "{}",
        error.message
    );
    let configured = Reach { hosts: vec![name.clone()], inner: vec![name], ..Reach::default() };
    assert_eq!(text(&get(&reaching(&here(), configured), &url).unwrap()), "inside");
}

#[test]
fn nobody_sets_the_headers_that_the_door_answers_for() {
    let server = Server::saying(|_| page("here"));
    let door = door(&here(), &[&server.entry()]);
    for (name, value) in [
        ("Host", "evil.example"),
        ("Content-Length", "0"),
        ("Transfer-Encoding", "chunked"),
        ("a b", "c"),
        ("a", "b\r\nc: d"),
    ] {
        let headers = vec![(name.to_owned(), value.to_owned())];
        let error = door.fetch(&HttpRequest { headers, ..HttpRequest::get(server.url("/")) }).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{name}");
    }
    assert_eq!(server.times(), 0);
}
