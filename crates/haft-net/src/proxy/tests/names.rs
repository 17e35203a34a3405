//! Parsing of hosts and of the list of domains.

use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr};
use std::ptr;

use proptest::prelude::*;

use super::*;
use haft_tool::net::Peer;

fn parse(text: &str) -> Option<String> {
    Peer::parse(text.as_bytes()).ok().map(|host| host.to_string())
}

/// What the C library takes `text` for, if it is an IPv4 address without any lookup.
#[expect(unsafe_code, reason = "the C library's own reading is the one to compare with")]
fn address_to_c(text: &str) -> Option<Ipv4Addr> {
    let text = CString::new(text).ok()?;
    // SAFETY: all zeroes is a valid `addrinfo`.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_flags = libc::AI_NUMERICHOST;
    hints.ai_family = libc::AF_INET;
    let mut found = ptr::null_mut();
    // SAFETY: the text ends in NUL, and both pointers are to live values.
    if unsafe { libc::getaddrinfo(text.as_ptr(), ptr::null(), &raw const hints, &raw mut found) } != 0 {
        return None;
    }
    // SAFETY: a lookup that succeeded gave at least one entry, and for this family its address is a `sockaddr_in`.
    let bits = unsafe { ptr::read_unaligned((*found).ai_addr.cast::<libc::sockaddr_in>()) }.sin_addr.s_addr;
    // SAFETY: it came from `getaddrinfo` and is not used again.
    unsafe { libc::freeaddrinfo(found) };
    Some(Ipv4Addr::from_bits(u32::from_be(bits)))
}

