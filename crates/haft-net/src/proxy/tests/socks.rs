//! SOCKS through the proxy.

use super::*;

/// A SOCKS5 client after the method selection.
fn greeted(run: &RunningProxy) -> TcpStream {
    let client = run.client();
    (&client).write_all(&[5, 2, 1, 0]).unwrap();
    expect_bytes(&client, &[5, 0]);
    client
}

fn request(command: u8, kind: u8, host: &[u8], port: u16) -> Vec<u8> {
    [&[5, command, 0, kind], host, &port.to_be_bytes()].concat()
}

fn named(name: &[u8]) -> Vec<u8> {
    [&[u8::try_from(name.len()).unwrap()], name].concat()
}

/// The code that `request` is answered with before the connection ends.
fn code(run: &RunningProxy, request: &[u8]) -> u8 {
    let mut client = greeted(run);
    client.write_all(request).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.len(), 10, "{answer:?}");
    answer[1]
}

#[test]
fn names_and_addresses_are_connected() {
    let port = echo_at_eof();
    let run = proxy_for_example(port);
    let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets();
    for (kind, host) in [
        (3, named(b"example.test")),
        (3, named(b"EXAMPLE.test.")),
        (3, named(b"127.0.0.1")),
        (1, vec![127, 0, 0, 1]),
        (4, mapped.to_vec()),
    ] {
        let client = greeted(&run);
        (&client).write_all(&request(1, kind, &host, port)).unwrap();
        expect_bytes(&client, &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(exchange(&client, b"through"), b"through");
    }
    assert_eq!(*run.refused.lock().unwrap(), []);
}

#[test]
fn hostile_names_are_refused_and_escaped() {
    for (name, shown) in [
        (&b"evil.test\0.example.test"[..], "evil.test\\x00.example.test"),
        (b"evil.test\n.example.test", "evil.test\\n.example.test"),
        (b"\x1b[31mexample.test", "\\x1b[31mexample.test"),
        (b"ex\xc3\xa4mple.test", "ex\\xc3\\xa4mple.test"),
        (b"", ""),
        (b"evil.test", "evil.test"),
        (b"2130706433", "127.0.0.1"),
    ] {
        let run = run(&["example.test", "*.example.test"], |_| Ok(vec![LOCALHOST]));
        assert_eq!(code(&run, &request(1, 3, &named(name), 443)), 2, "{shown}");
        assert_eq!(run.only_refused().host, shown);
    }
}

#[test]
fn unlisted_and_private_hosts_are_refused() {
    for (kind, host) in [
        (1, vec![10, 0, 0, 1]),
        (1, vec![8, 8, 8, 8]),
        (4, [&[0; 15][..], &[1]].concat()),
        (3, named(b"example.test")),
        (3, named(b"localhost")),
    ] {
        let run = run(&["example.test", "localhost"], |_| Ok(vec![LOCALHOST]));
        assert_eq!(code(&run, &request(1, kind, &host, 443)), 2, "{host:?}");
        run.only_refused();
    }
}

#[test]
fn only_connect_without_authentication_is_supported() {
    for command in [2, 3, 0, 9] {
        let run = run(&["example.test"], |_| Ok(vec![LOCALHOST]));
        assert_eq!(code(&run, &request(command, 3, &named(b"example.test"), 443)), 7);
        assert_eq!(run.only_refused().why, "only CONNECT is supported over SOCKS");
    }
    let run = run(&["example.test"], |_| Ok(vec![LOCALHOST]));
    assert_eq!(code(&run, &request(1, 9, b"", 443)), 8);
    assert_eq!(code(&run, &[4, 1, 0, 1, 1, 1, 1, 1, 0, 80]), 1);
    assert_eq!(run.ask([5, 1, 2]), [5, 0xff]);
    assert_eq!(run.ask([5, 0]), [5, 0xff]);
    assert_eq!(run.ask(b"\x04\x01\x01\xbb\x01\x02\x03\x04user\0"), [0, 0x5b, 0, 0, 0, 0, 0, 0]);
    let refused = run.only_refused();
    assert_eq!((refused.host.as_str(), refused.port), ("1.2.3.4", 443));
}

#[test]
fn unreachable_server_has_its_own_reply_code() {
    let (port, _held) = closed_port();
    assert_eq!(code(&proxy_for_example(port), &request(1, 3, &named(b"example.test"), port)), 5);
    let unknown = run(&["example.test"], |_| Err(io::Error::other("no such name")));
    assert_eq!(code(&unknown, &request(1, 3, &named(b"example.test"), 443)), 4);
}