#[test]
fn names_are_normalised() {
    for (text, name) in [
        ("example.com", "example.com"),
        ("EXAMPLE.Com.", "example.com"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("1.example", "1.example"),
        ("0x7f.example", "0x7f.example"),
        ("[2606:4700::0:1111]", "[2606:4700::1111]"),
        ("[::ffff:10.1.2.3]", "10.1.2.3"),
        ("[::FFFF:7f00:1]", "127.0.0.1"),
    ] {
        assert_eq!(parse(text).as_deref(), Some(name), "{text}");
    }
}

#[test]
fn address_spellings_are_normalised() {
    for text in
        ["127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f.1", "0X7F000001", "017700000001", "0177.0.0.01"]
    {
        assert_eq!(parse(text).as_deref(), Some("127.0.0.1"), "{text}");
        assert_eq!(parse(&format!("{text}.")).as_deref(), Some("127.0.0.1"), "{text}.");
    }
}

#[test]
fn ambiguous_hosts_are_refused() {
    let long = ["a".repeat(63).as_str(); 4].join(".");
    for text in [
        "",
        ".",
        "..",
        ".example.com",
        "example..com",
        "example.com..",
        "a b",
        "example.com\0.evil.test",
        "a\tb",
        "a\nb",
        "a%00b",
        "user@example.com",
        "example.com/",
        "example.com\\evil",
        "bücher.example",
        "example。com",
        "ｅxample.com",
        "*.example.com",
        "example.com:80",
        "a,b",
        "[::1",
        "::1",
        "[]",
        "[127.0.0.1]",
        "[fe80::1%eth0]",
        "[::1]x",
        "256.256.256.256",
        "1.2.3.4.5",
        "1.2.3.256",
        "4294967296",
        "0x100000000",
        "08.8.8.8",
        "0x",
        "1.0x",
        "1.2.3.0xg",
        "example.1",
        "example.0x1",
        "127.0.0.-1",
        &long,
    ] {
        assert_eq!(parse(text), None, "{text:?}");
    }
    assert_eq!(Peer::parse(b"\xffexample.com").ok(), None);
}

#[test]
fn entry_covers_its_name_and_port() {
    let list =
        domains(&["Example.com.", "*.wild.test", "port.test:8443", "10.0.0.5:5432", "[fd00::1]:80", "::1"]);
    for (host, port) in [
        ("example.com", 443),
        ("EXAMPLE.COM", 80),
        ("example.com.", 443),
        ("a.wild.test", 443),
        ("a.b.wild.test", 80),
        ("port.test", 8443),
        ("10.0.0.5", 5432),
        ("10.5", 5432),
        ("[::ffff:10.0.0.5]", 5432),
        ("[fd00:0::1]", 80),
        ("[::1]", 443),
    ] {
        assert!(list.allows(host, port), "{host}:{port}");
    }
    for (host, port) in [
        ("example.com", 22),
        ("www.example.com", 443),
        ("example.com.evil.test", 443),
        ("notexample.com", 443),
        ("wild.test", 443),
        ("evilwild.test", 443),
        (".wild.test", 443),
        ("evil.test\0.wild.test", 443),
        ("port.test", 443),
        ("10.0.0.5", 80),
        ("10.0.0.6", 5432),
        ("[fd00::1]", 443),
        ("93.184.216.34", 443),
    ] {
        assert!(!list.allows(host, port), "{host}:{port}");
    }
    assert!(!domains(&[]).allows("example.com", 443));
}

#[test]
fn localhost_is_never_reached_by_name() {
    let list = domains(&["localhost", "*.localhost", "localhost:8080"]);
    for host in ["localhost", "LOCALHOST.", "app.localhost"] {
        assert!(!list.allows(host, 80) && !list.allows(host, 8080), "{host}");
    }
}

#[test]
fn invalid_entry_is_an_error_with_examples() {
    for entry in [
        "",
        "*",
        "*.",
        "*.*.com",
        "a.*.com",
        "https://example.com",
        "example.com/path",
        "example.com:",
        "example.com:0",
        "example.com:65536",
        "example.com:http",
        "127.1",
        "010.0.0.5",
        "0x7f000001",
        "*.10.0.0.5",
        "*.[::1]",
        "a b",
        "bücher.example",
        "example.com\0",
        "[::1",
        "fe80::1%eth0",
    ] {
        let error = Domains::parse(&[entry.to_owned()]).unwrap_err();
        assert!(error.message.contains("Write `example.com`"), "{entry:?}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsed_host_parses_to_itself(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(host) = Peer::parse(&bytes) {
            prop_assert_eq!(Peer::parse(host.to_string().as_bytes()), Ok(host));
        }
    }

    #[test]
    fn addresses_are_parsed_like_the_c_library_does(
        text in "[0-9a-fxX.]{1,14}|(0x?)?[0-7]{1,12}(\\.(0x?)?[0-9a-f]{1,4}){0,4}\\.?"
    ) {
        match (Peer::parse(text.as_bytes()), address_to_c(&text)) {
            (Ok(Peer::Name(name)), there) => {
                prop_assert_eq!(there, None, "{}", text);
                prop_assert_eq!(address_to_c(&name), None, "{}", name);
            }
            (Ok(Peer::Address(IpAddr::V4(here))), Some(there)) => prop_assert_eq!(here, there, "{}", text),
            _ => {}
        }
    }

    #[test]
    fn every_spelling_of_a_name_is_checked_the_same(text in "[a-zA-Z0-9_.-]{1,40}") {
        if let Ok(Peer::Name(name)) = Peer::parse(text.as_bytes()) {
            prop_assert!(name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.')), "{}", name);
            let list = domains(&[&name]);
            let local = Peer::parse(name.as_bytes()).unwrap().is_localhost();
            prop_assert_eq!(list.allows(&text, 443), !local);
            let (upper, dotted) = (name.to_uppercase(), format!("{name}."));
            prop_assert_eq!(list.allows(&upper, 443), !local);
            prop_assert_eq!(list.allows(&dotted, 443), !local);
            let (below, beside) = (format!("a.{name}"), format!("a{name}"));
            prop_assert!(!list.allows(&below, 443) && !list.allows(&beside, 443));
        }
    }

    #[test]
    fn any_entry_parses_or_is_refused(entry in any::<String>()) {
        let _ = Domains::parse(&[entry]);
    }
}
